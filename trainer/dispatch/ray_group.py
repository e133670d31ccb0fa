"""A trial with ranks on several nodes of a Ray cluster: an actor on each, in a placement group.

    placement group ──> actors ──> address of the first node ──> ranks on all nodes

The nodes are placed together or not at all. Members are trials of one node each; the trial ends as a
group of ranks does (`archive.trainer.trial.group`).
"""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, ClassVar

from archive.errors import TrainingError
from archive.queue.causes import Cause
from archive.trainer.dispatch.ray_trial import ANSWER_SECONDS, RayTrial, discard_actor
from archive.trainer.storage.file_names import node_log_path
from archive.trainer.trial.group import GroupEnd
from archive.trainer.trial.messages import EpochReport, Message, TrialFailed, TrialInterrupted
from archive.trainer.trial.spec import TrialSpec

if TYPE_CHECKING:
    from archive.trainer.dispatch.ray_executor import RayExecutor

_MOST_WORDS = 300


class RayGroup:
    """A trial on several nodes.

    Args:
        executor: The executor that starts it.
        spec: The trial.
        nodes: Number of nodes.

    Attributes:
        number: Its number at the executor.
        pending: Reference of the address of the first node, while it is waited for.
        enforces_limits: True: the nodes enforce the limits of the trial.

    Raises:
        TrainingError: Ray refuses the resources.
    """

    pid = None
    pids = ()
    due = None
    enforces_limits = True
    waitable: ClassVar[list[Connection | int]] = []

    def __init__(self, executor: RayExecutor, spec: TrialSpec, nodes: int) -> None:
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        self.number = -1
        self._executor = executor
        self._spec = spec
        self._members: list[RayTrial] = []
        self._deletions: list[Any] = []
        self._end = GroupEnd(nodes)
        self._actors: list[Any] = []
        try:
            self._placement = placement_group([executor.bundle] * nodes, strategy="STRICT_SPREAD")
        except ValueError as error:
            raise TrainingError(f"Ray refuses the resources of a trial: {error}") from error

        for node in range(nodes):
            strategy = PlacementGroupSchedulingStrategy(
                self._placement, placement_group_bundle_index=node
            )
            self._actors.append(executor.new_actor(scheduling_strategy=strategy))

        self.pending: Any = self._actors[0].address.remote()

    @property
    def host(self) -> str | None:
        """Name of the first node's machine; None before its ranks have started."""
        return self._members[0].host if self._members else None

    @property
    def last_seen(self) -> float:
        """Time of the last sign of life of the first rank; now, while the trial waits for nodes."""
        if not self._members or self._end.has(0):
            return time.monotonic()

        return self._members[0].last_seen

    def messages(self) -> list[Message]:
        """Return the messages that have arrived, without waiting."""
        arrived: list[Message] = []
        self._executor.collect()
        for node, member in enumerate(self._members):
            for message in member.messages():
                if not isinstance(message, EpochReport):
                    self._end.note(node, message)
                elif node == 0:
                    arrived.append(message)

        last = self._end.last()
        return arrived if last is None else [*arrived, last]

    def interrupt(self) -> None:
        """Ask the first node; a trial without nodes has nothing to save."""
        if self._members:
            self._members[0].interrupt()
        else:
            self._end.note(0, TrialInterrupted(saved=False, epoch=0))

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Kill all ranks, and return the failure with the end of the first node's log."""
        failed = TrialFailed(reason, cause is not Cause.LIMIT, cause=cause)
        answers = [member.abandon(reason, cause) for member in self._members]
        self._end.over = True
        return answers[0] if answers else failed

    def kill(self) -> None:
        """End all ranks and actors, and free the nodes."""
        import ray
        from ray.util.placement_group import remove_placement_group

        self._end.over = True
        self.pending = None
        self._executor.forget(self.number)
        for member in self._members:
            member.kill()

        if self._deletions:
            count = len(self._deletions)
            ray.wait(self._deletions, num_returns=count, timeout=ANSWER_SECONDS)

        if self._actors:
            for actor in self._actors:
                discard_actor(actor)

            remove_placement_group(self._placement)

        self._members = []
        self._actors = []
        self._deletions = []

    def take(self, answer: Any) -> None:
        """Take the address of the first node, and start the ranks."""
        import ray

        self.pending = None
        try:
            address, port = ray.get(answer)
        except ray.exceptions.RayError as error:
            words = str(error).strip().splitlines() or [type(error).__name__]
            reason = f"a node of the Ray cluster was lost: {words[-1].strip()[:_MOST_WORDS]}"
            self._end.note(0, TrialFailed(reason, retry=True, cause=Cause.CRASH))
            return

        ranks = replace(
            self._spec.ranks,
            nodes=len(self._actors),
            address=address,
            port=port,
            run=secrets.token_hex(8),
        )
        for node, actor in enumerate(self._actors):
            log = None if self._spec.log is None else node_log_path(self._spec.log, node)
            spec = replace(self._spec, ranks=replace(ranks, node=node), log=log)
            number = self._executor.new_number()
            member = RayTrial(self, number, actor, spec)
            self._executor.add(member, number)
            self._members.append(member)

    # The members' owner:

    def collect(self) -> None:
        """Hand the answers that have arrived to their trials."""
        self._executor.collect()

    def actor(self, *, new: bool = False) -> Any:
        """Return None: the others have the address of the first node."""
        return None

    def give_back(self, number: int, actor: Any, deletion: Any) -> None:
        """Keep the actor, which ends with the group, until the files of the trial are deleted."""
        self._executor.forget(number)
        if deletion is not None:
            self._deletions.append(deletion)
