"""The commands in the docstrings of both programs for faults, run as they are written."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import whole
from tests.support.faults import chaos, kill_everything

PROGRAMS = {"chaos.py": chaos, "kill_everything.py": kill_everything}


@pytest.mark.parametrize(
    ("program", "elsewhere"),
    [
        ("chaos.py", True),
        ("kill_everything.py", False),
        whole("chaos.py", False),
        whole("kill_everything.py", True),
    ],
)
def test_the_documented_command_starts(program, elsewhere, tmp_path):
    documented = next(
        line
        for line in str(PROGRAMS[program].__doc__).splitlines()
        if line.startswith("    python ")
    )
    file = shlex.split(documented)[1]
    done = run(
        str(chaos.ROOT / file) if elsewhere else file,
        "--help",
        folder=tmp_path if elsewhere else chaos.ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {program}")


@pytest.mark.whole
def test_a_tiny_chaos_runs_to_its_end_from_another_folder(tmp_path):
    size = ("--workers", "1", "--tabular", "2", "--real", "0", "--restarts", "0", "--every", "1000")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    done = run(str(chaos.ROOT / "tests" / "support" / "faults" / "chaos.py"), *size, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, nothing doubled" in done.stdout
    assert not list(folder.iterdir())


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Type `python …` in a folder, in an environment that knows the installed package alone."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=240)
