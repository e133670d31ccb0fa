"""The daemon's handle of a trial: starts its process, reads its messages, interrupts and kills it.

    daemon                                 fork server                  trial (`archive.trainer.trial.main`)
    TrialProcess(spec) ──── starts ──────> torch, once a daemon ─ fork ─> builds, trains, saves the weights
    TrialProcess.messages() <───────────────────── pipe ──────────────── EpochReport …, then one terminal message
    TrialProcess.interrupt() ───────────────────── pipe ───────────────> saves a checkpoint, then TrialInterrupted

A crash, a signal or exhausted memory ends one trial and nothing else. The fork server imports torch once, so a trial
starts in milliseconds; the daemon itself never loads it. A trial that ends without a terminal message was killed or
crashed, and its exit status tells by what. A trial whose daemon is gone finds the pipe closed and ends at once.
Signals to the whole process group have no effect on trials: the daemon decides.
"""

from __future__ import annotations

import os
import platform
import signal
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection

from archive.errors import SettingsError
from archive.trainer.trial import fork_server, log
from archive.trainer.trial.main import run
from archive.trainer.trial.messages import EpochReport, Heartbeat, Message, TrialFailed
from archive.trainer.trial.spec import TrialSpec

_JOIN_SECONDS = 5.0
_STACKS_SECONDS = 0.2
PROBE_SECONDS = 60.0
"""Longest wait for a device: a wedged driver never answers."""


class TrialProcess:
    """A trial in a process of its own.

    Args:
        spec: The trial.

    Attributes:
        spec: The trial.
        connection: Pipe that is ready to read when there are messages, or the process has ended.
        last_seen: Time of the last message or heartbeat, by `time.monotonic`.
    """

    def __init__(self, spec: TrialSpec) -> None:
        """Start the process.

        Raises:
            TrainingError: No process could be started.
        """
        self.spec = spec
        self.connection, self._process = fork_server.start(run, spec)
        self.last_seen = time.monotonic()
        self._over = self._interrupted = False

    @property
    def pid(self) -> int | None:
        """Id of the process."""
        pid: int | None = self._process.pid
        return pid

    def messages(self) -> list[Message]:
        """Return the messages that have arrived, without waiting; only the last one ever is no `EpochReport`."""
        arrived: list[Message] = []
        while not self._over and self.connection.poll():
            try:
                message: Message | Heartbeat = self.connection.recv()
            except (EOFError, OSError):
                message = TrialFailed(self._cause_of_death(), retry=True)
            except Exception as error:
                # Faulty native code may write into any open file, this pipe as well.
                reason = f"a message of the trial cannot be read: {type(error).__name__}: {error}"
                message = TrialFailed(reason, retry=True)
            self.last_seen = time.monotonic()
            if isinstance(message, Heartbeat):
                continue
            if isinstance(message, TrialFailed):
                message = replace(message, log_tail=log.tail(self.spec.log))
            arrived.append(message)
            self._over = not isinstance(message, EpochReport)
        return arrived

    def interrupt(self) -> None:
        """Ask the trial to save a checkpoint after the present step, and to end with `TrialInterrupted`.

        Returns at once. A trial that is about to finish may finish; one that does not answer should be killed.
        """
        if not self._interrupted:
            self._interrupted = True
            with suppress(OSError):  # The process is gone; its last message tells why.
                self.connection.send("interrupt")

    def abandon(self, reason: str) -> TrialFailed:
        """Kill a hung trial; its log shows where it hung.

        Args:
            reason: Recorded reason of the failure.
        """
        if self.spec.log is not None and self.pid is not None and self._process.is_alive():
            os.kill(self.pid, signal.SIGUSR1)
            time.sleep(_STACKS_SECONDS)
        self.kill()
        return TrialFailed(reason, retry=True, log_tail=log.tail(self.spec.log))

    def kill(self) -> None:
        """Kill the process in whatever state it is, and wait until it is gone."""
        self._over = True
        self._process.kill()
        self._process.join(_JOIN_SECONDS)
        self.connection.close()

    def _cause_of_death(self) -> str:
        self._process.join(_JOIN_SECONDS)
        code = self._process.exitcode
        if code is None:
            return "the trial closed its pipe and does not end"
        if code >= 0:
            return f"the trial's process ended with status {code} before it had a result"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = " (out of memory, or killed by hand)" if name == "SIGKILL" else ""
        return f"the trial's process was ended by {name}{hint}"


def resolve_device(device: str) -> tuple[str, str]:
    """Return a device in torch's notation and the name of its hardware; `auto` is a GPU if there is one.

    Raises:
        SettingsError: There is no such device here.
    """
    connection, process = fork_server.start(_probe, device)
    try:
        if not connection.poll(PROBE_SECONDS):
            process.kill()
            raise SettingsError(f"the device {device!r} cannot be used: it did not answer within {PROBE_SECONDS:g} s")
        resolved, hardware, problem = connection.recv()
    except (EOFError, OSError):
        raise SettingsError(f"the device {device!r} cannot be used: torch crashed when asked for it") from None
    finally:
        process.join(_JOIN_SECONDS)
        connection.close()
    if problem:
        raise SettingsError(f"the device {device!r} cannot be used: {problem}")
    return resolved, hardware


# The functions below run in a process of their own.


def _probe(device: str, asker: Connection) -> None:
    import torch

    try:
        resolved = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        torch.zeros(1, device=resolved)
        hardware = torch.cuda.get_device_name(resolved) if resolved.startswith("cuda") else platform.machine()
        asker.send((resolved, hardware, ""))
    except (RuntimeError, AssertionError) as error:
        asker.send((device, "", str(error).splitlines()[0]))
