"""Fixtures of the trainer's tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch

from archive.settings import environment
from tests.support import ROOT


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Train with one thread, as trials of these tests do: results are equal only for equal numbers
    of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def start(archive, store_settings, tmp_path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts daemons in separate processes, with these options."""
    daemons = []

    def start(**options) -> subprocess.Popen[bytes]:
        arguments = json.dumps({"device": "cpu", "threads": 1, "lease_seconds": 2, **options})
        command = [sys.executable, "-m", "tests.support.serve", arguments]
        with open(tmp_path / "daemon.log", "ab") as log:
            own = {**os.environ, **environment(store_settings)}
            daemons.append(subprocess.Popen(command, cwd=ROOT, env=own, stdout=log, stderr=log))

        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.kill()
        daemon.wait()
