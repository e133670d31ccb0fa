"""Keeps as many trainers alive as the queue needs, between two bounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archive.errors import LaunchError, SettingsError, TrainingError, UsageError
from archive.launchers.base import (
    FRUITLESS_CODE,
    UNFIT_CODE,
    LaunchedTrainer,
    Launcher,
    TrainerFailure,
)
from archive.launchers.records import TrainerFleet
from archive.queue import backlog, workers
from archive.queue.backlog import depths, total
from archive.queue.workers import WorkerStatus

if TYPE_CHECKING:
    from archive.api import Archive


EARLY_SECONDS = 60.0
"""Seconds of running below which the end of a trainer counts as early, even without a failure."""
RESTART_LIMIT = 5
"""Failures and early ends per trainer, without an evaluation in between, after which no trainer is
started."""
UNFIT_LIMIT = 3
"""The same for the local engine, if trials cannot begin on this machine."""


@dataclass(frozen=True, slots=True)
class FleetState:
    """Trainers of a fleet after an adjustment.

    Attributes:
        target: Number of trainers that the queue needs.
        running: Number of trainers whose process runs.
        pending: Number of trainers that the engine has not started yet.
        problem: Why the engine was not asked or did not answer; None where it did.
        reason: Why a trainer is pending, in the engine's words; None where none is, or there is no
            reason.
        refusal: Why the engine has started none or not all of the missing trainers, in its words;
            None where it has.
    """

    target: int
    running: int = 0
    pending: int = 0
    problem: str | None = None
    reason: str | None = None
    refusal: str | None = None

    def __str__(self) -> str:
        """Return the state as one line."""
        text = f"{self.running} of {self.target} trainers run"
        text += f", {self.pending} are pending" if self.pending else ""
        text += f" ({self.reason})" if self.reason else ""
        text += f"; the start of others failed: {self.refusal}" if self.refusal else ""
        return text if self.problem is None else f"{text}; as of the last answer: {self.problem}"


class FleetKeeper:
    """Starts trainers as the queue grows, and cancels pending ones as it shrinks.

    A running trainer is never stopped because of a short queue: it ends by itself when it finds no
    work (`archive trainer --idle`), or at the time limit of its job, and is replaced where the
    queue needs it. Only failures and early ends are counted. An engine that does not answer for a
    while is asked again later.

    Args:
        launcher: The engine.
        fleet: The fleet.
        clock: Function that returns the time in seconds.
    """

    def __init__(
        self, launcher: Launcher, fleet: TrainerFleet, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.launcher = launcher
        self.fleet = fleet
        self._clock = clock
        self.state = FleetState(0)
        self._due = 0.0
        self._known: set[str] = set()
        # Id of a trainer to the time at which it was first seen running.
        self._since: dict[str, float] = {}
        self._ends = self._progress = 0
        # Time at which a trainer was last seen to have ended without a failure.
        self._left: float | None = None

    @property
    def left_seconds(self) -> float | None:
        """Seconds since a trainer last ended without a failure; None before the first such end."""
        return None if self._left is None else self._clock() - self._left

    def keep(self, work: int, progress: int) -> FleetState:
        """Adjust the number of trainers, at most once in the engine's polling interval.

        Args:
            work: Number of proposals that wait or run.
            progress: A number that rises with each result; it forgives the failures before.

        Raises:
            SettingsError: A trainer refused its settings, such as a missing device.
            TrainingError: Trainers fail or end early, one after another, without a result.
        """
        if progress > self._progress:
            self._progress = progress
            self._ends = 0

        if self._clock() < self._due:
            return self.state

        fleet = self.fleet
        target = demand(work, fleet.slots, fleet.lower, fleet.upper)
        if not target:
            # Without work for them, trainers end in order.
            self._ends = 0

        try:
            self.state = self._adjust(target)
        except LaunchError as error:
            self.state = FleetState(target, self.state.running, self.state.pending, str(error))

        self._due = self._clock() + self.launcher.poll_seconds
        return self.state

    def stop(self) -> None:
        """Stop all trainers.

        Raises:
            LaunchError: The engine does not answer.
        """
        trainers = self.launcher.running(self.fleet)
        if trainers:
            self.launcher.stop(self.fleet, [trainer.id for trainer in trainers])

    def _adjust(self, target: int) -> FleetState:
        trainers = self.launcher.running(self.fleet)
        refusal = None
        self._count_ends(trainers)
        self._note(trainers)
        pending = [trainer.id for trainer in trainers if trainer.state == "pending"]
        if len(trainers) > target and pending:
            # Those that were started last would have to wait longest.
            cancelled = pending[-(len(trainers) - target) :]
            self.launcher.stop(self.fleet, cancelled)
            # An engine may still list the cancelled ones for a moment; their end is no failure.
            trainers = []
            for trainer in self.launcher.running(self.fleet):
                if trainer.id not in cancelled:
                    trainers.append(trainer)
        elif len(trainers) < target:
            try:
                self.launcher.start(self.fleet, target - len(trainers))
            except LaunchError as error:
                # The engine may have accepted some of the trainers.
                refusal = str(error)

            trainers = self.launcher.running(self.fleet)

        self._note(trainers)
        waiting = [trainer for trainer in trainers if trainer.state == "pending"]
        reason = next((trainer.reason for trainer in waiting if trainer.reason), None)
        return FleetState(
            target, len(trainers) - len(waiting), len(waiting), reason=reason, refusal=refusal
        )

    def _note(self, trainers: list[LaunchedTrainer]) -> None:
        """Remember the trainers, and forget those that have ended or been cancelled."""
        self._known = {trainer.id for trainer in trainers}
        began = self._clock()
        since = {}
        for trainer in trainers:
            if trainer.state == "running" or trainer.id in self._since:
                since[trainer.id] = self._since.get(trainer.id, began)

        self._since = since

    def _count_ends(self, trainers: list[LaunchedTrainer]) -> None:
        """Refuse further starts where trainers fail or end early again and again.

        Raises:
            SettingsError: A trainer refused its settings.
            TrainingError: Too many such ends without a result, or trials that cannot begin on this
                machine.
        """
        ended = self._known - {trainer.id for trainer in trainers}
        if not ended:
            return

        failures = self.launcher.failures(self.fleet, ended)
        if ended - {failure.id for failure in failures}:
            self._left = self._clock()

        failed = {failure.id for failure in failures if failure.code != FRUITLESS_CODE}
        self._ends += len(failed.union(filter(self._is_early, ended)))
        for failure in failures:
            self._check(failure)

        if self._ends > RESTART_LIMIT * max(1, self.fleet.upper):
            why = f"; {failures[-1].reason}" if failures else ""
            raise TrainingError(f"trainers fail or end as soon as they start{why}")

    def _is_early(self, ended: str) -> bool:
        since = self._since.get(ended)
        return since is None or self._clock() - since < EARLY_SECONDS

    def _check(self, failure: TrainerFailure) -> None:
        """Refuse further starts after a failure that they would repeat.

        Raises:
            SettingsError: The trainer refused its settings.
            TrainingError: Trials cannot begin on this machine.
        """
        where = self.launcher.where
        if failure.code == UsageError.exit_code:
            raise SettingsError(f"a trainer cannot run on {where}; {failure.reason}")

        if (
            failure.code == UNFIT_CODE
            and self.fleet.engine == "local"
            and self._ends >= UNFIT_LIMIT
        ):
            raise TrainingError(f"trials cannot begin on {where}; {failure.reason}")


def demand(work: int, slots: int, lower: int, upper: int) -> int:
    """Return the number of trainers for the work: `clip(ceil(work / slots), lower, upper)`.

    Args:
        work: Number of proposals that wait or run.
        slots: Number of trials that each trainer runs at a time, at least 1.
        lower: Smallest number of trainers, also of an empty queue.
        upper: Largest number of trainers.
    """
    return min(max(-(-work // slots), lower), upper)


def queue_length(archive: Archive, study: str | None) -> tuple[int, int]:
    """Return the number of proposals that wait or run, and the number of those that have ended.

    The cost does not grow with the number of proposals that have ended: a fleet's keeper asks every
    second.

    Args:
        archive: The archive.
        study: Name of a study; None for all.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    # Counted first: a proposal that is added meanwhile must not look like a result.
    proposals = total(archive.connection, study)
    work = 0
    for name, depth in depths(archive.connection).items():
        if study in (None, name):
            work += depth.waiting + depth.running

    return work, max(0, proposals - work)


TRUST_SECONDS = 600.0
"""Time after the end of a trainer in which what it lacks is taken for what the next one would
lack."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Waiting proposals of a study that no trainer of a fleet can run.

    Attributes:
        study: Name of the study.
        waiting: Number of its waiting proposals.
        reason: Capability that the trainer that started last lacks.
    """

    study: str
    waiting: int
    reason: str

    def __str__(self) -> str:
        """Return them with the reason."""
        if self.waiting == 1:
            count = "1 proposal waits"
            them = "it"
        else:
            count = f"{self.waiting} proposals wait"
            them = "them"

        return (
            f"{count} in the study {self.study}, and no trainer of the fleet can run {them}: "
            f"{self.reason}"
        )


def find_passed_over(archive: Archive, fleet: TrainerFleet) -> list[PassedOver]:
    """Return, by study, the waiting proposals that no trainer since the fleet's start can run.

    Trainers of other fleets may be among them. If one of those can run a study, its proposals are
    left out.

    Args:
        archive: The archive.
        fleet: The fleet, on record.
    """
    waiting = {}
    for name, depth in depths(archive.connection).items():
        if depth.waiting and fleet.study in (None, name):
            waiting[name] = depth.waiting

    if not waiting:
        return []

    lacking = backlog.lacking(archive.connection, waiting, list(_trainers(archive, fleet)))
    return [PassedOver(study, waiting[study], reason) for study, reason in sorted(lacking.items())]


def _trainers(archive: Archive, fleet: TrainerFleet) -> Iterator[WorkerStatus]:
    age = time.time() - fleet.created
    for worker in workers.statuses(archive.connection, recent_seconds=TRUST_SECONDS):
        if worker.seconds is None or worker.study != fleet.study:
            continue

        # Seconds since the start, by the server's clock, which stands still for a trainer that left.
        since = worker.seconds
        if worker.state == "left":
            since += worker.silent_seconds

        if since <= age:
            yield worker
