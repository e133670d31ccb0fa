"""`archive study log`: what happened to each proposal, told to a user, on each server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from archive.store.records import Result
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.storage import file_names
from archive.trainer.tasks import registry
from tests.support import faulty, wait_until
from tests.support.commands import shell
from tests.support.daemons import propose
from tests.support.networks.nets import TINY_MLP
from tests.support.stores import cells, study
from tests.support.stores import propose as propose_cells

LONG = 600.0


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened:
        yield opened


def test_a_failed_trial_is_told_with_its_own_log(archive, user, store_settings, monkeypatch):
    monkeypatch.setitem(registry.registry._loaded, "faulty", faulty.faulty(faulty.raises))
    (proposal,) = propose(archive, [TINY_MLP], "faulty")
    Trainer(archive, TrainerOptions(once=True, device="cpu", threads=1)).run()
    path = file_names.trial_log_path(store_settings.home, proposal.id)
    try:
        told = user.types("study", "log", "study", "--proposal", "0")
        assert [line.split()[3] for line in told.stdout.splitlines()[:3]] == [
            "proposed",
            "claimed",
            "failed",
        ]
        assert "ValueError: no such column" in told.stdout.splitlines()[2]
        assert "Traceback" in told.stdout and str(path) in told.stderr
    finally:
        path.unlink()

    # On another machine there is what the failure left in the archive.
    elsewhere = user.types("study", "log", "study", "--proposal", proposal.id).stdout
    assert "    | ValueError: no such column" in elsewhere
    entries = json.loads(user.types("study", "log", "study", "--json").stdout)["entries"]
    assert [entry["event"] for entry in entries] == ["proposed", "claimed", "failed"]
    assert "Traceback" in entries[2]["log"]
    assert entries[2]["reason"] == "ValueError: no such column"
    assert entries[0]["time"] <= entries[1]["time"] <= entries[2]["time"]


def test_the_whole_study_in_words(archive, user):
    propose_cells(archive, cells(2))
    first = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.fail(
        first.id, first.token, "a [bracket] in it", log="\n".join(f"line {at}" for at in range(99))
    )
    second = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.complete(
        second.id, second.token, Result(0.5, curve={"loss": [1.0] * 7}, seconds=3.25)
    )
    told = user.types("study", "log", "study").stdout
    assert "by w: a [bracket] in it" in told
    assert "value 0.5 by w, 7 epochs, 3.25 s" in told
    assert "line 98" in told and "line 50" not in told
    whole = user.types("study", "log", "study", "--proposal", "0").stdout
    assert "line 50" in whole
    assert all(
        user.types("study", "log", "study", "--proposal", id_).stdout == whole
        for id_ in ("#0", "study#0")
    )


def test_following_ends_with_the_proposal(archive, user, store_settings, tmp_path):
    (proposal,) = propose_cells(archive, cells(1))
    claim = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    path = file_names.trial_log_path(store_settings.home, proposal.id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("epoch 1\n")
    command = [
        sys.executable,
        "-m",
        "archive.cli.main",
        "study",
        "log",
        "study",
        "--proposal",
        "0",
        "--follow",
        "--json",
    ]
    with (tmp_path / "told").open("wb") as told:
        follower = subprocess.Popen(command, stdout=told, env=user.environment)

    def lines():
        return [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]

    try:
        wait_until(lambda: len(lines()) == 3, what="the first look")
        with path.open("a") as log:
            log.write("epoch 2\n")

        archive.proposals.complete(claim.id, claim.token, Result(0.5))
        assert follower.wait(60) == 0
    finally:
        follower.kill()
        follower.wait()
        path.unlink()

    assert [line["event"] for line in lines() if line["event"] != "log"] == [
        "proposed",
        "claimed",
        "complete",
    ]
    assert [line["line"] for line in lines() if line["event"] == "log"] == ["epoch 1", "epoch 2"]


@pytest.mark.whole
def test_following_begins_before_anything_happened_and_ends_by_ctrl_c(archive, user):
    archive.studies.create(study())
    follower = user.starts("study", "log", "study", "--follow")
    propose_cells(archive, cells(1))
    wait_until(lambda: "proposed" in user.said, 60)
    follower.send_signal(signal.SIGINT)
    assert follower.wait(60) == 130
    assert "Traceback" not in user.said


def test_following_a_study_that_is_done_ends_at_once(archive, user):
    propose_cells(archive, cells(1), budget=1)
    claim = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.complete(claim.id, claim.token, Result(0.5))
    told = user.types("study", "log", "study", "--follow").stdout
    assert [line.split()[3] for line in told.splitlines()] == ["proposed", "claimed", "complete"]


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["stuudy"], ["unknown study 'stuudy'", "study"]),
        (["study", "--proposal", "9"], ["study#00009"]),
        (["study", "--proposal", "9" * 5000], ["99999"]),
    ],
)
def test_names_that_there_are_not(archive, user, arguments, fragments):
    propose_cells(archive, cells(1))
    (line,) = user.types("study", "log", *arguments, code=2).stderr.splitlines()
    assert all(fragment in line for fragment in fragments)
