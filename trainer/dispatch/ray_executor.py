"""Trials on a Ray cluster: one daemon with many slots claims, and actors on the nodes train.

    claim ──> RayExecutor.start ──> actor of the requested resources ──> trial on its node
                pending actors make Ray's autoscaler add nodes;
                an actor serves several trials, one after the other
    node is lost ──> its trials fail, and return to the queue until their attempts are used up
    daemon ends  ──> its actors end, and with them their trials
    several nodes ─> an actor on each, in a placement group (`archive.trainer.dispatch.ray_group`)

The daemon alone needs the database, renews all leases and sends all reports. Weights and
checkpoints go to a location that all nodes share.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from archive.errors import TrainingError
from archive.ray_connection import NAMESPACE, connected
from archive.trainer.daemon.executors import TrialHandle
from archive.trainer.daemon.scratch import ScratchFolder
from archive.trainer.dispatch.node import TrialNode
from archive.trainer.dispatch.ray_group import RayGroup
from archive.trainer.dispatch.ray_trial import ANSWER_SECONDS, RayTrial, discard_actor
from archive.trainer.recipes.registry import DEFAULT_SOURCE
from archive.trainer.trial.spec import TrialSpec

IDLE_SECONDS = 30.0
"""Time after which an actor without a trial is ended, so that the cluster can shrink."""

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


class RayExecutor:
    """The trials of one daemon on a Ray cluster.

    Args:
        address: Address of the cluster, as `ray.init` takes it.
        request: Resources of each trial on each of its nodes, as options of an actor.
        nodes: Number of nodes of each trial; the default recipe trains on one.
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
        nodes: int = 1,
        device: str = "auto",
        threads: int | None = None,
        scratch: str | None = None,
    ) -> None:
        self.address = address
        self._device = device
        self._threads = threads
        self._scratch = scratch
        self._nodes = nodes
        self._request = {**request, "max_restarts": 0}
        self._idle = IdleActors()
        self._trials: dict[int, RayTrial | RayGroup] = {}
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
        if self._nodes > 1 and spec.recipe != DEFAULT_SOURCE:
            group = RayGroup(self, spec, self._nodes)
            group.number = self.add(group)
            return group, None

        number = self.new_number()
        trial = RayTrial(self, number, self.actor(), spec)
        self.add(trial, number)
        return trial, None

    def add(self, trial: RayTrial | RayGroup, number: int | None = None) -> int:
        """Collect the answers to the questions of a trial from now on; return its number."""
        number = self.new_number() if number is None else number
        self._trials[number] = trial
        return number

    def new_number(self) -> int:
        """Return a number for a trial."""
        return next(self._numbers)

    def actor(self, *, new: bool = False) -> Any:
        """Return an idle actor, else a new one.

        Args:
            new: Whether it must be a new one.

        Raises:
            TrainingError: Ray refuses it.
        """
        if not new and (idle := self._idle.take()) is not None:
            return idle

        return self.new_actor()

    def new_actor(self, **options: Any) -> Any:
        """Return a new actor.

        Args:
            options: Options of it beside the requested resources.

        Raises:
            TrainingError: Ray refuses it.
        """
        import ray

        request = {**self._request, **options}
        try:
            actor_class = ray.remote(TrialNode).options(namespace=NAMESPACE, **request)
            return actor_class.remote(self._scratch)
        except (ValueError, TypeError) as error:
            raise TrainingError(f"Ray refuses the resources of a trial: {error}") from error

    @property
    def bundle(self) -> dict[str, float]:
        """Resources of a trial on one node, as a bundle of a placement group."""
        names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
        bundle = dict(self._request.get("resources", {}))
        for option, name in names.items():
            if self._request.get(option):
                bundle[name] = self._request[option]

        return bundle

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
        asked: dict[Any, RayTrial | RayGroup] = {}
        for trial in self._trials.values():
            if trial.pending is not None:
                asked[trial.pending] = trial

        if asked:
            answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=0)
            for answer in answered:
                asked[answer].take(answer)

    def forget(self, number: int) -> None:
        """Collect no more answers for a trial."""
        self._trials.pop(number, None)

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
