"""Trials on all nodes of a Slurm job: the trainer runs on the first node, and starts steps by srun.

    claim ──> SrunExecutor.start ──> srun ──> archive.trainer.dispatch.node_process on each node
                                               └─ its ranks, by archive.trainer.trial.group
    a node fails or is lost  ──> the trial fails once, and the other nodes end
    trial or daemon ends     ──> the input of the step ends, and its processes with it

The nodes need no way to the database. Home, weights and checkpoints are at locations that all nodes
share. A job has one trial at a time.
"""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.connection import Connection

from archive.errors import SettingsError, TrainingError, UsageError
from archive.queue.causes import Cause
from archive.settings import LOGIN
from archive.trainer.daemon.executors import TrialHandle
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.scratch import ScratchFolder
from archive.trainer.dispatch.node import allow_elsewhere
from archive.trainer.dispatch.node_process import ABANDON, INTERRUPT, first_line, part_of
from archive.trainer.recipes.registry import DEFAULT_SOURCE
from archive.trainer.trial import log
from archive.trainer.trial.group import GroupEnd
from archive.trainer.trial.messages import (
    EpochReport,
    FrameReader,
    Heartbeat,
    Message,
    TrialFailed,
    UnreadableFrameError,
)
from archive.trainer.trial.ranks import free_port
from archive.trainer.trial.spec import TrialSpec

END_SECONDS = 10.0
"""Longest wait for the end of a step before srun is killed."""
_PART = 1 << 16
_MOST_PARTS = 256
_MOST_WORDS = 300


class SrunExecutor:
    """The trials of one daemon on all nodes of its Slurm job.

    Args:
        options: How the daemon works.
        variables: Environment of the job; this process's by default.

    Raises:
        SettingsError: This process does not run in a job of Slurm.
        UsageError: The daemon runs several trials at a time.
    """

    def __init__(self, options: TrainerOptions, variables: Mapping[str, str] | None = None) -> None:
        variables = os.environ if variables is None else variables
        if "SLURM_JOB_ID" not in variables:
            raise SettingsError(
                "--trials-on slurm works in a job of Slurm: "
                "archive launch slurm --nodes 2 starts trainers in such jobs"
            )

        if (options.slots or 1) > 1:
            raise UsageError(
                f"a job of Slurm has one trial at a time on all nodes, got --slots {options.slots}"
            )

        self.nodes = int(variables.get("SLURM_JOB_NUM_NODES", "1"))
        self._job = variables["SLURM_JOB_ID"]
        self._cores = variables.get("SLURM_CPUS_PER_TASK")
        self._options = options
        self._trials: list[SrunTrial] = []

    @property
    def hardware(self) -> str:
        """The job."""
        return f"{self.nodes} nodes of Slurm's job {self._job}"

    def start(self, spec: TrialSpec) -> tuple[TrialHandle, ScratchFolder | None]:
        """Start a step on all nodes, on one for the default recipe; they have scratch folders.

        Raises:
            TrainingError: srun cannot be started.
        """
        nodes = 1 if spec.recipe == DEFAULT_SOURCE else self.nodes
        ranks = replace(
            spec.ranks,
            nodes=nodes,
            # The first node of the job, which has this process and the first task of the step.
            address=socket.gethostname(),
            port=free_port(),
            run=secrets.token_hex(8),
        )
        options = self._options
        spec = replace(
            spec, device=options.device, visible=None, threads=options.threads, slots=1, ranks=ranks
        )
        scratch = None if options.scratch is None else os.fspath(options.scratch)
        command = ["srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
        command += ["--kill-on-bad-exit=1"]
        command += [] if self._cores is None else [f"--cpus-per-task={self._cores}"]
        command += [sys.executable, "-P", "-m", "archive.trainer.dispatch.node_process"]
        trial = SrunTrial(spec, command, first_line(spec, scratch))
        self._trials = [trial]
        return trial, None

    def tidy(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """End the trial."""
        for trial in self._trials:
            trial.kill()


class SrunTrial:
    """A trial in a step of Slurm.

    Args:
        spec: The trial.
        command: Command that runs `archive.trainer.dispatch.node_process` on each node.
        content: First line of its input.

    Raises:
        TrainingError: The command cannot be started.
    """

    pid = None
    pids = ()
    due = None
    enforces_limits = True

    def __init__(self, spec: TrialSpec, command: list[str], content: bytes) -> None:
        self.spec = spec
        self._errors = tempfile.TemporaryFile()
        variables = {name: value for name, value in os.environ.items() if name not in LOGIN}
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=variables,
                start_new_session=True,
            )
        except OSError as error:
            raise TrainingError(f"{command[0]} cannot be started: {error.strerror}") from error

        assert self._process.stdin is not None and self._process.stdout is not None
        self._input = self._process.stdin
        self._output = self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        self._waiting = b""
        self._frames = [FrameReader() for _ in range(spec.ranks.nodes)]
        self._end = GroupEnd(spec.ranks.nodes)
        self._seen: float | None = None
        self._closed = False
        # The step may wait for its nodes before it reads.
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._lines.put(content)
        threading.Thread(target=self._write, daemon=True, name="srun input").start()

    @property
    def last_seen(self) -> float:
        """Time of the last sign of life of the first rank; now, while the step waits for nodes."""
        if self._seen is None or self._end.has(0):
            return time.monotonic()

        return self._seen

    @property
    def waitable(self) -> list[Connection | int]:
        """The output of the step."""
        return [] if self._closed else [self._output.fileno()]

    def messages(self) -> list[Message]:
        """Return the messages that have arrived, without waiting."""
        arrived: list[Message] = []
        if self._end.over:
            return arrived

        self._read()
        for node, frames in enumerate(self._frames):
            for message in self._next(frames):
                if node == 0:
                    self._seen = time.monotonic()

                if isinstance(message, Heartbeat):
                    continue

                if not isinstance(message, EpochReport):
                    self._end.note(node, allow_elsewhere(message))
                elif node == 0:
                    arrived.append(message)

        if self._closed and self._process.poll() is not None:
            self._note_lost()

        last = self._end.last()
        return arrived if last is None else [*arrived, last]

    def interrupt(self) -> None:
        """Request a checkpoint of the first rank, and its end."""
        self._lines.put(INTERRUPT)

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Kill all ranks; their logs get the stacks of their threads before."""
        self._lines.put(ABANDON)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)

        self.kill()
        return TrialFailed(reason, cause is not Cause.LIMIT, log.tail(self.spec.log), cause)

    def kill(self) -> None:
        """End the step with all its processes; wait for it."""
        self._end.over = True
        self._lines.put(b"")
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

        self._output.close()
        self._errors.close()

    def _write(self) -> None:
        """Write lines for all nodes; an empty one closes their input."""
        with contextlib.suppress(OSError), self._input:  # The step has ended.
            while line := self._lines.get():
                self._input.write(line)
                self._input.flush()

    def _read(self) -> None:
        """Hand the lines that have arrived to the readers of their nodes."""
        for _ in range(0 if self._closed else _MOST_PARTS):
            try:
                content = os.read(self._output.fileno(), _PART)
            except BlockingIOError:
                break

            if not content:
                self._closed = True
                break

            *lines, self._waiting = (self._waiting + content).split(b"\n")
            for line in lines:
                # A line of srun itself is none of ours.
                with contextlib.suppress(ValueError, IndexError):
                    node, part = part_of(line)
                    self._frames[node].feed(part)

    def _next(self, frames: FrameReader) -> list[Message | Heartbeat]:
        """Return the whole messages of a node."""
        arrived: list[Message | Heartbeat] = []
        try:
            while (message := frames.next()) is not None:
                arrived.append(message)
        except UnreadableFrameError as error:
            reason = f"a message of a node cannot be read: {error}"
            arrived.append(TrialFailed(reason, retry=True, cause=Cause.CRASH))

        return arrived

    def _note_lost(self) -> None:
        """Note that nodes have not told how their trial has ended."""
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(words) if line.strip()), "no message")
        reason = f"srun ended with status {self._process.returncode}: {last[:_MOST_WORDS]}"
        for node in range(len(self._frames)):
            if not self._end.has(node):
                self._end.note(node, TrialFailed(reason, retry=True, cause=Cause.CRASH))
