"""Trials on a Ray cluster: one daemon with many slots claims, and actors on the nodes train.

    claim ──> RayExecutor.start ──> actor of the requested resources ──> trial on its node
                pending actors make Ray's autoscaler add nodes;
                an actor serves several trials, one after the other
    node is lost ──> its trials fail, and return to the queue until their attempts are used up
    daemon ends  ──> its actors end, and with them their trials

The daemon alone needs the database, renews all leases and sends all reports. Weights and
checkpoints go to a location that all nodes share.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, ClassVar, NamedTuple

from archive.errors import TrainingError
from archive.queue.causes import Cause
from archive.ray_connection import NAMESPACE, connected
from archive.trainer.daemon.executors import TrialHandle
from archive.trainer.daemon.scratch import ScratchFolder
from archive.trainer.dispatch.node import TrialNews, TrialNode, allow_elsewhere
from archive.trainer.trial import failures
from archive.trainer.trial.messages import EpochReport, Message, TrialFailed, TrialInterrupted
from archive.trainer.trial.spec import TrialSpec

IDLE_SECONDS = 30.0
"""Time after which an actor without a trial is ended, so that the cluster can shrink."""

log = logging.getLogger("archive.trainer")
LOST_SECONDS = 30.0
"""Time for which an actor may be unreachable before its trial counts as lost."""
ANSWER_SECONDS = 10.0
"""Longest wait for an actor to kill a trial before the actor itself is killed."""
MOST_STARTS = 3
"""Number of actors that a trial may lose before it has begun."""
_MOST_WORDS = 300
LOOK_SECONDS = 0.05
"""Least time between two looks for answers, each of which is one call for all trials."""


class _IdleActor(NamedTuple):
    """An actor without a trial.

    Attributes:
        actor: The actor.
        deletion: Reference of its answer when the files of the last trial are deleted.
        since: Time of the trial's end, by `time.monotonic`.
    """

    actor: Any
    deletion: Any
    since: float


class IdleActors:
    """The idle actors of one daemon."""

    def __init__(self) -> None:
        self._actors: list[_IdleActor] = []

    def add(self, actor: Any, deletion: Any) -> None:
        """Add an actor, with the reference of its last answer."""
        self._actors.append(_IdleActor(actor, deletion, time.monotonic()))

    def take(self) -> Any | None:
        """Remove and return the actor that was added last; None if there is none."""
        return self._actors.pop().actor if self._actors else None

    def discard_old(self) -> None:
        """End the actors that have been idle for long and have nothing to delete."""
        import ray

        latest = time.monotonic() - IDLE_SECONDS
        kept: list[_IdleActor] = []
        old: list[_IdleActor] = []
        for idle in self._actors:
            has_deleted = idle.since < latest and ray.wait([idle.deletion], timeout=0)[0]
            (old if has_deleted else kept).append(idle)

        self._actors = kept
        for idle in old:
            discard_actor(idle.actor)

    def discard_all(self, seconds: float) -> None:
        """End all actors.

        Args:
            seconds: Longest wait for their deletions.
        """
        import ray

        if self._actors:
            deletions = [idle.deletion for idle in self._actors]
            ray.wait(deletions, num_returns=len(deletions), timeout=seconds)

        while self._actors:
            discard_actor(self._actors.pop().actor)


def discard_actor(actor: Any) -> None:
    """End an actor, with a trial that it runs."""
    import ray

    ray.kill(actor, no_restart=True)


class RayExecutor:
    """The trials of one daemon on a Ray cluster.

    Args:
        address: Address of the cluster, as `ray.init` takes it.
        request: Resources of each trial, as options of an actor.
        device: Device of the trials on their nodes.
        threads: CPU threads of each trial; None follows the number of cores in the request.
        scratch: Folder of temporary files on the nodes; None stands for their system's.

    Raises:
        LaunchError: The cluster cannot be reached.
    """

    def __init__(
        self,
        address: str,
        request: Mapping[str, Any],
        *,
        device: str = "auto",
        threads: int | None = None,
        scratch: str | None = None,
    ) -> None:
        self.address = address
        self._device = device
        self._threads = threads
        self._scratch = scratch
        self._request = {**request, "max_restarts": 0}
        self._idle = IdleActors()
        self._trials: dict[int, RayTrial] = {}
        self._numbers = itertools.count()
        self._looked_at = 0.0
        with connected(address):
            pass

    @property
    def hardware(self) -> str:
        """The cluster."""
        return f"Ray at {self.address}"

    def start(self, spec: TrialSpec) -> tuple[TrialHandle, ScratchFolder | None]:
        """Start a trial as soon as its resources are free. Its node has the scratch folder."""
        spec = replace(spec, device=self._device, visible=None, threads=self._threads, slots=1)
        number = next(self._numbers)
        actor = self.actor()
        trial = RayTrial(self, number, actor, spec)
        self._trials[number] = trial
        return trial, None

    def actor(self, *, new: bool = False) -> Any:
        """Return an idle actor, else a new one.

        Args:
            new: Whether it must be a new one.

        Raises:
            TrainingError: Ray refuses it.
        """
        import ray

        if not new and (idle := self._idle.take()) is not None:
            return idle

        try:
            actor_class = ray.remote(TrialNode).options(namespace=NAMESPACE, **self._request)
            return actor_class.remote(self._scratch)
        except (ValueError, TypeError) as error:
            raise TrainingError(f"Ray refuses the resources of a trial: {error}") from error

    def tidy(self) -> None:
        """End the actors that have been idle for long."""
        self._idle.discard_old()

    def close(self) -> None:
        """End all actors; the idle ones may delete their files before."""
        for trial in list(self._trials.values()):
            trial.kill()

        self._idle.discard_all(ANSWER_SECONDS)

    def collect(self) -> None:
        """Hand the answers that have arrived to their trials, at most every `LOOK_SECONDS`."""
        import ray

        now = time.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return

        self._looked_at = now
        asked: dict[Any, RayTrial] = {}
        for trial in self._trials.values():
            if trial.pending is not None:
                asked[trial.pending] = trial

        if asked:
            answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=0)
            for answer in answered:
                asked[answer].take(answer)

    def give_back(self, number: int, actor: Any, deletion: Any) -> None:
        """Take the actor of a trial that has ended, for another trial if it is usable.

        Args:
            number: Number of the trial.
            actor: The actor.
            deletion: Reference of its answer when the files of the trial are deleted; None if it is
                not usable.
        """
        if self._trials.pop(number, None) is None:
            return

        if deletion is None:
            discard_actor(actor)
        else:
            self._idle.add(actor, deletion)


class RayTrial:
    """A trial in an actor.

    Args:
        executor: The executor that has started it.
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

    def __init__(self, executor: RayExecutor, number: int, actor: Any, spec: TrialSpec) -> None:
        self._executor = executor
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
        self._executor.collect()
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
        self._executor.give_back(self._number, self._actor, deletion)

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
            discard_actor(self._actor)
            self._start(self._executor.actor(new=True))
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
