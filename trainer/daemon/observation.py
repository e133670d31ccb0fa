"""Observation of trials: events become records for observers (`archive.trainer.observers`).

    ProposalClaimed                                       ──> Started
    EpochTrained                                          ──> Measured
    ProposalCompleted | ProposalFailed | ProposalReleased ──> Ended

The process of each observer lives as long as the block of `observation`, in which the daemon runs.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from archive.architecture.graph import Architecture
from archive.objectives import COST_METRICS
from archive.store.records import Claim, Result
from archive.trainer.daemon import events
from archive.trainer.daemon.in_flight import is_paused
from archive.trainer.daemon.shutdown import StopSignal
from archive.trainer.observers.base import Ending, ObservedTrial, TrialEnd, TrialObserver
from archive.trainer.observers.process import (
    Ended,
    Measured,
    ObserverProcess,
    ObserverRecord,
    Started,
)
from archive.trainer.storage.file_names import observer_logs
from archive.trainer.tasks.file_access import label_of
from archive.trainer.trial.spec import run_of

CLOSING_SECONDS = 60.0
LEAST_SECONDS = 2.0
"""Time for observers at the end of a trainer: at most, and at least after a stop request."""


class TrialObservation:
    """An observer of the daemon's events that passes records on.

    Args:
        put: Receives each record; must not wait.
    """

    def __init__(self, put: Callable[[ObserverRecord], None]) -> None:
        self._put = put
        self._worker = self._device = ""
        self._runs: dict[str, str] = {}

    def __call__(self, event: events.Event) -> None:
        """Translate an event."""
        match event:
            case events.TrainerStarted(worker, device):
                self._worker = worker
                self._device = device
            case events.ProposalClaimed(claim, protocol=protocol):
                trial = self._trial(claim, protocol)
                self._runs[claim.token + claim.id] = trial.run
                self._put(Started(trial))
            case events.EpochTrained(claim, metrics):
                values = {name: value for name, value in metrics.items() if name != "epoch"}
                self._put(Measured(self._run(claim), int(metrics["epoch"]), values))
            case events.ProposalCompleted(claim, result):
                self._end(claim, end_of(result))
            case events.ProposalFailed(claim, reason):
                self._end(claim, TrialEnd("FAILED", reason=reason))
            case events.ProposalReleased(claim, reason, lost=lost):
                self._end(claim, TrialEnd("LOST" if lost else "RETURNED", reason=reason))

    def _run(self, claim: Claim) -> str:
        return self._runs.get(claim.token + claim.id, "")

    def _end(self, claim: Claim, end: TrialEnd) -> None:
        # A trial that could not be started was never observed.
        if run := self._runs.pop(claim.token + claim.id, None):
            self._put(Ended(run, end))

    def _trial(self, claim: Claim, protocol: Mapping[str, Any]) -> ObservedTrial:
        proposal = claim.proposal
        study = claim.study
        return ObservedTrial(
            run=run_of(claim),
            proposal=claim.id,
            study=study.name,
            number=proposal.number,
            attempt=proposal.attempts + 1,
            continues=bool(proposal.attempts or proposal.rung or proposal.curve),
            agent=proposal.agent,
            task=label_of(study.task),
            space=study.space,
            objective=study.objective,
            direction=study.direction,
            architecture=summary_of(claim.architecture),
            hyperparameters=dict(proposal.hyperparameters),
            protocol={"name": study.protocol, **protocol},
            seed=claim.seed,
            worker=self._worker,
            device=self._device,
        )


@contextmanager
def observation(
    observers: Sequence[tuple[str, TrialObserver]],
    home: Path,
    seconds: Callable[[], float] = lambda: CLOSING_SECONDS,
) -> Iterator[events.Observer]:
    """Run observers in separate processes, and give the function that receives the daemon's events.

    Args:
        observers: Names and observers.
        home: Folder of the trainer's files, for the output of the observers.
        seconds: Returns the time that observers get at the end; after an exception in the block
            they get none.
    """
    folder = observer_logs(home)
    processes: list[ObserverProcess] = []
    for name, observer in observers:
        output = folder / f"{name}-{os.getpid()}.log"
        processes.append(ObserverProcess(name, observer, output))

    def put(record: ObserverRecord) -> None:
        for process in processes:
            process.put(record)

    deadline = 0.0
    try:
        yield TrialObservation(put)
        limit = seconds()
        deadline = time.monotonic() + limit
    finally:
        for process in processes:
            process.finish()

        for process in processes:
            process.close(max(0.0, deadline - time.monotonic()))


def closing_seconds(stop: StopSignal, parting_seconds: float) -> float:
    """Return the seconds for observers to end: after a stop, the rest of the grace period."""
    if not stop.stopping():
        return CLOSING_SECONDS

    spent = 0.0 if stop.requested_at is None else time.monotonic() - stop.requested_at
    return max(LEAST_SECONDS, parting_seconds - spent)


def summary_of(architecture: Architecture) -> dict[str, Any]:
    """Return a network in plain values."""
    counts = Counter(layer.op for layer in architecture.layers[1:-1])
    return {
        "key": architecture.key,
        "layers": len(architecture.layers),
        "edges": len(architecture.edges),
        "depth": architecture.depth,
        "operations": ", ".join(f"{count} {op}" for op, count in sorted(counts.items())),
    }


def end_of(result: Result) -> TrialEnd:
    """Return the end of a trial with a result."""
    metrics: dict[str, float] = {}
    costs: dict[str, float] = {}
    for name, value in result.metrics.items():
        values = costs if name in COST_METRICS else metrics
        values[name] = float(value)

    if result.epochs is not None:
        costs["epochs"] = float(result.epochs)

    if result.seconds is not None:
        costs["seconds"] = float(result.seconds)

    state: Ending = "PAUSED" if is_paused(result) else "COMPLETE"
    return TrialEnd(state, float(result.value), metrics=metrics, costs=costs)
