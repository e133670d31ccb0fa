"""Figure of learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archive.drawing import palette
from archive.plots.data import curves as curves_data
from archive.plots.data.curves import BEST, OTHERS, LearningCurve, LearningCurves
from archive.plots.data.results import describe_undrawable
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from archive.api import Archive


def learning_curves(
    archive: Archive,
    study: str,
    *,
    metric: str | None = None,
    best: int = BEST,
    others: int = OTHERS,
) -> Figure:
    """Draw learning curves: of the best trainings, of others in even steps, and of those that run.

    Args:
        archive: The archive.
        study: Name of the study.
        metric: A metric of the curves; None for the objective.
        best: Number of the best trainings.
        others: Most other trainings.

    Raises:
        UnknownNameError: There is no study or no metric of this name.
        UsageError: No training has a curve.
    """
    return draw(curves_data.learning_curves(archive, study, metric, best=best, others=others))


def draw(data: LearningCurves) -> Figure:
    """Draw other trainings in grey, running ones dashed, and the best in colours by rank."""
    import matplotlib

    figure, (axes,) = style.figure()
    best = [curve for curve in data.curves if curve.role == "best"]
    colours = matplotlib.colormaps[style.GRADIENT](np.linspace(0.85, 0.0, max(1, len(best))))
    handles: list[Any] = []
    names: list[str] = []
    for training in data.curves:
        # A metric that only some epochs have is a line between these.
        finite = np.isfinite(training.values)
        look = _look(training, colours[best.index(training)] if training in best else None)
        (line,) = axes.plot(training.epochs[finite], training.values[finite], **look)
        if training.role == "best":
            handles.insert(0, line)
            names.insert(0, f"#{training.number}  {training.value:.4g}")

    for role, name in (("running", "running"), ("other", "others")):
        drawn = [
            line for line, curve in zip(axes.lines, data.curves, strict=True) if curve.role == role
        ]
        if drawn:
            handles.append(drawn[0])
            names.append(f"{name} ({len(drawn)})")

    style.legend(axes, handles, names, loc="center left", bbox_to_anchor=(1.0, 0.5))
    title = f"{style.shorten(data.study)}: {len(data.curves):,} of {data.results:,} trainings"
    style.whole_numbers(axes.xaxis)
    style.label(axes, "epochs", style.shorten(data.metric), title)
    style.note(figure, describe_undrawable(data.left_out))
    return figure


def _look(curve: LearningCurve, colour: Any) -> dict[str, Any]:
    # A curve with one value is a point, which a line would not show.
    mark: dict[str, Any] = (
        {"marker": "o", "markersize": 3} if np.isfinite(curve.values).sum() == 1 else {}
    )
    if curve.role == "best":
        return {"color": colour, "lw": 1.6, **mark}

    if curve.role == "running":
        return {"color": palette.hue("running"), "lw": 1.2, "linestyle": "--", **mark}

    return {"color": style.GREY, "lw": 0.7, "alpha": 0.5, **mark}
