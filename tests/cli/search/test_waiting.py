"""A study whose proposals no trainer can claim: the search names the reason, and continues with a
suitable trainer."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from archive.cli.search import live
from archive.queue import workers
from archive.queue.causes import Cause
from archive.queue.updates import Release
from archive.searches import waiting
from archive.server import embedded
from archive.store.records import State
from archive.trainer.daemon.client import store_client
from tests.support import wait_until
from tests.support.commands import propose, serving, table

COMMAND = "archive trainer --study study"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def study(archive, tmp_path):
    """A study with one proposal, on a table that only trainers with a folder for it may read."""
    propose(archive, table(tmp_path), 1)
    return archive.studies.follow("study")


def test_the_only_trainer_that_failed_is_waited_for_and_tries_again(
    archive, study, tmp_path, monkeypatch, capsys
):
    clock = Clock()
    watch = waiting.ClaimWatch(archive, "study", COMMAND, clock=clock)
    view = live.LiveView(archive.studies.get("study"), "random", "here", None, 0)

    def look():
        snapshot = study()
        view.update(snapshot, watch.reason(snapshot))
        return snapshot.proposals[0]

    monkeypatch.setattr(store_client, "REST_SECONDS", 60.0)
    with serving(archive, tmp_path / "trainer", study="study"):
        wait_until(lambda: look().reason)
        (worker,) = wait_until(
            lambda: [one for one in workers.statuses(archive.connection) if one.rest_reason]
        )
        assert (worker.state, worker.alive) == ("resting", True)
        clock.seconds = 9.0
        look()
        event = capsys.readouterr().err.splitlines()[-1]
        assert " waits for another trial: " in event and event.endswith(look().reason)
        clock.seconds = 20.0
        look()
        look()
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1
        assert said[0].startswith(f"#0 waits: the trainer {worker.id} rests for up to a minute")
        assert said[0].endswith(look().reason) and "table.csv" in said[0]

    clock.seconds = 40.0
    look()
    assert capsys.readouterr().err == (
        f"#0 waits: no trainer serves the study; start one with: {COMMAND}\n"
    )
    own = waiting.ClaimWatch(
        archive, "study", COMMAND, lambda: "the local trainers are still starting", clock
    )
    own.reason(study())
    clock.seconds = 60.0
    assert own.reason(study()) == (
        f"#0 waits: the last trainer that tried it has ended: {look().reason}"
    )

    # What cannot begin costs no attempt: it waits for a trainer that can read the table.
    with serving(archive, tmp_path / "trainer", study="study", data_folders=(tmp_path,)):
        done = wait_until(lambda: (view := look()).state is State.COMPLETE and view)

    assert done.attempts == 0


def test_a_trainer_that_can_read_the_data_ends_the_wait(archive, study, tmp_path):
    clock = Clock()
    watch = waiting.ClaimWatch(archive, "study", COMMAND, lambda: "two are pending", clock)
    assert watch.reason(study()) is None
    clock.seconds = 10.0
    assert watch.reason(study()) == "#0 waits: two are pending"
    workers.arrive(archive.connection, "other", study="another study")
    workers.arrive(archive.connection, "sleepy", study=None)
    clock.seconds = 20.0
    assert watch.reason(study()) == (
        "#0 waits: the trainer sleepy is idle and does not claim it; see the log of the trainer"
    )
    with serving(archive, tmp_path / "trainer", study="study", data_folders=(tmp_path,)):
        wait_until(lambda: study().counts[State.COMPLETE] == 1)

    assert watch.reason(study()) is None


def test_a_proposal_that_no_trainer_can_begin_is_named_once_until_it_gets_further(
    archive, study, capsys
):
    view = live.LiveView(archive.studies.get("study"), "random", "here", None, 0)

    def lines():
        view.update(study())
        return [line.split(maxsplit=2)[2] for line in capsys.readouterr().err.splitlines()]

    def claimed(worker):
        return archive.proposals.claim(worker, study="study")

    def returned(claim, reason):
        notice = Release(claim.proposal.id, claim.token, reason, Cause.DATA)
        assert archive.proposals.settle([notice]) == [True]

    assert lines() == ["waiting"]
    first = claimed("one")
    assert lines() == ["running"]
    returned(first, "no data")
    assert lines() == ["waits for another trial: no data"]
    second = claimed("two")
    assert lines() == []
    returned(second, "no data")
    assert lines() == []
    third = claimed("three")
    assert lines() == []
    archive.proposals.report(third.proposal.id, third.token, {"epoch": [1], "loss": [0.5]}, 60.0)
    assert lines() == ["running"]
    archive.proposals.fail(third.proposal.id, third.token, "killed", retry=True)
    fourth = claimed("four")
    assert lines() == ["running, attempt 2; the last one was lost: killed"]
    returned(fourth, "no data")
    assert lines() == ["waits for attempt 2: no data"]
    fifth = claimed("five")
    assert lines() == []
    archive.proposals.fail(fifth.proposal.id, fifth.token, "not a number")
    assert lines() == ["failed: not a number"]


def test_a_full_disk_is_named_once_while_a_training_runs(
    archive, store_settings, study, monkeypatch, capsys
):
    if not store_settings.embedded:
        pytest.skip("only the disk of an embedded server is known")

    watch = waiting.ClaimWatch(archive, "study", COMMAND)
    view = live.LiveView(archive.studies.get("study"), "random", "here", None, 0)
    archive.proposals.claim("w", study="study")
    disk = SimpleNamespace(free=0)
    monkeypatch.setattr(embedded.shutil, "disk_usage", lambda _: disk)
    for free in (30 * 2**20, 29 * 2**20, 2**30, 2**30):
        disk.free = free
        snapshot = study()
        view.update(snapshot, watch.reason(snapshot))

    said = [line for line in capsys.readouterr().err.splitlines() if "disk" in line]
    assert len(said) == 1
    assert said[0].startswith("no result can be stored: ") and "30.0 MiB free, 32 needed" in said[0]
