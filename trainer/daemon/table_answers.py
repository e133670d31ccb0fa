"""Results from tables, which need no training: at once, or after the recorded time, scaled."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from typing import ClassVar

from archive.errors import TrainingError
from archive.queue.causes import Cause
from archive.store.records import Claim, Result
from archive.trainer.daemon import events
from archive.trainer.daemon.in_flight import InFlight
from archive.trainer.daemon.outcomes import Outcomes
from archive.trainer.tasks.tabular import TabularTask
from archive.trainer.trial.messages import Message, TrialFailed, TrialFinished, TrialInterrupted


def answer(
    claim: Claim, task: TabularTask, scale: float, outcomes: Outcomes, emit: events.Observer
) -> InFlight | None:
    """Look a result up, and record it; return the work in progress where it comes later.

    Args:
        claim: The claim.
        task: Its task.
        scale: Delay, as a multiple of the recorded training time.
        outcomes: Records the result.
        emit: Receives the events.

    Raises:
        ArchiveError: The table cannot be read here.
    """
    emit(events.ProposalClaimed(claim, protocol=task.protocol(claim.study.protocol).as_dict()))
    try:
        result = look_up(claim, task)
    except TrainingError as error:
        outcomes.fail(claim, TrialFailed(error.reason))
        return None

    if seconds := scale * (result.seconds or 0.0):
        return InFlight(claim, DelayedResult(result, seconds))

    # The table keeps it on disk, so it goes to the spool only if the store is unreachable.
    outcomes.complete(claim, result, keep=False)
    return None


def look_up(claim: Claim, task: TabularTask) -> Result:
    """Return a table's result for a claim.

    Raises:
        TrainingError: The table has none.
        UsageError: The table cannot be read here.
    """
    if claim.proposal.hyperparameters:
        names = ", ".join(sorted(claim.proposal.hyperparameters))
        raise TrainingError(
            f"the table of {task.name} was trained in one way, it has no choice of {names}"
        )

    return task.answer(claim.architecture, claim.study.protocol, claim.id)


class DelayedResult:
    """A table's result that arrives when a training would have ended, in scaled time.

    Args:
        result: The result.
        seconds: Its delay.
    """

    pid = None
    enforces_limits = False
    waitable: ClassVar[list[Connection | int]] = []

    def __init__(self, result: Result, seconds: float) -> None:
        self.due = time.monotonic() + seconds
        self._result = result
        self._interrupted = False

    @property
    def last_seen(self) -> float:
        """Now: a timer does not hang."""
        return time.monotonic()

    def messages(self) -> list[Message]:
        """Return the result when it is due."""
        if time.monotonic() >= self.due:
            return [TrialFinished(self._result)]

        return [TrialInterrupted(saved=False, epoch=0)] if self._interrupted else []

    def interrupt(self) -> None:
        """End without a result; there is nothing to save."""
        self._interrupted = True

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Return the failure."""
        return TrialFailed(reason, cause is not Cause.LIMIT, cause=cause)

    def kill(self) -> None:
        """Do nothing: there is no process."""
