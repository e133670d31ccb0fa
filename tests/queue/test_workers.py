"""Status of workers on each server."""

import time

import pytest

from archive.api import Archive
from archive.queue import workers
from tests.support import wait_until
from tests.support.stores import cells, propose

LONG = 600.0


@pytest.fixture
def status(archive):
    return lambda **settings: {
        each.id: each for each in workers.statuses(archive.connection, **settings)
    }


def test_an_archive_without_workers(status):
    assert status() == {}


def test_the_properties_of_a_worker_are_listed(archive, status):
    workers.arrive(
        archive.connection, "w", host="lab", pid=42, slots=3, study="study", fleet="slurm-study"
    )
    archive.proposals.register_worker("w", "lab", "cuda:0 (H100)")
    found = status()["w"]
    assert (found.host, found.pid, found.slots, found.study, found.fleet) == (
        "lab",
        42,
        3,
        "study",
        "slurm-study",
    )
    assert found.device == "cuda:0 (H100)"
    assert (found.state, found.trials, found.alive) == ("idle", (), True)
    assert 0 <= found.silent_seconds <= found.seconds < LONG


def test_each_trial_stands_with_its_worker(archive, status):
    proposals = propose(archive, cells(3))
    workers.arrive(archive.connection, "w")
    workers.arrive(archive.connection, "v")
    claims = [
        archive.proposals.claim(worker, study="study", lease_seconds=LONG)
        for worker in ("w", "w", "v")
    ]
    archive.proposals.report(claims[0].id, claims[0].token, {"loss": [3.0, 2.0]}, LONG)
    found = status()
    assert [trial.proposal for trial in found["w"].trials] == [claim.id for claim in claims[:2]]
    assert [trial.proposal for trial in found["v"].trials] == [claims[2].id]
    assert {found[worker].state for worker in "wv"} == {"working"}
    first, second = found["w"].trials
    assert (first.epochs, second.epochs, first.attempt) == (2, 0, 1)
    assert first.architecture_key == proposals[claims[0].proposal.number].architecture_key
    assert 0 <= first.seconds < LONG and 0 < first.lease_seconds <= LONG
    archive.proposals.fail(claims[2].id, claims[2].token, "NaN", retry=True)
    assert (status()["v"].state, status()["v"].trials) == ("idle", ())
    again = archive.proposals.claim("v", study="study", lease_seconds=LONG)
    assert again.id == claims[2].id
    assert status()["v"].trials[0].attempt == 2


def test_silence_by_the_servers_clock_is_what_makes_a_worker_stale(archive, status, monkeypatch):
    propose(archive, cells(1))
    workers.arrive(archive.connection, "w")
    archive.proposals.claim("w", study="study", lease_seconds=LONG)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert status()["w"].state == "working"
    wait_until(lambda: status(stale_seconds=0.05)["w"].state == "stale")
    stale = status(stale_seconds=0.05)["w"]
    assert not stale.alive
    assert len(stale.trials) == 1
    archive.proposals.worker_heartbeat("w")
    assert status(stale_seconds=LONG)["w"].state == "working"


def test_a_worker_that_left_is_not_stale(archive, status):
    workers.arrive(archive.connection, "w")
    workers.leave(archive.connection, "w")
    uptime = status()["w"].seconds
    wait_until(lambda: status(stale_seconds=0.01)["w"].silent_seconds > 0.02)
    left = status(stale_seconds=0.01)["w"]
    assert (left.state, left.seconds) == ("left", uptime)
    workers.arrive(archive.connection, "w")
    assert status()["w"].state == "idle"


def test_workers_without_a_recent_heartbeat_are_not_listed(archive, status):
    workers.arrive(archive.connection, "old")
    wait_until(lambda: status()["old"].silent_seconds > 0.3)
    workers.arrive(archive.connection, "new")
    assert list(status()) == ["old", "new"]
    assert list(status(recent_seconds=0.3)) == ["new"]


def test_leaving_creates_no_worker(archive, status):
    workers.leave(archive.connection, "nobody")
    assert status() == {}


def test_who_asks_and_tells_ends_with_its_archive_unless_it_holds_a_proposal(
    archive, status, open_connection
):
    propose(archive, cells(1))
    workers.arrive(archive.connection, "other")
    other = Archive(open_connection())
    for worker in ("idle", "busy"):
        other.proposals.register_worker(worker, "here", "ask and tell")

    assert other.proposals.claim("busy", study="study", lease_seconds=LONG)
    other.close()
    other.close()
    assert {name: each.state for name, each in status().items()} == {
        "other": "idle", "idle": "left", "busy": "working"
    }  # fmt: skip
