"""Figure of learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archive.plots.data import drawable
from archive.plots.data.curves import LearningCurve, LearningCurves
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNNING = "#d55e00"


def draw(data: LearningCurves) -> Figure:
    """Draw other trainings in grey, running ones dashed, and the best ones in colours by rank, with
    their numbers.
    """
    import matplotlib

    figure, (axes,) = style.figure()
    best = [one for one in data.curves if one.role == "best"]
    colours = matplotlib.colormaps[style.GRADIENT](np.linspace(0.85, 0.0, max(1, len(best))))
    handles: list[Any] = []
    names: list[str] = []
    for one in data.curves:
        # A metric that only some epochs have is a line between these.
        known = np.isfinite(one.values)
        look = _look(one, colours[best.index(one)] if one in best else None)
        (line,) = axes.plot(one.epochs[known], one.values[known], **look)
        if one.role == "best":
            handles.insert(0, line)
            names.insert(0, f"#{one.number}  {one.value:.4g}")

    for role, name in (("running", "running"), ("other", "others")):
        drawn = [
            line for line, one in zip(axes.lines, data.curves, strict=True) if one.role == role
        ]
        if drawn:
            handles.append(drawn[0])
            names.append(f"{name} ({len(drawn)})")

    style.legend(axes, handles, names, loc="center left", bbox_to_anchor=(1.0, 0.5))
    title = f"{style.shown(data.study)}: {len(data.curves):,} of {data.results:,} trainings"
    style.whole_numbers(axes.xaxis)
    style.label(axes, "epochs", style.shown(data.metric), title)
    style.note(figure, drawable.sentence(data.left_out))
    return figure


def _look(one: LearningCurve, colour: Any) -> dict[str, Any]:
    # A curve with one value is a point, which a line would not show.
    mark: dict[str, Any] = (
        {"marker": "o", "markersize": 3} if np.isfinite(one.values).sum() == 1 else {}
    )
    if one.role == "best":
        return {"color": colour, "lw": 1.6, **mark}

    if one.role == "running":
        return {"color": RUNNING, "lw": 1.2, "linestyle": "--", **mark}

    return {"color": style.GREY, "lw": 0.7, "alpha": 0.5, **mark}
