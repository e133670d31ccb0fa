"""Outcomes of claims: each is a notice to the store, an event for observers, and a count."""

from __future__ import annotations

import logging

from archive.queue.updates import Completion, Failure, Release
from archive.rungs import Rungs
from archive.store.properties import UNSAVED_WEIGHTS
from archive.store.records import Claim, Result
from archive.trainer.daemon import events
from archive.trainer.daemon.client.store_client import StoreClient
from archive.trainer.daemon.in_flight import is_paused
from archive.trainer.daemon.options import Tally, TrainerOptions
from archive.trainer.daemon.paths import TrainerPaths
from archive.trainer.trial.messages import TrialFailed

log = logging.getLogger("archive.trainer")

REFUSALS = 3
"""Number of consecutive trials that could not begin after which a trainer ends."""
REFUSAL_DOUBLINGS = 2
"""Number of doublings of the pause after a trial that could not begin, compared with a failure."""


class Outcomes:
    """Records how claims end.

    Args:
        client: Delivers the notices.
        paths: Folders of the daemon, among them the checkpoints of trials.
        options: How the daemon works.
        emit: Receives the events.

    Attributes:
        tally: Number of trials by outcome.
        refusals: Number of trials in a row that could not begin on this machine.
        refusal: Why the last one could not begin; None before one.
    """

    def __init__(
        self,
        client: StoreClient,
        paths: TrainerPaths,
        options: TrainerOptions,
        emit: events.Observer,
    ) -> None:
        self.tally = Tally()
        self._client = client
        self._paths = paths
        self._options = options
        self._emit = emit
        self.refusals = 0
        self._failures = 0
        self._gave_up = False
        self.refusal: str | None = None

    @property
    def unfit(self) -> bool:
        """Whether this machine cannot train: too many trials in a row could not begin."""
        # A search waits for the trainer that it has started, and starts another one.
        limit = REFUSALS if self._options.parent is None else 1
        return self._gave_up or self.refusals >= limit

    def give_up(self) -> None:
        """End because the machine is unfit: no trial that finishes meanwhile changes the reason."""
        log.error("this machine cannot train refusals=%d", self.refusals)
        self._gave_up = True

    def complete(self, claim: Claim, result: Result, *, keep: bool = True) -> None:
        """Record a result.

        Args:
            claim: The claim.
            result: Its result.
            keep: Whether the result goes to the spool at once; else only if the store is
                unreachable.
        """
        self._client.enqueue(completion_notice(claim, result), keep=keep)
        self.tally.complete += 1
        self._failures = self.refusals = 0
        if problem := result.environment.get(UNSAVED_WEIGHTS):
            log.warning("weights not saved proposal=%s reason=%r", claim.id, problem)
            self.tally.unsaved += 1

        self._emit(events.ProposalCompleted(claim, result))

    def fail(self, claim: Claim, failed: TrialFailed) -> None:
        """Record a failure; a trial that could not begin returns its proposal unchanged."""
        if failed.refused:
            self._refuse(claim, failed)
            return

        log.warning(
            "failed proposal=%s cause=%s retry=%s reason=%r",
            claim.id,
            failed.cause,
            failed.retry,
            failed.reason,
        )
        notice = failure_notice(claim, failed)
        self._client.enqueue(notice)
        self.tally.failed += 1
        self._failures = self._failures + 1 if failed.retry else 0
        self.refusals = 0
        if not failed.retry and failed.memory is None:
            self._paths.discard_checkpoint(claim)
        elif failed.retry and self._options.parent is None:
            # The cause may be this machine: a whole queue must not fail before its operator looks.
            # A search does look at its own trainers, and gives up when it sees the reason.
            self._client.back_off(self._failures, notice.reason)

        self._emit(events.ProposalFailed(claim, failed.reason, failed.retry))

    def _refuse(self, claim: Claim, failed: TrialFailed) -> None:
        """Return a proposal because its training could not begin here, and rest."""
        self.refusals += 1
        self.refusal = failed.reason
        log.warning("refused proposal=%s cause=%s reason=%r", claim.id, failed.cause, failed.reason)
        notice = refusal_notice(claim, failed)
        self._client.enqueue(notice)
        self.tally.returned += 1
        if not self.unfit:
            self._client.back_off(self.refusals, failed.reason, doublings=REFUSAL_DOUBLINGS)

        self._emit(events.ProposalReleased(claim, failed.reason))

    def release(self, claim: Claim, reason: str) -> None:
        """Hand a proposal back to the queue."""
        log.info("handed back proposal=%s reason=%r", claim.id, reason)
        self._client.enqueue(Release(claim.id, claim.token))
        self.tally.returned += 1
        self._emit(events.ProposalReleased(claim, reason))

    def lose(self, claim: Claim) -> None:
        """Record that a proposal belongs to another worker, or is already finished."""
        self._client.drop((claim.id, claim.token))
        self.tally.returned += 1
        self._emit(events.ProposalReleased(claim, "the lease was lost", lost=True))


def completion_notice(claim: Claim, result: Result) -> Completion:
    """Return the notice of a result."""
    rung = None if Rungs.of(claim.study.config) is None else claim.proposal.rung
    return Completion(
        claim.id, claim.token, result, is_paused(result), rung, claim.architecture.key
    )


def failure_notice(claim: Claim, failed: TrialFailed) -> Failure:
    """Return the notice of a trial without a result."""
    return Failure(
        claim.id,
        claim.token,
        storable(failed.reason),
        failed.retry,
        failed.log_tail or None,
        failed.cause,
        failed.memory,
    )


def refusal_notice(claim: Claim, failed: TrialFailed) -> Release:
    """Return the notice of a trial that could not begin here."""
    return Release(
        claim.id, claim.token, storable(failed.reason), failed.cause, failed.log_tail or None
    )


def storable(reason: str) -> str:
    """Return a reason as Unicode text: a file name may hold bytes that no server accepts."""
    return reason.encode(errors="replace").decode()
