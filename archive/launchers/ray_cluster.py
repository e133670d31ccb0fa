"""Trainers on a Ray cluster: detached actors, each with one trainer.

    start      creates named actors of the requested resources; pending ones make Ray's autoscaler add nodes
    running    asks each actor by name; one that has not answered yet is pending: it waits for a node
    stop       SIGTERM through the actor, then the actor's end

Ray keeps the list: the actors outlive the process that has created them. Actors of a lost node are
started again on another one, under the same name. Needs the package `ray` in the cluster's release,
and Python of the cluster's version.
"""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from archive.errors import LaunchError
from archive.launchers.base import LaunchedTrainer, Launcher, TrainerFailure
from archive.launchers.options import launch_option
from archive.launchers.records import TrainerFleet
from archive.ray_connection import NAMESPACE, connected
from archive.trainer.storage.file_names import trainer_logs

ANSWER_SECONDS = 3.0
"""Longest wait for the answers of actors; one that has started answers in milliseconds."""
RESERVE_SECONDS = 2.0
"""Time beyond a fleet's grace after which an actor is ended."""


@dataclass
class RayLauncher(Launcher):
    """A Ray cluster whose nodes share the archive's home, and have this package installed."""

    name: ClassVar[str] = "ray"
    where: ClassVar[str] = "the nodes of Ray"
    requires: ClassVar[tuple[str, ...]] = ("ray",)
    extra: ClassVar[str | None] = "ray"
    poll_seconds: ClassVar[float] = 5.0

    address: str = launch_option(
        "Address of the cluster: auto, HOST:6379 on one of its nodes, or ray://HOST:10001.",
        default="auto",
    )
    gpus: float = launch_option("GPUs of each trainer; 0.5 lets two share one.", "number", 0.0)
    cpus: float = launch_option("Processor cores of each trainer.", "number", 1.0)
    memory: int | None = launch_option(
        "Memory of each trainer, which Ray counts and does not enforce.", "size"
    )
    resource: tuple[str, ...] = launch_option(
        "Further resource of each trainer as NAME=AMOUNT, such as accelerator_type:A100=0.01.",
        "texts",
        (),
    )

    def elsewhere(self) -> bool:
        """Whether the cluster has a node that is not this machine."""
        try:
            with connected(self.address) as ray:
                nodes = [node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]]
        except LaunchError:
            return True

        return any(node != platform.node() for node in nodes)

    def start(self, fleet: TrainerFleet, count: int) -> None:
        """Create actors, after those that the fleet has."""
        from archive.launchers.ray_trainer import PYTHON, RayTrainer, RayTrainerJob, failure_path

        threads = None if "--threads" in fleet.arguments else max(1, int(self.cpus) // fleet.slots)
        job = RayTrainerJob(
            fleet.command(PYTHON),
            fleet.environment(),
            fleet.folder,
            trainer_logs(fleet.settings.home),
            threads,
        )
        with connected(self.address) as ray:
            # Ray starts it again after the loss of its node only: it ends itself for good.
            actor = ray.remote(RayTrainer)
            request = self.request() | {"max_restarts": -1}
            number = max(map(_number, self._names(fleet)), default=-1)
            for name in (f"{fleet.id}-{number + 1 + index}" for index in range(count)):
                # Names return when all actors have ended.
                failure_path(fleet.folder, name).unlink(missing_ok=True)
                try:
                    actor.options(
                        name=name, namespace=NAMESPACE, lifetime="detached", **request
                    ).remote(name, job)
                except ValueError as error:
                    raise LaunchError(f"Ray refuses a trainer: {_line(error)}") from None

    def running(self, fleet: TrainerFleet) -> list[LaunchedTrainer]:
        """Ask the actors of the fleet."""
        with connected(self.address):
            names = self._names(fleet)
            hosts = self._hosts(names)

        return [
            LaunchedTrainer(name, "running", hosts[name])
            if name in hosts
            else LaunchedTrainer(name, "pending")
            for name in names
        ]

    def stop(self, fleet: TrainerFleet, ids: Sequence[str]) -> None:
        """Stop processes and end actors; those without a process end at once."""
        with connected(self.address) as ray:
            names = [name for name in self._names(fleet) if name in set(ids)]
            started = self._hosts(names)
            handles = {name: handle for name in names if (handle := self._actor(name)) is not None}
            ending = []
            for name in started:
                if name in handles:
                    ending.append(handles[name].stop.remote(fleet.grace_seconds))

            if ending:
                ray.wait(
                    ending, num_returns=len(ending), timeout=fleet.grace_seconds + RESERVE_SECONDS
                )

            for handle in handles.values():
                ray.kill(handle, no_restart=True)

    def preview(self, fleet: TrainerFleet, count: int) -> str:
        """Return the actors and their command, in Ray's terms."""
        request = self.request() | {
            "max_restarts": -1,
            "lifetime": "detached",
            "namespace": NAMESPACE,
        }
        lines = [f"# {count} actors on the Ray cluster at {self.address}, each with this process:"]
        lines += [
            f"#     {name}={shlex.quote(value)}" for name, value in fleet.environment().items()
        ]
        lines += [f"#     {shlex.join(fleet.command())}", f"for number in range({count}):"]
        options = ", ".join(f"{name}={value!r}" for name, value in request.items())
        lines.append(
            f"    ray.remote(RayTrainer).options(name=f'{fleet.id}-{{number}}', "
            f"{options}).remote(…)"
        )
        return "\n".join([*lines, ""])

    def failures(self, fleet: TrainerFleet, ids: Collection[str]) -> list[TrainerFailure]:
        """Return the failures that the actors have recorded in the fleet's folder."""
        from archive.launchers.ray_trainer import failure_path

        records = [path for id_ in ids if (path := failure_path(fleet.folder, id_)).exists()]
        records.sort(key=lambda path: path.stat().st_mtime_ns)
        contents = [(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in records]
        return [
            TrainerFailure(id_, content["code"], content["reason"]) for id_, content in contents
        ]

    def request(self) -> dict[str, Any]:
        """Return the resources of a trainer, or of a trial, as options of an actor."""
        request: dict[str, Any] = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        if self.memory is not None:
            request["memory"] = self.memory

        if self.resource:
            request["resources"] = dict(_resource(text) for text in self.resource)

        return request

    def _names(self, fleet: TrainerFleet) -> list[str]:
        import ray.util

        names = [actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)]
        return sorted((name for name in names if name.rpartition("-")[0] == fleet.id), key=_number)

    def _actor(self, name: str) -> Any:
        """Return an actor; None where it has ended meanwhile."""
        import ray

        try:
            return ray.get_actor(name, namespace=NAMESPACE)
        except ValueError:
            return None

    def _hosts(self, names: Sequence[str]) -> dict[str, str]:
        """Return the host of each actor that has started."""
        import ray

        asked = {
            actor.host.remote(): name for name in names if (actor := self._actor(name)) is not None
        }
        if not asked:
            return {}

        answered, _ = ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_SECONDS)
        hosts = {}
        for answer in answered:
            try:
                hosts[asked[answer]] = str(ray.get(answer))
            except ray.exceptions.RayError:  # It is being moved to another node, or has just ended.
                continue

        return hosts


def _number(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def _resource(text: str) -> tuple[str, float]:
    """Return name and amount of a resource.

    Raises:
        LaunchError: The text has no amount.
    """
    name, _, amount = text.rpartition("=")
    try:
        return name, float(amount)
    except ValueError:
        raise LaunchError(f"a resource of Ray must be NAME=AMOUNT, got {text!r}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
