"""Recipes of the tests, each for one behaviour; trials import this module in their own process."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import torch

from archive.trainer.recipes.base import FitResult
from archive.trainer.recipes.context import TrialContext
from archive.trainer.trial import messages


def depth(trial: TrialContext) -> FitResult:
    """Report the depth of the network as its metric, without a training."""
    for epoch in range(1, trial.epochs + 1):
        if trial.report(epoch, {"depth": trial.architecture.depth, "epochs/2": epoch / 2}):
            break

    return FitResult(
        {"depth": trial.architecture.depth, trial.task.objective: 0.5}, environment={"by": "depth"}
    )


def tells_its_gpus(trial: TrialContext) -> FitResult:
    """Report the number in CUDA_VISIBLE_DEVICES."""
    return FitResult({trial.task.objective: float(os.environ["CUDA_VISIBLE_DEVICES"])})


def needs_most_of_the_memory(trial: TrialContext) -> FitResult:
    """Run out of memory beside another trial of this recipe: one fits, two do not."""
    with open(trial.scratch.parent / "memory", "w") as memory:
        try:
            fcntl.flock(memory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 3.00 MiB."
            ) from None

        for epoch in range(1, 4):
            trial.report(epoch, {trial.task.objective: 0.5})
            time.sleep(0.5)

    return FitResult({trial.task.objective: 0.5})


NO_FUNCTION = 3


def raises(trial: TrialContext) -> None:
    raise ValueError("no such column")


def raises_in_a_library(trial: TrialContext) -> None:
    _parsed("five")


def _parsed(text: str) -> Fraction:
    return Fraction(text)


def raises_at_length(trial: TrialContext) -> None:
    raise ValueError("x" * 1_000_000)


def leaves(trial: TrialContext) -> None:
    sys.exit(3)


def is_cancelled(trial: TrialContext) -> None:
    raise asyncio.CancelledError("by a library")


def raises_without_words(trial: TrialContext) -> None:
    class SpeechlessError(Exception):
        def __str__(self) -> str:
            raise AttributeError("column")

    raise SpeechlessError


def dies(trial: TrialContext) -> None:
    os._exit(7)


def finds_the_disk_full(trial: TrialContext) -> None:
    Path("/dev/full").write_text("x")


def loses_its_helper(trial: TrialContext) -> None:
    """Write to a program that has ended."""
    trial.report(1, {"valid_mse": 1.0})
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as helper:
        helper.wait()
        os.write(helper.stdin.fileno(), b"x")


def diverges(trial: TrialContext) -> None:
    trial.report(1, {"loss": float("inf")})


def reports_from_a_fork(trial: TrialContext) -> FitResult:
    pid = os.fork()
    # Both go on: the child fails when it reports, and cannot end the trial in its parent's name.
    if pid == 0:
        trial.report(1, {"valid_mse": 0.0})

    os.waitpid(pid, 0)
    trial.report(1, {"valid_mse": 1.0})
    return FitResult()


def ends_when_told(trial: TrialContext) -> FitResult:
    """Train until the trainer stops, with a result."""
    trial.report(1, {trial.task.objective: 1.0})
    while not trial.stop:
        time.sleep(0.05)

    return FitResult(ended="enough")


def hangs(trial: TrialContext) -> None:
    trial.report(1, {"valid_mse": 1.0})
    time.sleep(600)


def hangs_in_native_code(trial: TrialContext) -> None:
    """Keep the interpreter's lock, so that no thread of the process runs any more."""
    ctypes.PyDLL(None).sleep(600)


def babbles(trial: TrialContext) -> None:
    """Write what is no message into the pipe."""
    _to_the_pipe(b"\0\0\0\4junk")


def stammers(trial: TrialContext) -> None:
    """Begin a message, and never end it."""
    _to_the_pipe(messages._HEADER.pack(messages._MAGIC, 1000) + b"{")


def boasts(trial: TrialContext) -> None:
    """Announce a message that would fill the memory."""
    _to_the_pipe(messages._HEADER.pack(messages._MAGIC, 2**32 - 1))


def _to_the_pipe(content: bytes) -> None:
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{entry}").startswith("socket:"):
                os.write(int(entry), content)

    time.sleep(600)


def closes_everything(trial: TrialContext) -> None:
    os.closerange(3, 256)
    time.sleep(600)


def dies_while_its_child_holds_the_pipe(trial: TrialContext) -> None:
    if os.fork() == 0:
        time.sleep(600)

    os._exit(7)


def prints(trial: TrialContext) -> dict[str, float]:
    """Write what is no message to the standard streams, from Python, native code and a program."""
    print('{"kind": "TrialFailed"}')
    os.write(1, bytes(range(256)))
    os.write(2, b"native\n")
    subprocess.run(["echo", "a program"], check=True)
    return {"valid_mse": 1.0}


def litters(trial: TrialContext) -> dict[str, float]:
    """Leave files where a recipe may put them."""
    Path("here.txt").write_text("x")
    os.close(tempfile.mkstemp()[0])
    trial.scratch.joinpath("there.txt").write_text("x")
    closed = trial.scratch / "closed"
    closed.mkdir()
    closed.joinpath("file").write_text("x")
    closed.chmod(0)
    return {"valid_mse": float(len(list(trial.scratch.iterdir())))}


def leaves_files_on_a_slow_disk(trial: TrialContext) -> dict[str, float]:
    Path("here.txt").write_text("x")
    shutil.rmtree = lambda *_, **__: time.sleep(600)  # type: ignore[assignment]
    return {"valid_mse": 1.0}


def fills_the_disk(trial: TrialContext) -> None:
    with open("large", "wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()
            time.sleep(0.02)


def hoards(trial: TrialContext) -> None:
    """Take more and more memory, in a child process."""
    pid = os.fork()
    hoard: list[bytes] = []
    while pid == 0 and len(hoard) < 100:
        hoard.append(b"x" * (20 << 20))
        time.sleep(0.05)

    time.sleep(600)


def works_in_processes(trial: TrialContext) -> dict[str, float]:
    """Start workers as the data loaders of torch do."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        total = sum(pool.map(float, range(8)))
        # It would hold the end of the pool up if the signal did not end it.
        pool.apply_async(time.sleep, (600,))
        time.sleep(0.3)

    return {"valid_mse": total}


def family(trial: TrialContext) -> None:
    """Start processes in all ways, note their ids, and end as the hyperparameter says."""
    shell = subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600"])
    session = subprocess.Popen(["sleep", "600"], start_new_session=True)
    forked = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    forked.start()
    daemon = subprocess.run(
        [sys.executable, "-c", DAEMON], check=True, capture_output=True, text=True
    )
    pids = [os.getpid(), shell.pid, session.pid, forked.pid, int(daemon.stdout)]
    Path(trial.hyperparameters["note"]).write_text(" ".join(map(str, pids)))
    end = trial.hyperparameters["end"]
    if end == "raises":
        raise ValueError("the end")

    if end == "dies":
        os._exit(7)

    if end == "hangs":
        time.sleep(600)

    trial.report(1, {"valid_mse": 1.0})


DAEMON = """
import os, sys, time
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        os.write(write, str(os.getpid()).encode())
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        time.sleep(600)
    os._exit(0)
os.wait()
print(os.read(read, 99).decode())
"""
