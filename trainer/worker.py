"""One trial in a process of its own: what native code, memory or a signal does to it, it does to that trial alone.

    daemon                          fork server                  trial
    Trial.start(job) ── asks ─────> torch, once a daemon ─ fork ─> builds, trains, saves the weights
    Trial.messages() <─────────────────────── pipe ──────────────  Epoch …, then Finished or Failed, or silence

The fork server imports torch once, so a trial begins in milliseconds; the daemon itself never loads it. A trial that
ends without a last word was killed or crashed, and the exit status says by what. A trial whose daemon is gone
finds the pipe closed and ends at once.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import platform
import signal
import sys
import threading
import time
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from archive.errors import ArchiveError, CheckpointError, SettingsError, TrainingError
from archive.graph import Architecture
from archive.records import Result
from archive.trainer.tasks import Protocol, Task

log = logging.getLogger("archive.trainer")

_PRELOADED = ["archive.trainer.preload"]
_PARTING_SECONDS = 5.0
_SPINS = "1000"


@dataclass(frozen=True, slots=True)
class Job:
    """What a trial needs to know.

    Attributes:
        architecture: The network.
        task: What it learns.
        protocol: By which rules.
        seed: Of weights and batches.
        device: As torch names it.
        threads: Of the CPU; None leaves it to torch, which goes by OMP_NUM_THREADS.
        folder: Where the weights are saved.
        about: What is saved with them.
        hyperparameters: What differs from the protocol (`archive.trainer.hyperparameters`).
    """

    architecture: Architecture
    task: Task
    protocol: Protocol
    seed: int
    device: str
    threads: int | None
    folder: Path
    about: dict[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch is done; `metrics` are its entries of the curve."""

    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class Finished:
    """Training ended as it should, and the weights are on the disk."""

    result: Result


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no result; `retry` says whether another attempt may fare better."""

    reason: str
    retry: bool = False


Message = Epoch | Finished | Failed


class Trial:
    """The daemon's end of one trial.

    Args:
        job: What to train.

    Attributes:
        connection: Ready to read when there are messages, or the trial has ended.
        heard: When it was last heard of, by `time.monotonic`.
    """

    def __init__(self, job: Job) -> None:
        """Start the process.

        Raises:
            TrainingError: No process could be started.
        """
        self.connection, self._process = _start(_train, job)
        self.heard = time.monotonic()
        self._over = False

    @property
    def pid(self) -> int | None:
        """The process's id."""
        pid: int | None = self._process.pid
        return pid

    def messages(self) -> list[Message]:
        """Return what has arrived, without waiting; the last one ever is `Finished` or `Failed`."""
        arrived: list[Message] = []
        while not self._over and self.connection.poll():
            try:
                message: Message = self.connection.recv()
            except (EOFError, OSError):
                message = Failed(self._cause_of_death(), retry=True)
            arrived.append(message)
            self.heard = time.monotonic()
            self._over = not isinstance(message, Epoch)
        return arrived

    def end(self) -> None:
        """End the process, whatever it is doing, and wait until it is gone."""
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
    connection, process = _start(_probe, device)
    try:
        found, hardware, problem = connection.recv()
    except (EOFError, OSError):
        raise SettingsError(f"the device {device!r} cannot be used: torch crashed when asked for it") from None
    finally:
        process.join(_PARTING_SECONDS)
        connection.close()
    if problem:
        raise SettingsError(f"the device {device!r} cannot be used: {problem}")
    return found, hardware


def _start(target: Any, argument: Any) -> tuple[Connection, Any]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    # Threads that wait for each other spin before they sleep. On a core that another process wants, too, they spin away
    # its time: on a busy machine of two cores a trial took fifteen times as long. GNU's OpenMP reads this once.
    os.environ.setdefault("GOMP_SPINCOUNT", _SPINS)
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(argument, theirs), daemon=True)
    try:
        with _no_main_module():
            process.start()
    except (OSError, EOFError) as error:
        ours.close()
        raise TrainingError(f"no process could be started for the trial: {error}") from error
    finally:
        theirs.close()
    return ours, process


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Hide `__main__`, which a new process would otherwise import: the whole command line, or a user's script anew."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


# What follows runs in the trial's process.


def _train(job: Job, daemon: Connection) -> None:
    # Ctrl-C reaches every process of the terminal; the daemon decides what becomes of its trials.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with, args=(daemon,), daemon=True).start()
    try:
        message: Message = Finished(_result_of(job, daemon))
    except TrainingError as error:
        message = Failed(error.reason)
    except MemoryError:
        message = Failed("out of memory")
    except ArchiveError as error:
        message = Failed(str(error))
    except BrokenPipeError:
        return
    except Exception as error:
        log.exception("trial crashed")
        message = Failed(f"{type(error).__name__}: {error}")
    daemon.send(message)


def _leave_with(daemon: Connection) -> None:
    """Wait for the pipe to be closed at the other end, which never sends anything, and end the process."""
    wait([daemon])
    os._exit(1)


def _result_of(job: Job, daemon: Connection) -> Result:
    import torch

    from archive.trainer import checkpoint
    from archive.trainer.train import train

    if job.threads is not None:
        torch.set_num_threads(job.threads)
    # Weights that decay towards zero pass through denormal numbers, which a CPU multiplies a hundred times slower.
    torch.set_flush_denormal(True)
    outcome = train(
        job.architecture,
        job.task,
        job.protocol,
        seed=job.seed,
        device=job.device,
        on_epoch=lambda metrics: daemon.send(Epoch(metrics)),
        hyperparameters=job.hyperparameters,
    )
    environment: dict[str, Any] = {
        "host": platform.node(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        # A plain string: the class of torch's own would make the daemon import torch to read it.
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
    }
    about = {"task": job.task.name, "protocol": job.protocol.name, "seed": job.seed, **job.about}
    if job.hyperparameters:
        environment["hyperparameters"] = about["hyperparameters"] = dict(job.hyperparameters)
    saved = None
    try:
        saved = checkpoint.save(job.folder, job.architecture.canonical, outcome.weights, about)
    except CheckpointError as error:
        # The result took the time and answers the question: it is not given up for want of disk space.
        log.warning("weights not saved reason=%r", error.reason)
        environment["checkpoint"] = error.reason
    return Result(
        value=outcome.value,
        metrics={job.task.objective: outcome.value, **outcome.metrics},
        curve=outcome.curve,
        epochs=outcome.epochs,
        seconds=outcome.seconds,
        seed=job.seed,
        device=job.device,
        environment=environment,
        checkpoint=saved,
    )


def _probe(device: str, asker: Connection) -> None:
    import torch

    try:
        found = device if device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        torch.zeros(1, device=found)
        hardware = torch.cuda.get_device_name(found) if found.startswith("cuda") else platform.machine()
        asker.send((found, hardware, ""))
    except (RuntimeError, AssertionError) as error:
        asker.send((device, "", str(error).splitlines()[0]))
