"""`archive launch`: fleets on this machine, and what is refused before anything starts."""

from __future__ import annotations

import json

import pytest

from archive.cli.launch import engines
from archive.cli.launch.engines import plan_fleet
from archive.errors import LaunchError
from archive.launchers import keeper, records, registry
from archive.launchers.local import LocalLauncher
from archive.launchers.records import fleets_folder
from archive.queue import workers
from archive.searches.interruption import InterruptedBySignal
from archive.settings import Settings
from tests.support.clusters.launchers import stand_in, until
from tests.support.commands import shell
from tests.support.json_documents import check
from tests.support.stores import cells, propose


@pytest.fixture
def user(archive, store_settings, tmp_path, monkeypatch):
    stand_in(monkeypatch, tmp_path / "stand-in")
    monkeypatch.setattr(engines, "LOOK_SECONDS", 0.1)
    with shell(store_settings, tmp_path) as opened:
        yield opened
        opened.types("launch", "stop", "--all")


def test_the_table_of_a_configuration_reaches_trainers_with_another_home(tmp_path):
    table = {"idle": "1h", "grace": "20min", "slots": 4, "lease": "60s"}
    settings = Settings(tmp_path, uri="bolt://db:7687", trainer=table)
    launcher = registry.create_from("slurm", settings)
    fleet = plan_fleet(settings, launcher, None, None, (0, 1), ())
    assert fleet.arguments == (
        "--idle",
        "1h",
        "--wait",
        "10min",
        "--grace",
        "20min",
        "--slots",
        "4",
    )
    assert (fleet.slots, fleet.grace_seconds) == (4, 1200.0)
    # The command line comes first.
    fleet = plan_fleet(settings, launcher, None, None, (0, 1), ("--slots", "2", "--grace", "5s"))
    assert (fleet.slots, fleet.grace_seconds) == (2, 5.0)


def test_a_fleet_is_started_listed_and_stopped(user, archive):
    propose(archive, cells(1))
    arguments = ("--trainers", "2", "--study", "study")
    (fleet,) = check(
        "launch local",
        user.types("launch", "local", *arguments, "--json", "--", "--slots", "2").stdout,
    )
    assert fleet["fleet"] == "local-study" and len(fleet["trainers"]) == 2
    user.types("launch", "local", *arguments[:2], "--name", "other")
    (listed,) = check("launch list", user.types("launch", "list", "--json").stdout)
    assert [(each["fleet"], each["study"], len(each["trainers"])) for each in listed["fleets"]] == [
        ("local-study", "study", 2), ("other", None, 2),
    ]  # fmt: skip
    assert (
        "there is a fleet 'other'"
        in user.types("launch", "local", "--name", "other", code=2).stderr
    )
    (stopped,) = check("launch stop", user.types("launch", "stop", "local-study", "--json").stdout)
    assert stopped == {"schema_version": 1, "fleets": ["local-study"], "trainers": 2}
    (left,) = json.loads(user.types("launch", "list", "--json").stdout)["fleets"]
    assert left["fleet"] == "other" and len(left["trainers"]) == 2


def test_fleets_whose_trainers_have_left_are_shown_as_ended_and_removed(
    user, archive, store_settings, tmp_path
):
    for name in ("left", "followed"):
        user.types("launch", "local", "--trainers", "1", "--name", name)

    saved = {fleet.name: fleet for fleet in records.saved(store_settings)}

    def ended():
        (listed,) = check("launch list", user.types("launch", "list", "--json").stdout)
        return [each["fleet"] for each in listed["fleets"] if each["ended"]]

    assert ended() == []
    assert user.types("launch", "stop", "--ended").stderr == "no fleet has ended\n"
    (tmp_path / "stand-in" / "end").write_text("0")
    with records.attending(saved["followed"]):
        until(ended, 60.0, "the end of the trainers")
        # Its command may start a trainer at any time.
        until(
            lambda: not LocalLauncher().running(saved["followed"]), 60.0, "the end of the other one"
        )
        assert ended() == ["left"]
        shown = user.types("launch", "list")
        assert [
            line.split()[-1] for line in shown.stdout.splitlines() if line.startswith("left")
        ] == ["ended"]
        assert shown.stderr == (
            "1 fleet ended; remove from the list with: archive launch stop --ended\n"
        )
        (stopped,) = check("launch stop", user.types("launch", "stop", "--ended", "--json").stdout)
        assert (stopped["fleets"], stopped["trainers"]) == (["left"], 0)

    assert ended() == ["followed"]
    assert [fleet.name for fleet in records.saved(store_settings)] == ["followed"]


def reason(settings) -> str:
    """Return why no other machine can reach a server of the tests."""
    return (
        "a database that other machines reach"
        if settings.embedded
        else ("an address that other machines reach")
    )


def test_mistakes_show_before_anything_starts(user, store_settings, tmp_path, monkeypatch):
    def said(*arguments):
        return user.types("launch", *arguments, code=2).stderr.strip()

    assert "No such option '--slot'" in said("local", "--", "--slot", "2")
    assert said("slrm") == "error: unknown engine 'slrm': did you mean slurm?"
    assert said("ssh") == f"error: unknown engine 'ssh': known: {', '.join(registry.names())}"
    assert said("lsit") == "error: unknown command 'lsit': did you mean list?"
    assert "'3..1' is no number of trainers" in said("local", "--trainers", "3..1")
    assert "must be a duration such as 90s" in said("slurm", "--time", "soon")
    assert "threads of the launcher local must be a whole number >= 1, got '0'" in said(
        "local", "--threads", "0"
    )
    assert said("local", "--study", "nope") == (
        "error: unknown study 'nope': the archive has none yet"
    )
    assert said("stop") == (
        "error: name the fleets to stop (archive launch list), or give --all or --ended"
    )
    assert user.types("launch", "stop", "--all").stderr == "there are no fleets\n"
    # Other machines, as far as this one knows: Slurm's commands are not here.
    monkeypatch.setitem(user.environment, "PATH", str(tmp_path))
    refused = said("slurm")
    assert (
        refused.startswith(f"error: archive launch slurm needs {reason(store_settings)}")
        and "\n" not in refused
    )
    assert ("archive load" in refused) is store_settings.embedded
    refused = user.types("search", "--on", "slurm:partition=gpu", code=2).stderr
    assert refused.startswith(f"error: archive search --on slurm needs {reason(store_settings)}")
    monkeypatch.setitem(user.environment, "ARCHIVE_DB", "neo4j://localhost:7687")
    assert "neo4j://localhost:7687 means each machine itself" in said("slurm")
    assert json.loads(user.types("launch", "list", "--json").stdout)["fleets"] == []


def test_a_dry_run_prints_the_script_and_starts_nothing(
    user, store_settings, tmp_path, monkeypatch
):
    monkeypatch.setitem(user.environment, "PATH", str(tmp_path))
    arguments = ("--dry-run", "--trainers", "0..64", "--gpus", "1", "--", "--slots", "2")
    done = user.types("launch", "slurm", *arguments, code=2)
    # The exit code is that of the launch itself, which is refused.
    assert done.stderr.startswith(f"error: archive launch slurm needs {reason(store_settings)}")
    assert done.stdout.startswith("#!/bin/bash\n#SBATCH --job-name=archive-slurm-")
    assert "#SBATCH --array=0-63\n" in done.stdout and "#SBATCH --gres=gpu:1\n" in done.stdout
    assert "--slots 2" in done.stdout.splitlines()[-1]
    assert json.loads(user.types("launch", "list", "--json").stdout)["fleets"] == []


def test_a_fleet_that_cannot_be_stopped_keeps_no_other_one(user, store_settings, monkeypatch):
    for name in ("broken", "other"):
        user.types("launch", "local", "--trainers", "1", "--name", name)

    whole = LocalLauncher.running

    def running(self, fleet):
        if fleet.name == "broken":
            raise LaunchError("its engine is gone")

        return whole(self, fleet)

    monkeypatch.setattr(LocalLauncher, "running", running)
    told = user.types("launch", "stop", "--all", code=1).stderr
    assert "the fleet other is stopped: 1 trainer" in told
    assert told.splitlines()[-1] == (
        "error: the fleet broken is not stopped: its engine is gone; --forget removes it from "
        "the list"
    )
    assert [
        each["fleet"]
        for each in json.loads(user.types("launch", "list", "--json").stdout)["fleets"]
    ] == ["broken"]
    launcher = registry.create("local", {}, store_settings)
    broken = records.get(store_settings, "broken")
    launcher.stop(broken, [trainer.id for trainer in whole(launcher, broken)])
    told = user.types("launch", "stop", "broken", "--forget").stderr
    assert told.strip() == "the fleet broken is forgotten: its engine is gone"
    assert json.loads(user.types("launch", "list", "--json").stdout)["fleets"] == []


def test_a_start_that_is_refused_halfway_leaves_a_fleet_that_can_be_stopped(user, monkeypatch):
    whole = LocalLauncher.start
    most = 2

    def start(self, fleet, count):
        if most:
            whole(self, fleet, min(count, most))

        raise LaunchError("no more jobs are accepted")

    monkeypatch.setattr(LocalLauncher, "start", start)
    told = user.types("launch", "local", "--trainers", "3", "--name", "half", code=1).stderr
    assert told.strip() == (
        "error: no more jobs are accepted; 2 of 3 trainers of the fleet half started; "
        "stop them with: archive launch stop half"
    )
    assert "the fleet half is stopped: 2 trainers" in user.types("launch", "stop", "half").stderr
    most = 0
    told = user.types("launch", "local", "--trainers", "3", "--name", "none", code=1).stderr
    assert told.strip() == "error: no more jobs are accepted"

    def running(self, fleet):
        raise LaunchError("squeue is not on this machine")

    monkeypatch.setattr(LocalLauncher, "running", running)
    told = user.types("launch", "local", "--trainers", "3", "--name", "silent", code=1).stderr
    assert told.strip() == "error: squeue is not on this machine"
    assert json.loads(user.types("launch", "list", "--json").stdout)["fleets"] == []


def test_two_bounds_follow_the_queue_until_a_signal(user, archive, tmp_path, monkeypatch):
    lengths = iter([(0, 0), (1, 0), (9, 0)])

    def length(archive, study):
        try:
            return next(lengths)
        except StopIteration:
            raise InterruptedBySignal(2) from None

    monkeypatch.setattr(keeper, "queue_length", length)
    done = user.types("launch", "local", "--trainers", "0..3", "--", "--slots", "2", code=130)
    shown = [line for line in done.stderr.splitlines() if line.endswith("trainers run")]
    assert shown == [f"{n} of {n} trainers run" for n in (0, 1, 3)]
    # They stay, and end when they are idle; the same command would start a fleet beside them.
    assert done.stderr.splitlines()[-1] == (
        "interrupted: the fleet local gets no further trainers, and those that run end when idle; "
        "archive launch stop local ends them now"
    )
    (fleet,) = json.loads(user.types("launch", "list", "--json").stdout)["fleets"]
    assert (fleet["lower"], fleet["upper"], len(fleet["trainers"])) == (0, 3, 3)
    diary = tmp_path / "stand-in" / "diary"
    until(
        lambda: diary.exists() and len(diary.read_text().splitlines()) == 3,
        20.0,
        "all have started",
    )


def test_proposals_that_no_trainer_can_run_are_named_and_start_none(
    user, archive, tmp_path, monkeypatch
):
    def length(archive, study):
        looks.append(study)
        if len(looks) == 3:
            # The stand-ins of trainers register nothing.
            workers.arrive(archive.connection, "trainer", recipes=["default"])
            (tmp_path / "stand-in").mkdir(exist_ok=True)
            (tmp_path / "stand-in" / "end").write_text("0")
            workers.leave(archive.connection, "trainer")

        if len(looks) == 12:
            raise InterruptedBySignal(2)

        return read(archive, study)

    looks = []
    read = keeper.queue_length
    propose(archive, cells(2), "mine", protocol="digits/1+recipe:mine")
    monkeypatch.setattr(keeper, "queue_length", length)
    shown = user.types("launch", "local", "--trainers", "0..1", code=130).stderr.splitlines()
    named = (
        "2 proposals wait in the study mine, and no trainer of the fleet can run them: it "
        "has no recipe 'mine'"
    )
    assert shown.count(named) == 1
    assert [line for line in shown if line.endswith("trainers run")][-1] == "0 of 0 trainers run"
    assert not any(line.startswith("error") for line in shown)


def test_a_fleet_that_is_stopped_is_followed_no_longer(user, archive, store_settings, monkeypatch):
    def length(archive, study):
        asked.append(study)
        if len(asked) == 2:
            # From another terminal.
            assert (
                "the fleet local is stopped: 2 trainers"
                in user.types("launch", "stop", "local").stderr
            )

        if len(asked) == 3:
            raise InterruptedBySignal(2)

        return 2, 0

    asked: list[str | None] = []
    monkeypatch.setattr(keeper, "queue_length", length)
    followed = user.types("launch", "local", "--trainers", "0..2").stderr
    assert followed.splitlines()[-1] == "the fleet local is stopped: no longer following the queue"
    # Trainers that the command had started after the stop would be on no list.
    assert not fleets_folder(store_settings.home).joinpath("local").exists()


def test_trainers_of_this_machine_leave_when_they_are_idle_unless_the_user_says_when(user):
    def shown(*arguments):
        script = user.types("launch", "local", "--trainers", "0..2", "--dry-run", *arguments).stdout
        (line,) = [line for line in script.splitlines() if "setsid" in line]
        return line

    assert " --idle 10min " in shown()
    # Of an option that is given twice, the last one counts.
    assert shown("--", "--idle", "1h").endswith(" --idle 1h &")
