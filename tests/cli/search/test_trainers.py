"""Trainers of a search: their command lines and logs on this machine, and what an engine is asked
for."""

from __future__ import annotations

import os
import subprocess

import pytest

from archive.errors import LaunchError
from archive.launchers import local, records, registry
from archive.launchers.base import LaunchedTrainer
from archive.launchers.records import TrainerFleet
from archive.searches.trainers import SearchTrainers
from archive.settings import load
from archive.trainer.storage.file_names import trainer_logs
from tests.support.commands import parsed, shell


@pytest.fixture
def started(monkeypatch):
    """What would have been started: each command, and the file that it logs to."""
    commands = []

    class Process:
        returncode = 0
        pid = os.getpid()

        def __init__(self, command, *, stdout, **_):
            stdout.write(b"started\n")
            commands.append((command, stdout.name))

        def poll(self):
            return 0

    monkeypatch.setattr(subprocess, "Popen", Process)
    # Everything that is started is this process, which nothing may stop.
    monkeypatch.setattr(local, "_signal", lambda process, number: None)
    monkeypatch.setattr(local.psutil, "wait_procs", lambda processes, timeout: ([], []))
    monkeypatch.setattr(SearchTrainers, "_wait", lambda self: None)
    return commands


def trainers(count, study, settings, **chosen):
    return SearchTrainers(registry.create("local", {}, settings), count, study, settings, **chosen)


def test_cores_are_shared_out_as_far_as_they_may_be_used(started, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    monkeypatch.setattr("archive.runtime.count_cores", lambda: 8)
    with trainers(4, "study", load(home=tmp_path, environment={})):
        pass

    assert len(started) == 4
    assert {command[command.index("--threads") + 1] for command, _ in started} == {"2"}


def test_observers_are_handed_down_with_time_to_end(started, tmp_path):
    texts = ("tensorboard", "mlflow:uri=http://host:5000,experiment=mine")
    with trainers(1, "study", load(home=tmp_path, environment={}), observe=texts):
        pass

    with trainers(1, "study", load(home=tmp_path, environment={})):
        pass

    (observed, _), (plain, _) = started
    assert [observed[at + 1] for at, part in enumerate(observed) if part == "--observe"] == list(
        texts
    )
    assert (
        observed[observed.index("--grace") + 1] == "30s"
        and plain[plain.index("--grace") + 1] == "8s"
    )
    assert "--observe" not in plain and "--idle" not in plain
    assert plain[plain.index("--parent") + 1] == str(os.getpid())


def test_limits_of_trials_reach_the_trainers_as_they_were_set(started, tmp_path):
    words = [
        "--stall",
        "5min",
        "--trial-timeout",
        "1.5h",
        "--scratch-limit",
        "0.5GiB",
        "--memory-limit",
        "2GB",
    ]
    names = ("stall_seconds", "trial_seconds", "scratch_bytes", "memory_bytes")
    typed = parsed("search", *words)
    limits = {name: typed[name] for name in names}
    assert limits == dict(zip(names, (300.0, 5400.0, 2**29, 2 * 10**9), strict=True))
    with trainers(1, "study", load(home=tmp_path, environment={}), limits=limits):
        pass

    (command, _) = started.pop()
    at = command.index("trainer")
    received = parsed("trainer", "start", *command[at + 1 :])
    assert {name: received[name] for name in names} == limits


def test_the_number_of_proxies_reaches_the_trainers(started, tmp_path):
    for chosen in (None, 0, 50):
        with trainers(1, "study", load(home=tmp_path, environment={}), proxies=chosen):
            pass

        (command, _) = started.pop()
        received = parsed("trainer", "start", *command[command.index("trainer") + 1 :])
        assert received["proxies"] == chosen


def test_the_number_of_devices_of_a_trial_reaches_the_trainers(started, tmp_path):
    with trainers(1, "study", load(home=tmp_path, environment={}), devices_per_trial=2):
        pass

    (command, _) = started.pop()
    received = parsed("trainer", "start", *command[command.index("trainer") + 1 :])
    assert (received["devices_per_trial"], received["slots"]) == (2, 1)


def test_each_study_has_logs_of_its_own(started, tmp_path):
    settings = load(home=tmp_path, environment={})
    for study in ("a/b", "a_b", "a b", "../a"):
        with trainers(2, study, settings):
            pass

    paths = [path for _, path in started]
    assert len(set(paths)) == len(paths) == 8
    assert {os.path.dirname(os.path.realpath(path)) for path in paths} == {
        os.path.realpath(trainer_logs(tmp_path))
    }
    # Nothing is left of a fleet whose search has ended.
    assert records.saved(settings) == []


def test_a_log_does_not_grow_for_ever(started, tmp_path, monkeypatch):
    monkeypatch.setattr(local, "MOST_BYTES", 30)
    for _ in range(20):
        with trainers(1, "study", load(home=tmp_path, environment={})):
            pass

    sizes = {path.name: path.stat().st_size for path in trainer_logs(tmp_path).iterdir()}
    assert sizes.keys() == {"study-0.log", "study-0.log.1"}
    assert max(sizes.values()) <= 30 + len("started\n")


def test_an_engine_is_asked_for_what_is_left_of_the_budget(tmp_path, monkeypatch):
    """A search that resumes takes over the trainers of one that was killed."""
    settings = load(home=tmp_path, uri="neo4j://db", environment={})
    ids = ["7_0"]
    clock = iter(range(0, 10_000, 60))
    launcher = registry.create("slurm", {"partition": "gpu"}, settings)
    kind = type(launcher)
    monkeypatch.setattr(
        kind, "running", lambda self, fleet: [LaunchedTrainer(id_, "running", "n1") for id_ in ids]
    )
    monkeypatch.setattr(
        kind, "start", lambda self, fleet, count: ids.extend(f"8_{at}" for at in range(count))
    )
    monkeypatch.setattr(kind, "stop", lambda self, fleet, own: ids.clear())
    monkeypatch.setattr(kind, "failures", lambda self, fleet, ended: [])
    search = SearchTrainers(launcher, 64, "a study", settings)
    search.keeper._clock = lambda: float(next(clock))
    with search as own:
        assert ids == ["7_0"]
        own.keep_alive(10, 20)
        assert len(ids) == 10
        (saved,) = records.saved(settings)
        # Trainers that have all left are replaced when there is work.
        assert records.is_attended(saved)
        assert saved.options["partition"] == "gpu" and (saved.lower, saved.upper) == (0, 64)
        assert "--parent" not in saved.arguments and "--idle" in saved.arguments
        # Those that have ended are not replaced beyond the work.
        del ids[:5]
        own.keep_alive(17, 20)
        assert len(ids) == 5
        assert own.absence().startswith("5 of 3 trainers run on the nodes of Slurm")

    assert not ids and records.saved(settings) == []


def test_a_search_whose_trainers_are_stopped_starts_none_and_ends(started, tmp_path):
    settings = load(home=tmp_path, environment={})
    with pytest.raises(
        LaunchError,
        match=r"the fleet search-local-study-\d+, were stopped by "
        r"archive launch stop: ",
    ):
        with trainers(1, "study", settings) as own:
            (fleet,) = records.saved(settings)
            own.keeper.stop()
            records.begin_stop(fleet)
            records.remove(fleet)
            own.keep_alive(0, 10)

    assert len(started) == 1 and not fleet.folder.exists()


def test_the_fleet_of_a_search_is_forgotten_when_its_process_has_ended(started, tmp_path):
    settings = load(home=tmp_path, environment={})
    # The number of a process that has ended may be that of another one.
    saved = [
        records.save(TrainerFleet(f"search-local-{name}-{process}", "local", settings, created=1.0))
        for name, process in (
            ("ended", os.getppid()),
            ("lives", 2**22 + 1),
            ("there", os.getppid()),
        )
    ]
    # The home of several machines.
    place = saved[-1].folder / "local" / "0.json"
    place.parent.mkdir()
    place.write_text('{"pid": 1, "created": 1.0, "host": "elsewhere"}')
    with records.attending(saved[1]), trainers(1, "study", settings):
        assert [fleet.name.split("-")[2] for fleet in records.saved(settings)] == [
            "lives",
            "there",
            "study",
        ]


def test_a_recipe_without_its_file_is_refused_before_anything_is_proposed(
    archive, store_settings, tmp_path
):
    path = store_settings.home / "recipes.toml"
    path.touch(0o600)
    path.write_text('[gone-away]\nfit = "no_such_training.py:fit"\n')
    with shell(store_settings, tmp_path) as user:
        told = user.types(
            "search", "--task", "diabetes", "--recipe", "gone-away", "--agent", "random", code=2
        ).stderr

    path.unlink()
    assert (
        f"'gone-away' cannot be loaded: there is no file {path.with_name('no_such_training.py')}"
        in told
    )
    assert not archive.studies.names()
