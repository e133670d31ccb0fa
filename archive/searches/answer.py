"""The answer of a study: its recommended network, how sure it is, and what it beats.

    answer(archive, "digits").value      # 0.9547, between .low and .high

The recommendation is the one of `archive study best`: the best value of results without noise, else
the best posterior mean (`archive.agents.recommendation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from archive.agents import initial_design
from archive.agents.observations import is_noisy
from archive.agents.recommendation import (
    Recommendation,
    Recommendations,
    observations_of,
    of_study,
)
from archive.errors import ArchiveError, UsageError
from archive.objectives import sign
from archive.searches.results import best_view, best_views, interval_ends
from archive.store.protocol_names import ProtocolName
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks import registry
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.file_access import FileAccess

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot
    from archive.trainer.tasks.tabular import TabularProtocol

MOST_ESTIMATED = 50_000
"""Most proposals of a study whose noise is estimated: beyond, reading them takes ten seconds."""


@dataclass(frozen=True)
class BeatenResult:
    """A result that the recommended network is compared with.

    Attributes:
        kind: The second-best network, the best of the initial networks, or the median of all
            results.
        value: Its value, or the estimate of its value.
        gain: How much better the recommended network is; positive is better in either direction.
        count: Number of results that it stands for.
        number: Number of its proposal; None for the median and for the initial networks.
        architecture: Key of its network; None likewise.
    """

    kind: Literal["second", "initial", "median"]
    value: float
    gain: float
    count: int = 1
    number: int | None = None
    architecture: str | None = None


@dataclass(frozen=True)
class StudyAnswer:
    """The recommended network of a study.

    Attributes:
        number: Number of its best proposal.
        architecture: Its key.
        measured: The value of this proposal.
        value: The best estimate of its value: the value itself where results have no noise.
        low: Lower end of the 95 % interval of `value`; None where there is none.
        high: Upper end.
        noisy: Whether another training may give another value.
        unknown: Why a noisy value has no interval; None where it has one.
        evaluations: Number of its evaluations.
        configuration: Values of named decisions and of hyperparameters, by name.
        metrics: Further metrics of the proposal, by name.
        seconds: Seconds of its training; None where they are not on record.
        rivals: Number of other networks whose intervals reach `value`: the results do not tell
            whether they are worse.
        luckiest: Number of the proposal with the best measured value, where this is another
            network.
        luckiest_value: This value.
        beaten: What it is better than, the nearest first.
    """

    number: int
    architecture: str
    measured: float
    value: float
    low: float | None
    high: float | None
    noisy: bool
    unknown: str | None
    evaluations: int
    configuration: Mapping[str, Any]
    metrics: Mapping[str, float]
    seconds: float | None
    rivals: int
    luckiest: int | None
    luckiest_value: float | None
    beaten: tuple[BeatenResult, ...]


def answer(archive: Archive, name: str, *, estimated: bool = True) -> StudyAnswer | None:
    """Return the recommended network of a study; None before its first result.

    With several objectives, it is the best network in the first one, without an interval.

    Args:
        archive: The archive.
        name: Name of the study.
        estimated: Whether the noise of the results is estimated, which takes seconds; else the
            recommendation is the best value.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    snapshot = archive.studies.snapshot(name)
    best = snapshot.incumbent
    if best is None or best.value is None:
        return None

    ranking, unknown = _estimate(archive, snapshot) if estimated else (None, None)
    views = best_views(snapshot)
    answered = best
    first = None
    if ranking is not None:
        first = ranking.ranked[0]
        answered = best_view(views, first) or best
        if first.low is None:
            unknown = "too few networks for an estimate"

    better = sign(snapshot.study.direction)
    assert answered.value is not None, "an incumbent and a ranked network have a value"
    value = answered.value if first is None else better * first.score
    low = high = None
    if first is not None:
        low, high = interval_ends(better, first.low, first.high)

    lucky = answered.architecture_key != best.architecture_key
    return StudyAnswer(
        number=answered.number,
        architecture=answered.architecture_key,
        measured=answered.value,
        value=value,
        low=low,
        high=high,
        noisy=ranking is not None or unknown is not None,
        unknown=unknown,
        evaluations=1 if first is None else len(first.evaluations),
        configuration=answered.configuration,
        metrics=answered.metrics,
        seconds=answered.seconds,
        rivals=0 if ranking is None else _count_rivals(ranking.ranked),
        luckiest=best.number if lucky else None,
        luckiest_value=best.value if lucky else None,
        beaten=_beaten(archive, snapshot, views, ranking, value),
    )


def _estimate(archive: Archive, snapshot: Snapshot) -> tuple[Recommendations | None, str | None]:
    """Return the ranking of a study with noise, or why it is not known."""
    if len(snapshot.proposals) > MOST_ESTIMATED:
        return None, f"more than {MOST_ESTIMATED} results: archive study best estimates it"

    if snapshot.study.further:
        history = archive.studies.history(snapshot.study.name)
        noisy = is_noisy(observations_of(history, snapshot.study)[0])
        return None, "of several objectives, none is estimated" if noisy else None

    reasons: list[ArchiveError] = []
    ranking = of_study(archive, snapshot.study, reasons.append)
    return ranking, str(reasons[0]) if reasons else None


def _count_rivals(ranked: tuple[Recommendation, ...]) -> int:
    count = 0
    for other in ranked[1:]:
        if other.high is not None and other.high >= ranked[0].score:
            count += 1

    return count


def _beaten(
    archive: Archive,
    snapshot: Snapshot,
    views: Mapping[str, ProposalView],
    ranking: Recommendations | None,
    value: float,
) -> tuple[BeatenResult, ...]:
    better = sign(snapshot.study.direction)
    beaten = []
    second = _second(views, ranking, better)
    if second is not None:
        view, second_value = second
        beaten.append(
            BeatenResult(
                "second",
                second_value,
                better * (value - second_value),
                number=view.number,
                architecture=view.architecture_key,
            )
        )

    gained = initial_design.gain(archive, snapshot)
    if gained is not None and gained.gain > 0:
        first = gained.initial_best
        beaten.append(BeatenResult("initial", first, better * (value - first), gained.initial))

    values = [view.value for view in views.values() if view.value is not None]
    if len(values) > 2:
        middle = median(values)
        beaten.append(BeatenResult("median", middle, better * (value - middle), len(values)))

    return tuple(beaten)


def _second(
    views: Mapping[str, ProposalView], ranking: Recommendations | None, better: float
) -> tuple[ProposalView, float] | None:
    """Return the second-best network with its value, or with the estimate of its value."""
    if ranking is not None:
        for other in ranking.ranked[1:]:
            view = best_view(views, other)
            if view is not None:
                return view, better * other.score

        return None

    ordered = list(views.values())
    if len(ordered) < 2 or ordered[1].value is None:
        return None

    return ordered[1], ordered[1].value


def longer_protocol(archive: Archive, study: Study) -> TrainingProtocol | TabularProtocol:
    """Return the protocol of a study's task that trains longer by otherwise similar rules.

    Raises:
        UsageError: There is none; the message says why, and what trains the network longer.
        ArchiveError: The task is not known here, or its file may not be read.
    """
    task = registry.of_study(study, FileAccess.of(archive.connection.settings.home))
    current = task.protocol(ProtocolName.parse(study.protocol).base)
    longer = [protocol for protocol in task.protocols if _is_longer(protocol, current)]
    if not longer and isinstance(task, Task):
        raise UsageError(
            f"{current.name} is the longest protocol of the task {study.task}: a recipe of your "
            "own, named by archive search --recipe, may train longer"
        )

    if not longer:
        raise UsageError(
            f"the values of the task {study.task} are read from a table, which has no longer training"
        )

    def distance(protocol: TrainingProtocol | TabularProtocol) -> tuple[int, int]:
        names = [field.name for field in fields(protocol)]
        differing = sum(getattr(protocol, name) != getattr(current, name) for name in names)
        return differing, protocol.epochs

    return min(longer, key=distance)


def _is_longer(
    protocol: TrainingProtocol | TabularProtocol, current: TrainingProtocol | TabularProtocol
) -> bool:
    if protocol.epochs <= current.epochs:
        return False

    if isinstance(protocol, TrainingProtocol) and isinstance(current, TrainingProtocol):
        return protocol.network == current.network and protocol.train >= current.train

    return True


def longer_study(study: Study, protocol: TrainingProtocol | TabularProtocol) -> tuple[str, str]:
    """Return the name and the protocol of the study that trains networks of another one longer."""
    named = ProtocolName.parse(study.protocol)
    longer = ProtocolName(protocol.name, named.morph, named.recipe, named.objective)
    return f"{study.name}-longer", str(longer)
