"""Trainers on a Ray cluster: detached actors, each with the process of one `archive trainer`.

    start      creates named actors of the requested resources; pending ones make Ray's autoscaler add nodes
    running    asks each actor by name; one that has not answered yet is pending: it waits for a node
    stop       SIGTERM through the actor, then the actor's end

    actor starts ──> process starts         on a node of the requested resources; Ray sets CUDA_VISIBLE_DEVICES
    process ends ──> actor ends for good    its resources are free, and the autoscaler may remove the node
    node is lost ──> Ray starts the actor on another node, hence the process

A process whose actor is gone ends by itself (`archive trainer --parent`). Ray keeps the list: the actors outlive the process that has created them. Actors of a lost node are
started again on another one, under the same name. Needs the package `ray` in the cluster's release,
and Python of the cluster's version.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from archive.errors import LaunchError
from archive.files import write_atomically
from archive.launchers.base import LaunchedTrainer, Launcher, TrainerFailure, describe_log
from archive.launchers.options import launch_option
from archive.launchers.records import TrainerFleet, without_login
from archive.ray_connection import NAMESPACE, connected
from archive.trainer.storage.file_names import trainer_logs

PYTHON = "{python}"
"""Stands for the interpreter of the node in a command."""
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
    nodes: int = launch_option(
        "Nodes of each trial, for archive trainer --trials-on: its ranks are on all of them, and "
        "the other options count for each.",
        "positive",
        1,
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
                hosts = {node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
        except LaunchError:
            return True

        return bool(hosts - {platform.node()})

    def start(self, fleet: TrainerFleet, count: int) -> None:
        """Create actors, after those that the fleet has."""
        self._check_nodes()
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
            for index in range(number + 1, number + 1 + count):
                name = f"{fleet.id}-{index}"
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

        trainers = []
        for name in names:
            state: Literal["running", "pending"] = "running" if name in hosts else "pending"
            trainers.append(LaunchedTrainer(name, state, hosts.get(name)))

        return trainers

    def stop(self, fleet: TrainerFleet, ids: Sequence[str]) -> None:
        """Stop processes and end actors; those without a process end at once."""
        with connected(self.address) as ray:
            names = [name for name in self._names(fleet) if name in set(ids)]
            started = self._hosts(names)
            handles = {}
            for name in names:
                handle = self._actor(name)
                if handle is not None:
                    handles[name] = handle

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
        self._check_nodes()
        request = self.request() | {
            "max_restarts": -1,
            "lifetime": "detached",
            "namespace": NAMESPACE,
        }
        lines = [f"# {count} actors on the Ray cluster at {self.address}, each with this process:"]
        for name, value in fleet.environment().items():
            lines.append(f"#     {name}={shlex.quote(value)}")

        lines += [f"#     {shlex.join(fleet.command())}", f"for number in range({count}):"]
        options = ", ".join(f"{name}={value!r}" for name, value in request.items())
        lines.append(
            f"    ray.remote(RayTrainer).options(name=f'{fleet.id}-{{number}}', "
            f"{options}).remote(…)"
        )
        return "\n".join([*lines, ""])

    def failures(self, fleet: TrainerFleet, ids: Collection[str]) -> list[TrainerFailure]:
        """Return the failures that the actors have recorded in the fleet's folder."""
        records = [failure_path(fleet.folder, id_) for id_ in ids]
        failures = []
        for path in sorted(filter(Path.exists, records), key=lambda path: path.stat().st_mtime_ns):
            content = json.loads(path.read_text(encoding="utf-8"))
            failures.append(TrainerFailure(path.stem, content["code"], content["reason"]))

        return failures

    def _check_nodes(self) -> None:
        """Check that a trainer asks for one node.

        Raises:
            LaunchError: It asks for several.
        """
        if self.nodes > 1:
            raise LaunchError(
                f"a trainer in an actor has one node, got --nodes {self.nodes}: one trainer beside "
                f"the cluster has trials on several: archive trainer --trials-on ray:nodes={self.nodes}"
            )

    def request(self) -> dict[str, Any]:
        """Return the resources of a trainer, or of a trial, as options of an actor."""
        request: dict[str, Any] = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        if self.memory is not None:
            request["memory"] = self.memory

        if self.resource:
            request["resources"] = dict(map(_resource, self.resource))

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

        asked = {}
        for name in names:
            actor = self._actor(name)
            if actor is not None:
                asked[actor.host.remote()] = name

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


@dataclass(frozen=True, slots=True)
class RayTrainerJob:
    """What the process of a trainer needs, the same for all trainers of a fleet.

    Attributes:
        command: Command, with `PYTHON` for the interpreter.
        environment: Variables beside the variables of the node.
        folder: Folder of the fleet, for the record of a failure.
        logs: Folder of the log.
        threads: Value of OMP_NUM_THREADS; None leaves Ray's.
    """

    command: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    logs: Path
    threads: int | None = None


class RayTrainer:
    """The actor.

    Args:
        name: Name of the actor.
        job: What its process needs.
    """

    def __init__(self, name: str, job: RayTrainerJob) -> None:
        self._name = name
        self._job = job
        import ray

        self._own = ray.get_runtime_context().current_actor
        self._stopping = threading.Event()
        self._log = job.logs / f"{name}.log"
        self._process = self._start()
        threading.Thread(target=self._watch, daemon=True).start()

    def host(self) -> str:
        """Return the name of the node's machine; the answer shows that the process has started."""
        return platform.node()

    def stop(self, seconds: float) -> None:
        """Send SIGTERM, and kill the process after some seconds; its exit code is no failure."""
        self._stopping.set()
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        job = self._job
        variables = without_login(os.environ)
        variables |= job.environment
        if job.threads is not None:
            variables["OMP_NUM_THREADS"] = str(job.threads)

        command = [sys.executable if word == PYTHON else word for word in job.command]
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            # Not in the actor's session: what ends the actor must leave the process the time to
            # return its proposals.
            return subprocess.Popen(
                [*command, "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=variables,
                start_new_session=True,
            )

    def _watch(self) -> None:
        code = self._process.wait()
        # A process that still starts has no handler of SIGTERM, and ends by the signal.
        if code and not self._stopping.is_set():
            content = {
                "code": code,
                "reason": f"on {platform.node()}; {describe_log(self._log, code)}",
            }
            path = failure_path(self._job.folder, self._name)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(content))

        import ray

        # For good: an actor that only ended would be restarted.
        ray.kill(self._own, no_restart=True)


def failure_path(folder: Path, name: str) -> Path:
    """Return the file on the failure of a trainer, in the folder of its fleet."""
    return folder / "ray" / f"{name}.json"
