"""`archive trainer` as an operator runs it: real daemons, scraped, listed, logged and killed, on
each server."""

from __future__ import annotations

import json
import platform
import re
import signal
import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from archive.cli.exit_codes import ExitCode
from archive.errors import UsageError
from archive.launchers.records import TrainerFleet
from archive.queue.causes import Cause
from archive.queue.updates import Release
from archive.queue.workers import arrive
from archive.settings import load
from archive.store.records import State, Study
from archive.trainer.daemon.options import TrainerOptions
from tests.support import wait_until
from tests.support.commands import propose, serving, shell, table
from tests.support.networks.nets import TINY_MLP, net
from tests.support.stores import suggest


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def scrape(said: str) -> dict[tuple[str, str], float]:
    """Return what a trainer tells Prometheus, by name without its prefix and task."""
    (address,) = re.findall(r"http://\S+/metrics", said)
    with urllib.request.urlopen(address, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()

    return {
        (sample.name.removeprefix("archive_trainer_"), sample.labels.get("task", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def workers(user, *arguments, code=0):
    return json.loads(user.types("trainer", "status", "--json", *arguments, code=code).stdout)[
        "workers"
    ]


def test_a_trainer_is_watched_from_its_first_claim_to_its_death(
    archive, user, tmp_path, store_settings
):
    task = table(tmp_path)
    proposals = propose(archive, task, 3)
    # In scaled time the three answers take an hour: what is seen meanwhile does not depend on luck.
    daemon = user.starts(
        "trainer",
        "--study",
        "study",
        "--slots",
        "2",
        "--scale",
        "60",
        "--log-format",
        "json",
        "--metrics-port",
        "0",
        "--data-folder",
        str(tmp_path),
    )
    wait_until(lambda: daemon.poll() is not None or len(running(archive)) == 2, 60)
    assert daemon.poll() is None, user.said

    (worker,) = workers(user)
    assert (worker["state"], worker["pid"], worker["slots"]) == ("working", daemon.pid, 2)
    assert (worker["host"], worker["study"]) == (platform.node(), "study")
    assert {trial["proposal"] for trial in worker["trials"]} == set(running(archive))
    shown = user.types("trainer", "status").stdout
    assert worker["id"] in shown
    assert all(id_ in shown for id_ in running(archive)), shown
    user.types("trainer", "status", "--healthcheck")

    # Who scrapes is not told where the file lies.
    task = "table:table.csv#accuracy"
    found = scrape(user.said)
    assert found["claimed_total", task] == found["running", task] == found["slots", ""] == 2
    assert found["training_seconds_total", task] > 0
    assert found["archive_away", ""] == found["outbox_results", ""] == 0
    assert abs(found["last_contact_timestamp_seconds", ""] - archive_time(archive)) < 60
    assert scrape(user.said)["training_seconds_total", task] > found["training_seconds_total", task]
    assert ("completed_total", task) not in found

    port = re.search(r":(\d+)/metrics", user.said)[1]
    second = user.types("trainer", "--study", "study", "--metrics-port", port, code=2)
    assert f"127.0.0.1:{port}: Address already in use" in second.stderr
    assert len(workers(user)) == 1

    lines = [json.loads(line) for line in user.said.splitlines()]
    assert [line["event"] for line in lines[:2]] == ["metrics served", "started"]
    assert all(
        line["worker"] == worker["id"] and line["level"] and line["time"].endswith("Z")
        for line in lines
    )
    assert store_settings.password is None or store_settings.password not in user.said

    daemon.kill()
    daemon.wait()
    wait_until(lambda: workers(user, "--stale", "0.2")[0]["state"] == "stale")
    complaint = user.types("trainer", "status", "--healthcheck", "--stale", "0.2", code=1).stderr
    assert complaint.splitlines() == [f"no trainer is running on {platform.node()}"]
    assert len(proposals) == 3


def test_who_ends_in_order_has_said_good_bye_and_counted(archive, user, tmp_path):
    task = table(tmp_path)
    propose(archive, task, 3)
    done = user.runs(
        "trainer", "--study", "study", "--idle", "0.1", "--json", "--data-folder", str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "schema_version": 1,
        "complete": 3,
        "failed": 0,
        "returned": 0,
        "unsaved": 0,
    }
    assert "INFO started worker=" in done.stderr
    (worker,) = workers(user)
    assert (worker["state"], worker["trials"]) == ("left", [])
    # A program that asks and tells is alive, and no trainer.
    archive.proposals.register_worker("script", platform.node(), "ask and tell")
    assert [one["state"] for one in workers(user)] == ["left", "idle"]
    user.types("trainer", "status", "--healthcheck", code=1)


def test_a_trainer_that_is_told_to_stop_hands_back(archive, user, tmp_path):
    propose(archive, table(tmp_path), 1)
    daemon = user.starts(
        "trainer", "--study", "study", "--scale", "60", "--data-folder", str(tmp_path)
    )
    wait_until(lambda: running(archive), 60)
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(60) == 0
    assert [each.state for each in archive.proposals.list("study")] == [State.WAITING]
    assert "1 handed back" in user.said
    assert workers(user)[0]["state"] == "left"


def test_options_of_the_command_reach_the_trainer(archive, user, tmp_path, monkeypatch):
    taken = []

    def trainer(_, options, **__):
        taken.append(options)
        raise UsageError("stopped here")

    monkeypatch.setattr("archive.trainer.daemon.trainer.Trainer", trainer)
    places = ("--data-folder", str(tmp_path), "--weights-from", "s3://a/b", "--weights-from", "/c")
    times = (
        "--grace",
        "110",
        "--stall",
        "2h",
        "--checkpoint",
        "5min",
        "--idle",
        "1d",
        "--wait",
        "0",
    )
    for name in (["trainer"], ["trainer", "start"]):
        user.types(*name, "--precision", "tf32", *times, *places, code=2)
        user.types(*name, code=2)
        (given, default) = taken
        assert (given.parting_seconds, given.precision) == (110, "tf32")
        assert (given.stall_seconds, given.checkpoint_seconds) == (7200, 300)
        assert (given.idle_seconds, given.wait_seconds) == (86_400, 0)
        assert (given.data_folders, given.weights_from) == ((str(tmp_path),), ("s3://a/b", "/c"))
        assert default == TrainerOptions()
        taken.clear()


def test_help_of_the_group_names_its_commands(user):
    shown = user.types("trainer", "--help").stdout
    assert "\n  start " in shown and "\n  status " in shown
    assert "--slots" in user.types("trainer", "start", "--help").stdout


def test_the_status_of_a_trainer_names_its_fleet(archive, user, tmp_path, monkeypatch):
    arrive(archive.connection, "by-hand")
    assert "fleet" not in user.types("trainer", "status").stdout
    fleet = TrainerFleet("slurm-study", "slurm", archive.connection.settings)
    monkeypatch.setenv("ARCHIVE_FLEET", fleet.environment()["ARCHIVE_FLEET"])
    with serving(archive, tmp_path / "trainer"):
        (belongs,) = wait_until(
            lambda: [each for each in workers(user) if each["fleet"] == "slurm-study"]
        )

    shown = [line.split() for line in user.types("trainer", "status").stdout.splitlines()]
    assert shown[0][-1] == "fleet"
    assert {line[0]: line[-1] for line in shown if line[0] in ("by-hand", belongs["id"])} == {
        "by-hand": "–", belongs["id"]: "slurm-study",
    }  # fmt: skip


def test_an_archive_without_trainers(user):
    assert workers(user) == []
    assert "archive trainer" in user.types("trainer", "status").stderr
    user.types("trainer", "status", "--healthcheck", code=1)


def test_a_server_that_is_away_is_no_illness_of_the_trainer(tmp_path):
    away = load(home=tmp_path, uri="bolt://127.0.0.1:9", environment={})
    with shell(away, tmp_path) as user:
        said = user.types("trainer", "status", "--healthcheck").stderr
        assert "the state of the trainers is unknown" in said and "127.0.0.1:9" in said


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["--slots", "0"], ["--slots", "0"]),
        (["--checkpoint", "0"], ["--checkpoint", "0"]),
        (["--log-format", "xml"], ["--log-format", "xml"]),
        (["--metrics-port", "70000"], ["--metrics-port", "70000"]),
        (
            ["--metrics-port", "0", "--metrics-address", "203.0.113.7"],
            ["203.0.113.7", "another port"],
        ),
        (["--data-folder", "/nowhere"], ["--data-folder", "/nowhere"]),
        (["--study", "nowhere"], ["unknown study 'nowhere'"]),
        (["statsu"], ["statsu"]),
        (["--slots", "2", "status"], ["unexpected", "status"]),
        (["--stall", "2 parsecs"], ["--stall", "'2 parsecs'", "2h"]),
        (["status", "--stale", "0"], ["--stale", "0"]),
    ],
)
def test_a_mistake_is_one_line(user, arguments, fragments):
    done = user.types("trainer", *arguments, code=2)
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert all(fragment in line for fragment in fragments)
    assert workers(user) == []


def running(archive) -> list[str]:
    return [each.id for each in archive.proposals.list("study", [State.RUNNING])]


def archive_time(archive) -> float:
    ((now,),) = archive.query("RETURN timestamp() AS now").rows
    return now / 1000


def test_a_trainer_that_finds_no_server_waits_for_one(user, closed_port):
    address = f"bolt://127.0.0.1:{closed_port}"
    user.environment |= {"ARCHIVE_DB": address, "ARCHIVE_PASSWORD": "none"}
    done = user.types("trainer", "--once", "--wait", "0", code=1)
    assert address in done.stderr and "waiting" not in done.stderr
    daemon = user.starts("trainer", "--once")
    wait_until(
        lambda: user.said.startswith(
            f"waiting until it answers: no database server answers at {address}"
        ),
        60,
    )
    daemon.send_signal(signal.SIGINT)
    assert daemon.wait(60) != 0
    assert "Traceback" not in user.said and user.said.count("waiting") == 1


@pytest.fixture
def closed_port():
    with socket.socket() as listener:
        # Bound and not listening: nobody answers, and nobody else takes it.
        listener.bind(("127.0.0.1", 0))
        yield listener.getsockname()[1]


def test_options_of_a_trainer_stand_in_config_toml(archive, store_settings, user, tmp_path):
    propose(archive, table(tmp_path), 2)
    user.environment["HOME"] = str(tmp_path.parent)
    config = store_settings.home / "config.toml"
    limits = 'max_time = "60s"\nidle = 0.1\ngrace = "1s"\nlease = 20'
    config.write_text(f'[trainer]\n{limits}\ndata-folder = ["~/{tmp_path.name}"]\n')
    try:
        assert "2 evaluated" in user.types("trainer", "start").stderr
        assert (
            "longer than --grace, got 1s and 1s"
            in user.types("trainer", "--max-time", "1s", code=2).stderr
        )
        for line, message in (
            ('maxtime = "3s"', "unknown option 'maxtime' in [trainer] of"),
            ("once = true", "belongs to one call: give --once to archive trainer"),
            ("slots = 2.5", "must be an integer, got 2.5"),
            ('grace = "soon"', "'grace' in [trainer] of"),
            ("drain = 1", "must be true or false, got 1"),
            ('data_folder = "/tmp"', "must be a list, got '/tmp'"),
            ('data-folder = ["~/nowhere"]', f"{tmp_path.parent}/nowhere"),
        ):
            config.write_text(f"[trainer]\n{line}\n")
            said = user.types("trainer", code=2).stderr
            assert message in said and len(said.splitlines()) == 1
    finally:
        config.unlink()


@pytest.mark.whole
def test_machine_without_the_data_ends_with_its_own_code(archive, user, tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path))
    archive.studies.create(Study("images", "mnist", "mnist/1", "cnn", budget=9))
    agent = archive.proposals.register_agent("random", {}, "1")
    networks = [net("cnn", f"conv3/{8 + i} fc/8 softmax") for i in range(4)]
    archive.proposals.create("images", agent, suggest(networks))
    ended = user.runs("trainer", "--devices", "cpu", "--threads", "1")
    assert ended.returncode == ExitCode.UNFIT_MACHINE, ended.stderr
    proposals = archive.proposals.list("images")
    assert [(each.state, each.attempts) for each in proposals] == [(State.WAITING, 0)] * 4
    assert [each.cause for each in proposals] == ["data"] * 3 + [None]
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("this machine cannot train") and last.endswith(
        ": " + " ".join(proposals[2].reason.split())
    )


def test_proposal_out_of_reach_of_all_trainers_says_so(archive, user, tmp_path):
    propose(archive, table(tmp_path), 2)
    shown = json.loads(user.types("proposal", "show", "study#0", "--json").stdout)
    assert shown["unreachable"] is None
    capabilities = {
        "tasks": ["digits"],
        "spaces": ["nasbench201"],
        "recipes": ["default"],
        "memory_bytes": 1 << 30,
    }
    arrive(archive.connection, "w", devices=["cuda:0 (H100)"], **capabilities)
    shown = json.loads(user.types("proposal", "show", "study#0", "--json").stdout)
    assert shown["unreachable"].startswith("no living worker can run it (w: it has no task 'table:")
    status = json.loads(user.types("trainer", "status", "--json").stdout)
    assert {name: status["workers"][0][name] for name in capabilities} == capabilities
    (blocked,) = status["unreachable"]
    assert (blocked["proposals"], blocked["first"]) == (2, "study#00000")
    assert "2 proposals wait in the study study" in user.types("trainer", "status").stderr
    (held,) = archive.proposals.claim_many("w", 1)
    archive.proposals.settle([Release(held.id, held.token, "no driver", Cause.DEVICE)])
    arrive(archive.connection, "w", tasks=None, spaces=None, recipes=None)
    (blocked,) = json.loads(user.types("trainer", "status", "--json").stdout)["unreachable"]
    assert (blocked["proposals"], blocked["reasons"]) == (
        1,
        {"w": "it could not begin the training"},
    )
    shown = user.types("proposal", "show", held.id).stdout
    assert "no driver" in shown and "(device)" in shown and "no living worker" in shown


def test_a_recipe_for_other_tasks_is_refused_before_a_training(archive, user):
    home = archive.connection.settings.home
    home.mkdir(parents=True, exist_ok=True)
    (home / "recipes.toml").write_text('[mine]\nfit = "gone.py:fit"\ntasks = "classification"\n')
    (home / "recipes.toml").chmod(0o600)
    archive.studies.create(
        Study("study", "diabetes", "diabetes/1+recipe:mine", "mlp", "valid_mse", "minimise", 5)
    )
    fault = "the recipe 'mine' is for classification (recipes.toml), and the task 'diabetes' is a"
    shown = user.types("trainer", "start", "--study", "study", "--once", code=2).stderr
    assert shown.startswith(f"error: {fault}") and shown.count("\n") == 1

    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create("study", agent, suggest([TINY_MLP]))
    with serving(archive):
        wait_until(lambda: archive.studies.snapshot("study").proposals[0].reason)

    # Another trainer may have another recipe of this name.
    (view,) = archive.studies.snapshot("study").proposals
    assert view.state is State.WAITING and view.reason.startswith(fault)
