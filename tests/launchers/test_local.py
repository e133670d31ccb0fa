"""Trainers on this machine: each that runs is on record."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from archive.errors import LaunchError
from archive.launchers import local, records
from archive.launchers.local import LocalLauncher
from archive.settings import Settings
from tests.support.clusters.launchers import fleet


@pytest.fixture
def own(tmp_path):
    return records.save(fleet(Settings(tmp_path), "local"))


@pytest.fixture
def children(monkeypatch):
    """The processes that were started; they ignore their options, and sleep."""
    started = []

    class Recorded(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(local.subprocess, "Popen", Recorded)
    command = [sys.executable, "-c", "import time; time.sleep(600)", "trainer"]
    monkeypatch.setattr(local.TrainerFleet, "command", lambda self: command)
    yield started
    for child in started:
        child.kill()
        child.wait()


def test_a_trainer_without_a_record_is_ended(own, children):
    (own.folder / "local").write_text("no folder")
    with pytest.raises(
        LaunchError,
        match=r"a trainer was ended, as its record .*0\.json cannot "
        r"be written: ",
    ):
        LocalLauncher().start(own, 2)

    (child,) = children
    assert child.poll() is not None
    assert LocalLauncher().running(own) == []


def test_ctrl_c_before_the_record_is_written_ends_the_trainer(own, children, monkeypatch):
    def interrupted(path, content):
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "write_atomically", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LocalLauncher().start(own, 1)

    assert children[0].poll() is not None


def test_a_folder_of_logs_that_cannot_be_made_is_named(own, children):
    (own.settings.home / "logs").write_text("no folder")
    with pytest.raises(LaunchError, match=r"a trainer cannot be started: .*logs"):
        LocalLauncher().start(own, 1)

    assert children == []


def test_trainers_are_known_again_after_the_clock_was_set(own, children, monkeypatch):
    launcher = LocalLauncher()
    start = psutil.Process.create_time
    launcher.start(own, 1)
    (trainer,) = launcher.running(own)
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: start(self) + 3600.0)
    assert launcher.running(own) == [trainer]
    other = replace(own, arguments=("--study", "other"))
    assert launcher.running(other) == []
    monkeypatch.undo()
