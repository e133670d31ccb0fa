"""Trainers that a search starts beside itself: how many threads they take, and where they log."""

from __future__ import annotations

import os
import subprocess

import pytest

from archive.cli.main import archive as root
from archive.cli.search import local_trainers
from archive.cli.search.local_trainers import LocalTrainers
from archive.settings import load
from archive.trainer.storage.history_gc import trainer_logs


@pytest.fixture
def started(monkeypatch):
    """What would have been started: each command, and the file that it logs to."""
    commands = []

    class Process:
        returncode = 0

        def __init__(self, command, *, stdout, **_):
            stdout.write(b"started\n")
            commands.append((command, stdout.name))

        def poll(self):
            return 0

    monkeypatch.setattr(subprocess, "Popen", Process)
    return commands


def test_cores_are_shared_out_as_far_as_they_may_be_used(started, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    monkeypatch.setattr("archive.cpu_count.available", lambda: 8)
    with LocalTrainers(4, "study", load(home=tmp_path, environment={})):
        pass
    assert {command[command.index("--threads") + 1] for command, _ in started} == {"2"}


def test_observers_are_handed_down_with_time_to_end(started, tmp_path):
    texts = ("tensorboard", "mlflow:uri=http://host:5000,experiment=mine")
    with LocalTrainers(1, "study", load(home=tmp_path, environment={}), observe=texts):
        pass
    with LocalTrainers(1, "study", load(home=tmp_path, environment={})):
        pass
    (observed, _), (plain, _) = started
    assert [observed[at + 1] for at, part in enumerate(observed) if part == "--observe"] == list(texts)
    assert observed[observed.index("--grace") + 1] == "30s"
    assert not {"--observe", "--grace"} & set(plain)


def test_limits_of_trials_reach_the_trainers_as_they_were_set(started, tmp_path):
    words = ["--stall", "5min", "--trial-timeout", "1.5h", "--scratch-limit", "0.5GiB", "--memory-limit", "2GB"]
    names = ("stall_seconds", "trial_seconds", "scratch_bytes", "memory_bytes")
    search, trainer = (root.get_command(None, name) for name in ("search", "trainer"))
    typed = search.make_context("search", words).params
    limits = {name: typed[name] for name in names}
    assert limits == dict(zip(names, (300.0, 5400.0, 2**29, 2 * 10**9), strict=True))
    with LocalTrainers(1, "study", load(home=tmp_path, environment={}), limits=limits):
        pass
    (command, _) = started.pop()
    at = command.index("trainer")
    received = trainer.commands["start"].make_context("start", command[at + 1 :]).params
    assert {name: received[name] for name in names} == limits


def test_each_study_has_logs_of_its_own(started, tmp_path):
    settings = load(home=tmp_path, environment={})
    for study in ("a/b", "a_b", "a b", "../a"):
        with LocalTrainers(2, study, settings):
            pass
    paths = [path for _, path in started]
    assert len(set(paths)) == len(paths) == 8
    assert {os.path.dirname(os.path.realpath(path)) for path in paths} == {os.path.realpath(trainer_logs(tmp_path))}


def test_a_log_does_not_grow_for_ever(started, tmp_path, monkeypatch):
    monkeypatch.setattr(local_trainers, "MOST_BYTES", 30)
    for _ in range(20):
        with LocalTrainers(1, "study", load(home=tmp_path, environment={})):
            pass
    sizes = {path.name: path.stat().st_size for path in trainer_logs(tmp_path).iterdir()}
    assert sizes.keys() == {"study-0.log", "study-0.log.1"}
    assert max(sizes.values()) <= 30 + len("started\n")
