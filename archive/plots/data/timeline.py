"""Time line of workers: which worker held which proposal, when, and how the attempt ended.

Every claim is one span, also those that were lost or returned. A worker with several slots has
overlapping spans, which are placed in as many lanes. All times are the server's.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from archive.errors import UsageError
from archive.queries.proposals import read_claims

if TYPE_CHECKING:
    from archive.api import Archive

Outcome = Literal["complete", "pruned", "running", "failed", "lost", "returned", "cancelled"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

MOST = 5000
"""Most spans that are read: the latest."""


@dataclass(frozen=True)
class TrialSpan:
    """One claim of a proposal.

    Attributes:
        worker: Id of the worker.
        lane: Number of the worker's lane, from 0.
        study: Name of the study.
        number: Number of the proposal in it.
        architecture: Key of the network.
        begin: Time of the claim, in milliseconds since 1970.
        end: Time of its end; of a running trial, the time of the reading.
        outcome: How it ended.
    """

    worker: str
    lane: int
    study: str
    number: int
    architecture: str
    begin: int
    end: int
    outcome: Outcome


@dataclass(frozen=True)
class WorkerTimeline:
    """Spans of some workers.

    Attributes:
        now: Server's time of the reading, in milliseconds since 1970.
        workers: Ids of the workers with their numbers of lanes, in the order of their first spans.
        trials: The spans, by begin.
        cut: Whether there are earlier spans.
    """

    now: int
    workers: Mapping[str, int]
    trials: tuple[TrialSpan, ...]
    cut: bool

    @property
    def extent(self) -> tuple[int, int]:
        """First begin and last end, in milliseconds since 1970; without any, the reading."""
        begin = min((trial.begin for trial in self.trials), default=self.now)
        return begin, max((trial.end for trial in self.trials), default=self.now)


def worker_timeline(
    archive: Archive,
    studies: str | Sequence[str] = (),
    *,
    seconds: float | None = None,
    most: int = MOST,
) -> WorkerTimeline:
    """Return which worker held which proposal, when.

    Args:
        archive: The archive.
        studies: Names of studies; empty for all.
        seconds: Length of time up to now; None for all time. Spans that reach into it are whole.
        most: Most spans; the latest are kept.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The length of time is not positive.
    """
    if seconds is not None and not seconds > 0:
        raise UsageError(f"the length of time must be positive, got {seconds:g} seconds")

    names = list(dict.fromkeys([studies] if isinstance(studies, str) else studies))
    for name in names:
        archive.studies.get(name)

    now, rows = read_claims(archive.connection, names, seconds, most + 1)
    return timeline(rows, now, most)


def timeline(rows: Iterable[Sequence[Any]], now: int, most: int = MOST) -> WorkerTimeline:
    """Return the time line of claims.

    Args:
        rows: Of each claim, worker, study, number and network, begin, end and outcome of the claim,
            state and end of the proposal.
        now: Time of the reading, in milliseconds since 1970.
        most: Most spans; the latest are kept.
    """
    ordered = sorted(rows, key=lambda row: (row[4], row[0], row[1], row[2]))
    kept = ordered[-most:]
    trials = tuple(_place(kept, now))
    workers: dict[str, int] = {}
    for trial in trials:
        workers[trial.worker] = max(workers.get(trial.worker, 0), trial.lane + 1)

    return WorkerTimeline(now, workers, trials, len(ordered) > most)


def _place(rows: Sequence[Sequence[Any]], now: int) -> Iterator[TrialSpan]:
    """Yield spans, each in the lowest lane of its worker that is free."""
    free: dict[str, list[int]] = {}
    busy: dict[str, list[tuple[int, int]]] = {}
    for worker, study, number, architecture, begin, ended, claim_outcome, state, finished in rows:
        outcome = _outcome(claim_outcome, state)
        end = now if outcome == "running" else max(begin, ended or finished or begin)
        lanes = free.setdefault(worker, [])
        ends = busy.setdefault(worker, [])
        while ends and ends[0][0] <= begin:
            heapq.heappush(lanes, heapq.heappop(ends)[1])

        lane = heapq.heappop(lanes) if lanes else len(ends)
        heapq.heappush(ends, (max(end, begin + 1), lane))
        yield TrialSpan(worker, lane, study, number, architecture, begin, end, outcome)


def _outcome(claim_outcome: str | None, state: str) -> Outcome:
    """Return how a claim ended: as recorded with it, or as its proposal did."""
    outcome = (claim_outcome or state).lower()
    # A claim without a recorded end was lost if its proposal waits again.
    return next((name for name in OUTCOMES if name == outcome), "lost")
