"""Shared parts of the tests of launchers: cheap stand-ins for trainers, and engines to run them
on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from archive.launchers import records
from archive.launchers.base import LaunchedTrainer, Launcher
from archive.launchers.records import TrainerFleet
from archive.settings import Settings
from tests.support import WHOLE
from tests.support.clusters import ray_cluster, slurm

TRAINER = """
echo "started $ARCHIVE_HOME $ARCHIVE_PASSWORD_FILE [$ARCHIVE_PASSWORD]" >> {folder}/diary
echo "no device of this name" >&2
trap 'echo returned >> {folder}/diary; exit 0' TERM
until [ -e {folder}/end ]; do sleep 0.1; done
exit $(cat {folder}/end)
"""
"""A process that starts and ends like a trainer: it notes its environment and its SIGTERM, and ends
by a file."""


@dataclass
class Engine:
    """A running engine.

    Attributes:
        options: Options of its launcher.
        seconds: Longest time for a trainer to start or end.
    """

    options: dict[str, Any]
    seconds: float


def _ray(folder: Path) -> Iterator[Engine]:
    if not WHOLE:
        pytest.skip("a Ray cluster takes ten seconds to start")

    with ray_cluster.cluster() as cluster:
        yield Engine({"address": cluster.address}, 120.0)


def _slurm(folder: Path) -> Iterator[Engine]:
    with (
        slurm.cluster(folder, kill_wait=5) as cluster,
        mock.patch.dict(os.environ, cluster.environment),
    ):
        yield Engine({}, 90.0)


ENGINES: dict[str, Callable[[Path], Any]] = {
    "local": lambda folder: nullcontext(Engine({}, 60.0)),
    "ray": contextmanager(_ray),
    "slurm": contextmanager(_slurm),
}
"""Context managers of engines by the launcher's name: each gives an `Engine`, or skips the test."""


@contextmanager
def engine(name: str, folder: Path) -> Iterator[Engine]:
    """Start the engine of a launcher; skip the test where there is none."""
    if name not in ENGINES:
        pytest.skip(f"no engine for {name} on this machine")

    with ENGINES[name](folder) as opened:
        yield opened


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Let fleets start `TRAINER` instead of trainers, and return its diary."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "trainer.sh"
    script.write_text(TRAINER.format(folder=folder))
    monkeypatch.setattr(
        TrainerFleet,
        "command",
        lambda fleet, python="": ["/bin/bash", str(script), "trainer", *fleet.arguments],
    )
    return folder / "diary"


def fleet(settings: Settings, name: str, **changes: Any) -> TrainerFleet:
    """Return a saved fleet of up to three trainers."""
    return records.save(
        TrainerFleet(
            f"{name}-test", name, settings, **{"upper": 3, "grace_seconds": 5.0, **changes}
        )
    )


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait until a condition gives something true, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.1)

    return found


def ids(launcher: Launcher, fleet: TrainerFleet, state: str | None = None) -> list[str]:
    """Return the ids of a fleet's trainers, all or those in a state."""
    found: list[LaunchedTrainer] = launcher.running(fleet)
    return [trainer.id for trainer in found if state in (None, trainer.state)]
