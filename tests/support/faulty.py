"""Faulty tasks, one for each fault; trials import this module in their own process."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time

import numpy as np
import psutil

from archive.errors import MissingDataError
from archive.trainer.datasets import scikit_learn, splits
from archive.trainer.datasets.splits import Splits
from archive.trainer.tasks import registry
from archive.trainer.tasks.registry import Task, TrainingProtocol

PROTOCOL = dataclasses.replace(registry.DIABETES.protocol(), name="faulty/1", epochs=3)


def exits(_: TrainingProtocol) -> Splits:
    os._exit(7)


def segfaults(_: TrainingProtocol) -> Splits:
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)
    raise AssertionError


def is_killed(_: TrainingProtocol) -> Splits:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def is_killed_when_measured(protocol: TrainingProtocol) -> Splits:
    """Be killed as where memory runs out; trials, which have the priority of the fork server, are
    not."""
    if os.nice(0) > psutil.Process(os.getppid()).nice():
        is_killed(protocol)

    return scikit_learn.load("diabetes", protocol)


def babbles(_: TrainingProtocol) -> Splits:
    """Write what is no message into whatever the process has open, as native code may that has lost
    its way."""
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{entry}").startswith("socket:"):
                os.write(int(entry), b"\0\0\0\4junk")

    time.sleep(60)
    raise AssertionError


def hangs(_: TrainingProtocol) -> Splits:
    print("loading for ever")
    time.sleep(600)
    raise AssertionError


def raises(_: TrainingProtocol) -> Splits:
    raise ValueError("no such column")


def runs_out_of_memory(_: TrainingProtocol) -> Splits:
    raise MemoryError


def has_holes(protocol: TrainingProtocol) -> Splits:
    whole = scikit_learn.load("diabetes", protocol)
    inputs = whole.train.inputs.copy()
    inputs[3, 1] = np.nan
    return dataclasses.replace(whole, train=splits.DataPart(inputs, whole.train.targets))


def faulty(loader) -> Task:
    return dataclasses.replace(
        registry.DIABETES, name="faulty", protocols=(PROTOCOL,), loader=loader
    )


def prints(_: TrainingProtocol) -> Splits:
    os.write(2, b"from native code\n")
    print("and from Python")
    os._exit(3)


def asks_for_too_much(_: TrainingProtocol) -> Splits:
    # Programs that only name a fault need no torch.
    import torch

    torch.empty(1 << 60, dtype=torch.uint8)
    raise AssertionError


def breaks_the_device(_: TrainingProtocol) -> Splits:
    raise RuntimeError(
        "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be …"
    )


def is_not_here(_: TrainingProtocol) -> Splits:
    raise MissingDataError("the data of faulty are not found in /nowhere")


def has_no_files_left(_: TrainingProtocol) -> Splits:
    raise OSError(24, "Too many open files")


def tells_its_environment(_: TrainingProtocol) -> Splits:
    """Raise the names of the variables that Python has, and of those that the system shows."""
    with open("/proc/self/environ", "rb") as file:
        initial = [entry.partition(b"=")[0].decode() for entry in file.read().split(b"\0")]

    raise ValueError(f"{','.join(os.environ)}|{','.join(initial)}")


def never_answers(_: str, __: object) -> None:
    time.sleep(600)
