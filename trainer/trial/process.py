"""One trial in a process of its own: what native code, memory or a signal does to it, it does to that trial alone.

    daemon                          fork server                  trial (`archive.trainer.trial.main`)
    Trial(job) ───── asks ────────> torch, once a daemon ─ fork ─> builds, trains, saves the weights
    Trial.messages() <─────────────────────── pipe ──────────────  Epoch …, then Finished or Failed, or silence
    Trial.checkpoint() ────────────────────── pipe ─────────────>  saves its state after the step, then Interrupted

The fork server imports torch once, so a trial begins in milliseconds; the daemon itself never loads it. A trial that
ends without a last word was killed or crashed, and the exit status says by what. A trial whose daemon is gone
finds the pipe closed and ends at once. Signals to the whole group change nothing: the daemon decides.
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
from archive.trainer.trial.job import Beat, Epoch, Failed, Finished, Interrupted, Job, Message
from archive.trainer.trial.main import run

__all__ = ["Epoch", "Failed", "Finished", "Interrupted", "Job", "Message", "Trial", "resolve_device"]

_PARTING_SECONDS = 5.0
_STACKS_SECONDS = 0.2
PROBE_SECONDS = 60.0
"""How long a device may take to answer: a driver that is stuck never does."""


class Trial:
    """The daemon's end of one trial.

    Args:
        job: What to train.

    Attributes:
        job: What is trained.
        connection: Ready to read when there are messages, or the trial has ended.
        heard: When it was last heard of, by `time.monotonic`: it takes steps, and says so every few seconds.
    """

    def __init__(self, job: Job) -> None:
        """Start the process.

        Raises:
            TrainingError: No process could be started.
        """
        self.job = job
        self.connection, self._process = fork_server.start(run, job)
        self.heard = time.monotonic()
        self._over = self._asked = False

    @property
    def pid(self) -> int | None:
        """The process's id."""
        pid: int | None = self._process.pid
        return pid

    def messages(self) -> list[Message]:
        """Return what has arrived, without waiting; the last one ever is not an `Epoch`."""
        arrived: list[Message] = []
        while not self._over and self.connection.poll():
            try:
                message: Message | Beat = self.connection.recv()
            except (EOFError, OSError):
                message = Failed(self._cause_of_death(), retry=True)
            except Exception as error:
                # Native code that has lost its way may write into any file, this pipe as well.
                message = Failed(f"what the trial said cannot be read: {type(error).__name__}: {error}", retry=True)
            self.heard = time.monotonic()
            if isinstance(message, Beat):
                continue
            if isinstance(message, Failed):
                message = replace(message, log_tail=log.tail(self.job.log))
            arrived.append(message)
            self._over = not isinstance(message, Epoch)
        return arrived

    def checkpoint(self) -> None:
        """Ask the trial to save its state after the step it is in, and to leave with `Interrupted`.

        Returns at once. A trial that is about to finish may finish; one that does not answer should be ended.
        """
        if not self._asked:
            self._asked = True
            with suppress(OSError):  # It is gone; its last message tells.
                self.connection.send("leave")

    def give_up(self, reason: str) -> Failed:
        """End a trial that hangs; where it hung is in its log.

        Args:
            reason: What goes on record.
        """
        if self.job.log is not None and self.pid is not None and self._process.is_alive():
            os.kill(self.pid, signal.SIGUSR1)
            time.sleep(_STACKS_SECONDS)
        self.end()
        return Failed(reason, retry=True, log_tail=log.tail(self.job.log))

    def end(self) -> None:
        """End the process, whatever it is doing, and wait until it is gone."""
        self._over = True
        self._process.kill()
        self._process.join(_PARTING_SECONDS)
        self.connection.close()

    def _cause_of_death(self) -> str:
        self._process.join(_PARTING_SECONDS)
        code = self._process.exitcode
        if code is None:
            return "the trial closed its pipe and does not end"
        if code >= 0:
            return f"the trial's process ended with status {code} before it had a result"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = " (out of memory, or killed by hand)" if name == "SIGKILL" else ""
        return f"the trial's process was ended by {name}{hint}"


def resolve_device(device: str) -> tuple[str, str]:
    """Return a device as torch names it and the name of its hardware; `auto` is a GPU where there is one.

    Raises:
        SettingsError: There is no such device here.
    """
    connection, process = fork_server.start(_probe, device)
    try:
        if not connection.poll(PROBE_SECONDS):
            process.kill()
            raise SettingsError(f"the device {device!r} cannot be used: it did not answer within {PROBE_SECONDS:g} s")
        found, hardware, problem = connection.recv()
    except (EOFError, OSError):
        raise SettingsError(f"the device {device!r} cannot be used: torch crashed when asked for it") from None
    finally:
        process.join(_PARTING_SECONDS)
        connection.close()
    if problem:
        raise SettingsError(f"the device {device!r} cannot be used: {problem}")
    return found, hardware


# What follows runs in a process of its own.


def _probe(device: str, asker: Connection) -> None:
    import torch

    try:
        found = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        torch.zeros(1, device=found)
        hardware = torch.cuda.get_device_name(found) if found.startswith("cuda") else platform.machine()
        asker.send((found, hardware, ""))
    except (RuntimeError, AssertionError) as error:
        asker.send((device, "", str(error).splitlines()[0]))
