"""The script for sbatch, and what Slurm's commands answer."""

from __future__ import annotations

import subprocess

import pytest

from archive.errors import LaunchError, UsageError
from archive.launchers import records, registry
from archive.launchers.records import TrainerFleet
from archive.settings import Settings


@pytest.fixture
def settings(tmp_path):
    return Settings(tmp_path / "a home, 50%", uri="neo4j+s://db:7687", user="me", password="s3cr3t")


def fleet(settings, **changes):
    return TrainerFleet(
        **{"name": "slurm-s", "engine": "slurm", "settings": settings, "upper": 64, **changes}
    )


def test_a_script_asks_for_what_was_given(settings):
    text = (
        "slurm:partition=gpu,account=lab,gpus=a100:2,cpus=8,memory=16GiB,time=8h,constraint=a100|h100,"
        "setup=module load cuda,setup=ulimit -n 4096,sbatch=--exclude=n7,python=/opt/env/bin/python"
    )
    own = fleet(settings, arguments=("--study", "it's", "--slots", "2"), slots=2)
    lines = registry.create_from(text, settings).preview(own, 64).splitlines()
    options = [line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")]
    assert {
        "--array=0-63", "--partition=gpu", "--account=lab", "--gres=gpu:a100:2", "--cpus-per-task=8", "--mem=16384M",
        "--time=480", '--constraint="a100|h100"', "--exclude=n7", "--requeue", "--open-mode=append",
        "--signal=B:TERM@180",
        f'--output="{settings.home.parent}/a home, 50%%/logs/trainers/{own.id}-%A_%a.log"',
    } <= set(options)  # fmt: skip
    # The options end at the first command: sbatch reads none after it.
    assert lines[1 : len(options) + 1] == [f"#SBATCH {option}" for option in options]
    assert lines[-7:] == [
        "export OMP_NUM_THREADS=4", "module load cuda", "ulimit -n 4096",
        "left=$((28800 - SECONDS - 180))",
        'if [ "$left" -gt 8 ]; then set -- --max-time "${left}s"; else left=0; fi',
        "late=$((SECONDS + left * 9 / 10 - 8))",
        ("exec /opt/env/bin/python -P -m archive.cli.main trainer --study 'it'\"'\"'s' --slots 2 "
        "\"$@\""),
    ]  # fmt: skip


def test_a_trainer_on_several_nodes_has_its_trials_on_all(settings):
    given = {"nodes": 2, "gpus": "4", "setup": ("true",)}
    text = registry.create("slurm", given, settings).preview(fleet(settings), 1)
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n" in text
    assert " trainer --trials-on slurm " in text
    alone = registry.create("slurm", {}, settings).preview(fleet(settings), 1)
    assert "--nodes=1\n#SBATCH --ntasks=1\n" in alone and "--trials-on" not in alone


def test_options_of_sbatch_are_one_word(settings):
    given = {"sbatch": ["--comment=a b #c", '--mail-user="me"', "--exclusive", "--exclude=n[1-3]"]}
    lines = registry.create("slurm", given, settings).preview(fleet(settings), 1).splitlines()
    assert {'#SBATCH --comment="a b #c"', '#SBATCH --mail-user="me"', "#SBATCH --exclusive"} < set(
        lines
    )
    assert "#SBATCH --exclude=n[1-3]" in lines


@pytest.mark.parametrize(("time", "warning"), [("3min", "3min"), ("2min", "3min"), ("1h", "2h")])
def test_a_time_limit_without_time_to_train_is_refused(settings, time, warning):
    launcher = registry.create("slurm", {"time": time, "warning": warning}, settings)
    with pytest.raises(
        UsageError,
        match=r"has no time to train: .*give it a longer --time or a "
        r"shorter --warning",
    ):
        launcher.preview(fleet(settings), 1)


def test_options_come_from_the_configuration(tmp_path):
    settings = Settings(
        tmp_path, uri="neo4j://db", launch={"slurm": {"partition": "gpu", "time": "4h", "cpus": 8}}
    )
    own = fleet(settings)
    text = registry.create("slurm", {"time": 390.0}, settings).preview(own, 1)
    assert "--partition=gpu" in text and "--time=7\n" in text and "--cpus-per-task=8" in text


def test_more_jobs_than_an_array_may_have_are_several_arrays(settings):
    text = registry.create("slurm", {}, settings).preview(fleet(settings), 2500)
    assert [line for line in text.splitlines() if "--array" in line] == [
        "#SBATCH --array=0-999", "#SBATCH --array=0-999", "#SBATCH --array=0-499",
    ]  # fmt: skip


def test_a_script_finds_the_archive_by_files_of_the_fleet(settings, tmp_path):
    """Run the script's variables in a shell that has the login of the caller."""
    own = records.save(fleet(settings))
    script = registry.create("slurm", {}, settings).preview(own, 1)
    assert "s3cr3t" not in script and own.password_file.stat().st_mode & 0o777 == 0o600
    shown = script[: script.index("exec ")] + "env\n"
    caller = {"ARCHIVE_PASSWORD": "other", "ARCHIVE_DATABASE": "theirs", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["bash"], input=shown, capture_output=True, text=True, env=caller, check=True
    )
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert {name: variables[name] for name in ("ARCHIVE_HOME", "ARCHIVE_DB", "ARCHIVE_USER")} == {
        "ARCHIVE_HOME": str(settings.home), "ARCHIVE_DB": "neo4j+s://db:7687", "ARCHIVE_USER": "me",
    }  # fmt: skip
    assert (
        variables["ARCHIVE_PASSWORD_FILE"] == str(own.password_file)
        and variables["ARCHIVE_FLEET"] == own.name
    )
    assert not {"ARCHIVE_PASSWORD", "ARCHIVE_DATABASE"} & set(variables)
    records.remove(own)
    assert not own.folder.exists()


@pytest.mark.parametrize(
    ("options", "end", "seconds"),
    [
        ({"time": 7200.0}, "", 7020),
        ({"time": 7200.0, "warning": 3600.0}, "", 3600),
        ({}, "$(date -d '1 hour' +%FT%T)", 3420),
        ({}, "N/A", None),
        ({}, None, None),
    ],
)
def test_a_trainer_gets_the_time_of_its_job(settings, tmp_path, monkeypatch, options, end, seconds):
    folder = tmp_path / "bin"
    folder.mkdir()
    if end is not None:
        (folder / "squeue").write_text(f'#!/bin/sh\n[ "$2" = --jobs=7 ] && echo "{end}"\n')
        (folder / "squeue").chmod(0o755)

    monkeypatch.setattr(TrainerFleet, "command", lambda fleet, python="": ["echo", "trainer"])
    script = registry.create("slurm", options, settings).preview(fleet(settings), 1)
    caller = {"PATH": f"{folder}:/usr/bin:/bin", "SLURM_JOB_ID": "7"}
    if end is None:
        script = script.replace("squeue", "no-squeue")

    done = subprocess.run(
        ["bash"], input=script, capture_output=True, text=True, env=caller, check=True
    )
    first, *limit = done.stdout.split()
    assert first == "trainer" and len(limit) == (2 if seconds else 0)
    if seconds:
        # A loaded machine needs a moment to get here.
        assert (
            limit[0] == "--max-time" and seconds - 30 <= int(limit[1].removesuffix("s")) <= seconds
        )


def test_a_users_own_time_for_the_trainers_is_kept(settings):
    own = fleet(settings, arguments=("--max-time", "1h"))
    script = registry.create("slurm", {"time": 7200.0}, settings).preview(own, 1)
    assert script.count("--max-time") == 1 and '"$@"' not in script


@pytest.mark.parametrize("requeued", [True, False])
def test_a_job_requeues_itself_at_its_limit_only(settings, tmp_path, monkeypatch, requeued):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "scontrol").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    (folder / "scontrol").chmod(0o755)
    # A trainer that needs a moment to return its proposals.
    trainer = f"trap 'sleep 0.2; echo returned >> {tmp_path}/diary; exit 0' TERM; "
    trainer += "sleep 0.2; kill -USR1 $PPID; sleep 5 & wait $!" if requeued else "exit 3"
    monkeypatch.setattr(TrainerFleet, "command", lambda fleet, python="": ["bash", "-c", trainer])
    script = registry.create("slurm", {"requeue_at_limit": True}, settings).preview(
        fleet(settings), 1
    )
    assert "--signal=B:USR1@180" in script
    path = tmp_path / "script.sh"
    path.write_text(script)
    job = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3", "PATH": f"{folder}:/usr/bin:/bin"}
    code = subprocess.run(["bash", str(path)], env=job, timeout=30).returncode
    assert code == (0 if requeued else 3)
    assert (tmp_path / "asked").exists() == requeued
    if requeued:
        assert (tmp_path / "asked").read_text() == "requeue 7_3\n" and (
            tmp_path / "diary"
        ).read_text() == "returned\n"


@pytest.mark.parametrize(
    ("trainer", "passed", "requeued"),
    [
        ("exit 0", 7011, True),
        ("exit 3", 7011, True),
        ("exit 1", 7011, False),
        ("exit 0", 3600, False),
        ("kill -TERM $PPID; exit 0", 7011, False),
    ],
)
def test_a_trainer_that_ends_just_before_the_limit_comes_back(
    settings, tmp_path, monkeypatch, trainer, passed, requeued
):
    """Not after an end for want of work, an error, or SIGTERM, which scancel sends to the shell,
    too."""
    monkeypatch.setattr(TrainerFleet, "command", lambda fleet, python="": ["bash", "-c", trainer])
    options = {
        "time": 7200.0,
        "requeue_at_limit": True,
        "setup": (f"SECONDS={passed}", 'scontrol() { echo "$@"; }'),
    }
    script = registry.create("slurm", options, settings).preview(fleet(settings), 1)
    job = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["bash"], input=script, capture_output=True, text=True, env=job, timeout=30
    )
    assert done.stdout == ("requeue 7_3\n" if requeued else "")


def test_a_machine_without_slurm_is_named(settings, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    launcher = registry.create("slurm", {}, settings)
    with pytest.raises(
        LaunchError, match="squeue is not on this machine: run this on a login node"
    ):
        launcher.running(fleet(settings))

    assert launcher.elsewhere()
