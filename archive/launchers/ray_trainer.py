"""A trainer as an actor of Ray: the process of one `archive trainer`.

    actor starts ──> process starts         on a node of the requested resources; Ray sets CUDA_VISIBLE_DEVICES
    process ends ──> actor ends for good    its resources are free, and the autoscaler may remove the node
    node is lost ──> Ray starts the actor on another node, hence the process

A process whose actor is gone ends by itself (`archive trainer --parent`). Imported on the nodes of
the cluster.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import ray

from archive.files import write_atomically
from archive.launchers.base import describe_log
from archive.launchers.records import WITHOUT_LOGIN

PYTHON = "{python}"
"""Stands for the interpreter of the node in a command."""


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
        variables = {name: value for name, value in os.environ.items() if name not in WITHOUT_LOGIN}
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

        # For good: an actor that only ended would be restarted.
        ray.kill(self._own, no_restart=True)


def failure_path(folder: Path, name: str) -> Path:
    """Return the file on the failure of a trainer, in the folder of its fleet."""
    return folder / "ray" / f"{name}.json"
