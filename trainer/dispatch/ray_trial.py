"""A trial in an actor of a Ray cluster."""

from __future__ import annotations

import logging
import time
from multiprocessing.connection import Connection
from typing import Any, ClassVar, Protocol

from archive.queue.causes import Cause
from archive.trainer.dispatch.node import TrialNews, allow_elsewhere
from archive.trainer.trial import failures
from archive.trainer.trial.messages import EpochReport, Message, TrialFailed, TrialInterrupted
from archive.trainer.trial.spec import TrialSpec

log = logging.getLogger("archive.trainer")

LOST_SECONDS = 30.0
"""Time for which an actor may be unreachable before its trial counts as lost."""
ANSWER_SECONDS = 10.0
"""Longest wait for an actor to kill a trial before the actor itself is killed."""
MOST_STARTS = 3
"""Number of actors that a trial may lose before it has begun."""
_MOST_WORDS = 300


class ActorOwner(Protocol):
    """Gives trials their actors, and takes them back."""

    def collect(self) -> None:
        """Hand the answers that have arrived to their trials."""

    def actor(self, *, new: bool = False) -> Any:
        """Return an actor; None where there is no other one for this trial.

        Args:
            new: Whether it must be a new one.
        """

    def give_back(self, number: int, actor: Any, deletion: Any) -> None:
        """Take the actor of a trial that has ended.

        Args:
            number: Number of the trial.
            actor: The actor.
            deletion: Reference of its answer when the files of the trial are deleted; None if it is
                not usable.
        """


def discard_actor(actor: Any) -> None:
    """End an actor, with a trial that it runs."""
    import ray

    ray.kill(actor, no_restart=True)


class RayTrial:
    """A trial in an actor.

    Args:
        owner: Owner of the actor.
        number: Its number there.
        actor: The actor.
        spec: The trial.

    Attributes:
        pending: Reference of the answer that is waited for; None after the end.
        enforces_limits: True: the node enforces the limits of the trial.
    """

    pid = None
    pids = ()
    due = None
    enforces_limits = True
    waitable: ClassVar[list[Connection | int]] = []

    def __init__(self, owner: ActorOwner, number: int, actor: Any, spec: TrialSpec) -> None:
        self._owner = owner
        self._number = number
        self._spec = spec
        self._messages: list[Message] = []
        self._seen: float | None = None
        self._unreachable_since: float | None = None
        self._over = False
        self._lost = False
        self._starts = 0
        self.host: str | None = None
        self.pending: Any = None
        self._start(actor)

    @property
    def last_seen(self) -> float:
        """Time of its last sign of life; now, while it waits for a node."""
        return time.monotonic() if self._seen is None else self._seen

    def messages(self) -> list[Message]:
        """Return the messages that have arrived, without waiting."""
        self._owner.collect()
        arrived = self._messages
        self._messages = []
        return arrived

    def interrupt(self) -> None:
        """Ask the node; a trial without a node has nothing to save."""
        if self.host is None:
            self._end(TrialInterrupted(saved=False, epoch=0))
        elif not self._over:
            self._actor.interrupt.remote()

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Kill it, and return the failure with the end of its log where the node answers."""
        failed = TrialFailed(reason, cause is not Cause.LIMIT, cause=cause)
        if self.host is not None and not self._over:
            failed = self._answer(self._actor.abandon.remote(reason, cause)) or failed

        self._over = True
        return failed

    def kill(self) -> None:
        """End it; returns when its process is gone, or its actor."""
        deletion = None
        if self.host is not None and not self._lost:
            deletion = self._actor.kill.remote()
            # After the end of a trial, only files are left to delete: later calls of this actor
            # queue behind that.
            if not self._over and self._answer(deletion, default=False) is False:
                self._lost = True
                deletion = None

        self._over = True
        self.pending = None
        self._owner.give_back(self._number, self._actor, deletion)

    def take(self, answer: Any) -> None:
        """Take the answer to the last question, and ask the next one."""
        import ray

        self.pending = None
        try:
            news = ray.get(answer)
        except ray.exceptions.ActorUnavailableError as error:
            self._wait_for_node(error)
        except ray.exceptions.RayTaskError as error:
            # The actor is well; starting the trial has failed.
            self.host = self.host or "?"
            cause = error.cause if isinstance(error.cause, Exception) else error
            self._end(allow_elsewhere(failures.refusal_of(cause)))
        except ray.exceptions.RayError as error:
            self._lose(error)
        else:
            self._unreachable_since = None
            self._receive(news)

    def _start(self, actor: Any) -> None:
        self._actor = actor
        self._starts += 1
        self.pending = actor.start.remote(self._spec)

    def _receive(self, news: str | TrialNews) -> None:
        if isinstance(news, str):
            self.host = news
            self._seen = time.monotonic()
            log.info("trial started host=%s", news)
        else:
            self._seen = time.monotonic() - news.silent_seconds
            for message in news.messages:
                self._messages.append(allow_elsewhere(message))
                if not isinstance(message, EpochReport):
                    self._over = True

        if not self._over:
            self.pending = self._actor.poll.remote()

    def _wait_for_node(self, error: Exception) -> None:
        self._unreachable_since = self._unreachable_since or time.monotonic()
        if time.monotonic() - self._unreachable_since > LOST_SECONDS:
            self._lose(error)
        else:
            self.pending = self._actor.poll.remote()

    def _lose(self, error: Exception) -> None:
        if self.host is None and self._starts < MOST_STARTS:
            # The trial had not begun: its actor was lost while it was idle, or before it had a
            # node.
            other = self._owner.actor(new=True)
            if other is not None:
                discard_actor(self._actor)
                self._start(other)
                return

        self._lost = True
        where = f"the node {self.host}" if self.host else "a node"
        words = str(error).strip().splitlines() or [type(error).__name__]
        reason = f"{where} of the Ray cluster was lost: {words[-1].strip()[:_MOST_WORDS]}"
        self._end(TrialFailed(reason, retry=True, cause=Cause.CRASH))

    def _end(self, last: Message) -> None:
        if not self._over:
            self._messages.append(last)
            self._over = True

    @staticmethod
    def _answer(reference: Any, default: Any = None) -> Any:
        """Return the answer of an actor; the default where it does not answer in time."""
        import ray

        try:
            return ray.get(reference, timeout=ANSWER_SECONDS)
        except ray.exceptions.RayError:
            return default
