"""Shared parts of the tests: the place of the reference data, and small helpers.

Trials and daemons of the tests import modules beside this one, in their own processes: this one
imports pytest and hypothesis, which take a fifth of a second, where they are used.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import hypothesis

ROOT = Path(__file__).resolve().parents[2]
WHOLE = os.environ.get("ARCHIVE_TEST_WHOLE") == "1"
"""Whether every test runs, on every server and in full size."""


def java_only() -> dict[str, str]:
    """The variables of the environment that settings of an embedded server of the tests have: no
    automatic dumps."""
    options = {name: value for name, value in os.environ.items() if name == "ARCHIVE_JAVA_OPTIONS"}
    return {**options, "ARCHIVE_DUMP_SECONDS": "0"}


def whole(*parameters: Any) -> Any:
    """Parameters of a test that run with the whole matrix only."""
    import pytest

    return pytest.param(*parameters, marks=pytest.mark.whole)


def installed_agents() -> list[str]:
    """The names of the agents whose package is installed: SMAC3 is in no environment of the tests
    unless somebody adds it."""
    from archive import agents

    names = list(agents.names())
    if importlib.util.find_spec("smac") is None:
        names.remove("smac")

    return names


def data_dir() -> Path:
    """The folder with `golden/` and `data/`: ARCHIVE_DATA_DIR, or `shared` beside the repository.

    The reference data is not part of the repository; without it, the tests that need it are
    skipped.
    """
    import pytest

    given = os.environ.get("ARCHIVE_DATA_DIR")
    folder = Path(given) if given else ROOT.parent / "shared"
    if not folder.joinpath("golden").is_dir():
        if given:
            pytest.fail(f"ARCHIVE_DATA_DIR={given} has no folder golden/")

        pytest.skip(f"no reference data in {folder}: set ARCHIVE_DATA_DIR")

    return folder


@functools.cache
def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def golden(name: str) -> Any:
    """The golden numbers of one file, for instance `golden("otmann.json")`; do not change what you
    get."""
    return _load(data_dir() / "golden" / name)


def data_lines(name: str) -> list[str]:
    """The lines of a text file in `data/`, unpacked when its name ends in .gz."""
    path = data_dir() / "data" / name
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as file
    ):
        return file.read().splitlines()


def examples(times: float) -> hypothesis.settings:
    """Settings with a multiple of the profile's number of examples; the rest is the profile's.

    A test takes more where an example costs microseconds and the inputs are texts, of which few are
    instructive; fewer where an example trains a network, asks a server or solves a problem by brute
    force.
    """
    import hypothesis

    profile = hypothesis.settings.default
    assert profile is not None
    return hypothesis.settings(max_examples=max(1, round(times * profile.max_examples)))


def repeatable(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of a trial that are the same in each run: not the latency and memory that
    it measured."""
    return {
        name: value for name, value in metrics.items() if not name.startswith(("latency_", "peak_"))
    }


def wait_until(condition: Any, seconds: float = 30.0, what: str = "the condition") -> Any:
    """Wait for a condition to be truthy, and return its value; fail when it does not come."""
    import pytest

    deadline = time.monotonic() + seconds
    pause = 0.02
    while not (met := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not come true in {seconds:g} s")

        # Many conditions are queries, and take the time of what they wait for.
        time.sleep(pause)
        pause = min(1.2 * pause, 0.15)

    return met
