"""The functions of `archive.plots`: names of studies in, figures out.

All take an open archive and one name, or several where studies can be compared; the returned
`matplotlib.figure.Figure` is the caller's, to change or save.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from archive.errors import UsageError
from archive.plots.data.curves import BEST, OTHERS
from archive.plots.data.network_map import LANDMARKS, PROFILE
from archive.plots.data.progress import Against

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from archive.api import Archive

Group = Literal["study", "agent"]


def best_so_far(
    archive: Archive,
    studies: str | Sequence[str],
    *,
    against: Against = "evaluations",
    by: Group = "study",
) -> Figure:
    """Draw the best value so far.

    Args:
        archive: The archive.
        studies: Names of studies of one task, protocol and objective.
        against: `evaluations`, or the `seconds` or `epochs` of their trainings, summed.
        by: `study` for a line each, `agent` for the median and the quartiles of the studies that an
            agent began.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or one has no value, or no record of the
            quantity.
    """
    from archive.plots.data import progress
    from archive.plots.figures import progress as drawing

    if by not in get_args(Group):
        raise UsageError(f"by must be one of {', '.join(get_args(Group))}, got {by!r}")

    read = progress.best_so_far(archive, studies, against)
    if by == "study":
        return drawing.draw(read)

    groups: dict[str, list[progress.BestSoFar]] = {}
    for one in read:
        agent = archive.studies.get(one.study).config.get("agent")
        groups.setdefault(agent if isinstance(agent, str) else "no agent on record", []).append(one)

    return drawing.draw_bands(
        [progress.band(name, group) for name, group in groups.items()], read[0]
    )


def value_and_cost(
    archive: Archive, studies: str | Sequence[str], *, cost: str = "params"
) -> Figure:
    """Draw value against cost with the Pareto front of the studies together.

    Args:
        archive: The archive.
        studies: Names of studies of one task, protocol and objective.
        cost: A property of networks or a metric of results, smaller is better: `params`, `flops`,
            `latency_ms`, `peak_memory_bytes`; or `seconds`, `epochs`.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or no result has the cost.
    """
    from archive.plots.data import tradeoff
    from archive.plots.figures import tradeoff as drawing

    return drawing.draw(tradeoff.value_and_cost(archive, studies, cost))


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
    from archive.plots.data import curves
    from archive.plots.figures import curves as drawing

    return drawing.draw(curves.learning_curves(archive, study, metric, best=best, others=others))


def parallel_coordinates(archive: Archive, study: str, *, axes: Sequence[str] = ()) -> Figure:
    """Draw hyperparameters, decisions or sizes of the networks beside the value, one line a result.

    Args:
        archive: The archive.
        study: Name of the study.
        axes: Hyperparameters, decisions of a space `choices`, and `layers`, `depth`, `edges`,
            `mass` of networks; empty for all hyperparameters and decisions that differ, or for the
            sizes where none does.

    Raises:
        UnknownNameError: There is no study, or nothing of this name that could be an axis.
        UsageError: The study has no value, or nothing differs.
    """
    from archive.plots.data import hyperparameters
    from archive.plots.figures import hyperparameters as drawing

    return drawing.draw(hyperparameters.parallel_coordinates(archive, study, axes))


def predictions(archive: Archive, studies: str | Sequence[str]) -> Figure:
    """Draw predicted against observed values, and the coverage of the predictions' intervals.

    Args:
        archive: The archive.
        studies: Names of studies of one task, protocol and objective.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or no result has a prediction.
    """
    from archive.plots.data import predictions as data
    from archive.plots.figures import predictions as drawing

    return drawing.draw(data.predicted_and_observed(archive, studies))


def operation_gains(archive: Archive, study: str) -> Figure:
    """Draw what each operation gained; `archive.plots.data.gains` defines the gain and the raise.

    Args:
        archive: The archive.
        study: Name of the study.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: No network of the study has a parent in it.
    """
    from archive.plots.data import gains
    from archive.plots.figures import gains as drawing

    return drawing.draw(gains.operation_gains(archive, study))


def worker_timeline(
    archive: Archive, studies: str | Sequence[str] = (), *, hours: float | None = None
) -> Figure:
    """Draw which worker held which proposal, when, and how the attempt ended.

    Args:
        archive: The archive.
        studies: Names of studies; empty for all.
        hours: Length of time up to now; None for all time.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: No worker has claimed a proposal in this time, or it is not positive.
    """
    from archive.plots.data import timeline
    from archive.plots.figures import timeline as drawing

    names = [studies] if isinstance(studies, str) else list(studies)
    data = timeline.worker_timeline(archive, names, seconds=None if hours is None else 3600 * hours)
    if not data.trials:
        within = "" if hours is None else f" in the last {hours:g} hours"
        raise UsageError(
            f"no worker has claimed a proposal{within}: results of imports have no time line"
        )

    return drawing.draw(data, ", ".join(names) or "all studies")


def network_map(
    archive: Archive,
    studies: str | Sequence[str] = (),
    *,
    space: str | None = None,
    distance: str = PROFILE,
    whole: bool = True,
    landmarks: int = LANDMARKS,
    **settings: Any,
) -> Figure:
    """Draw the networks of a space on a plane, and the incumbents of studies as paths.

    Args:
        archive: The archive.
        studies: Names of studies to draw as paths.
        space: Name of the space; None for that of the studies, or the only one.
        distance: `profile`, or the name of a kernel.
        whole: Whether to draw all networks of the space in the archive, or those of the studies
            only.
        landmarks: Most landmarks of the embedding.
        **settings: Settings of the kernel.

    Raises:
        UnknownNameError: There is no such study, space or kernel.
        UsageError: The studies are of different spaces or not comparable, or there is no network.
    """
    from archive.plots.data import network_map as data
    from archive.plots.figures import network_map as drawing

    where: dict[str, Any] = {
        "space": space,
        "distance": distance,
        "whole": whole,
        "landmarks": landmarks,
    }
    return drawing.draw(data.network_map(archive, studies, **where, **settings))
