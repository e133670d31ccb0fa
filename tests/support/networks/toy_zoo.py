"""A zoo of small networks and of models that fail in every way, built in processes of their own."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from archive.errors import UsageError
from archive.store.evaluations import TaskProtocol
from archive.store.records import Result
from archive.trainer.zoo.building import ZooNetwork
from archive.trainer.zoo.published import PublishedNetwork, PublishedResult
from tests.support.stores import cells

NAME = "toys"
PARAMS = 1_234_567
ORIGIN = {"source": "toys 1", "license": "MIT", "commit": "v1"}
HOSTILE = ("crash", "exit", "memory", "raise", "recurse", "refuse")


def build(reference: str) -> ZooNetwork:
    """Return the cell of a number, or fail as the name says."""
    print("a model that prints")
    if not reference.isdigit():
        return _FAULTS[reference]()

    return ZooNetwork(cells(1 + int(reference))[int(reference)].canonical, PARAMS, 10, "cell")


def build_marked(reference: str, folder: str) -> ZooNetwork:
    """Return a cell; the process of `killer` is killed, and at first of `killed once`."""
    mark = Path(folder, "mark")
    if reference == "killer" or (reference == "killed once" and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    return build("0")


def network(name: str, reference: str, recipes: int = 2, params: float = 1.23) -> PublishedNetwork:
    """Return a published network with a result for each of some recipes."""
    results = []
    for number in range(recipes):
        place = TaskProtocol("imagenet-1k", f"toys/r{number}@224", "maximise")
        top1 = 70.0 + number
        result = Result(top1, {"top1": top1}, provenance=ORIGIN)
        results.append(PublishedResult(place, f"{name}.r{number}", result, params, 0.00501))

    return PublishedNetwork(name, reference, tuple(results))


def _raise() -> ZooNetwork:
    raise ValueError("first line\nsecond line")


def _refuse() -> ZooNetwork:
    raise UsageError("no such operator: use another one")


def _recurse() -> ZooNetwork:
    return _recurse()


def _hang() -> ZooNetwork:
    while True:
        time.sleep(1)


def _fill() -> ZooNetwork:
    filled = []
    while True:
        filled.append(b"x" * 50_000_000)
        time.sleep(0.05)


def _crash() -> ZooNetwork:
    os.kill(os.getpid(), signal.SIGSEGV)
    return _hang()


_FAULTS = {
    "crash": _crash,
    "exit": lambda: sys.exit("the end"),
    "hang": _hang,
    "memory": _fill,
    "raise": _raise,
    "recurse": _recurse,
    "refuse": _refuse,
}
