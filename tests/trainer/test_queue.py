"""The daemon's end of the archive, on each server: everything arrives once, whatever was away in between."""

from __future__ import annotations

import pytest

from archive.errors import QueryError, StoreUnavailableError
from archive.notices import Completion, Failure, Release, Report
from archive.records import Result, State
from archive.trainer import events, queue
from archive.trainer.options import Options
from archive.trainer.outbox import Outbox
from archive.trainer.queue import Queue
from tests.archive.stores import cells, propose


@pytest.fixture
def happened():
    return []


@pytest.fixture
def make(archive, tmp_path, happened, monkeypatch):
    """Makes queues of daemons that share a home."""
    monkeypatch.setattr(queue, "BACKOFF_SECONDS", 3600.0)
    options = Options(study="study", lease_seconds=600.0, poll_seconds=0.01)
    return lambda name="w": Queue(archive, name, options, Outbox(tmp_path / "outbox", "x"), happened.append)


@pytest.fixture
def own(make):
    return make()


@pytest.fixture
def outage(archive, monkeypatch):
    """Begins an outage of the archive, and returns what ends it."""

    def begin():
        def away(*_, **__):
            raise StoreUnavailableError("no server answers")

        with_server = {name: getattr(archive.proposals, name) for name in ("settle", "claim_many")}
        for name in with_server:
            monkeypatch.setattr(archive.proposals, name, away)

        def end(own):
            own._away_until = 0.0
            for name, method in with_server.items():
                monkeypatch.setattr(archive.proposals, name, method)

        return end

    return begin


def states(archive):
    return [proposal.state for proposal in archive.proposals.list("study")]


def test_one_flush_tells_everything(archive, own, monkeypatch):
    propose(archive, cells(4))
    a, b, c, d = own.claim(4)
    calls, settle = [], archive.proposals.settle
    monkeypatch.setattr(archive.proposals, "settle", lambda told: calls.append(told) or settle(told))
    own.say(Report(a.id, a.token, {"loss": [1.0]}))
    own.say(Report(b.id, b.token, {"loss": [1.0]}))
    own.say(Completion(b.id, b.token, Result(0.5)))
    own.say(Failure(c.id, c.token, "NaN"))
    own.say(Release(d.id, d.token))
    assert own.flush() == []
    assert own.flush() == []
    assert [len(told) for told in calls] == [4]
    assert states(archive) == [State.RUNNING, State.COMPLETE, State.FAILED, State.WAITING]
    assert archive.proposals.list("study")[0].curve["loss"] == [1.0]


def test_how_trials_ended_outlives_an_outage_reports_do_not(archive, own, make, outage, tmp_path, happened):
    propose(archive, cells(5))
    a, b, c, d, e = own.claim(5)
    end = outage()
    own.say(Report(a.id, a.token, {"loss": [1.0]}))
    own.say(Completion(b.id, b.token, Result(0.5)), keep=False)
    own.say(Failure(c.id, c.token, "NaN"))
    own.say(Release(d.id, d.token))
    assert own.flush() == []
    assert own.away
    assert own.claim(1) == []
    own.say(Completion(e.id, e.token, Result(0.25)))
    assert len(list((tmp_path / "outbox").glob("*.json"))) == 4
    end(own)
    # Killed meanwhile: the next daemon with this home delivers.
    after = make("v")
    after._outbox.adopt()
    assert after.flush() == []
    assert states(archive) == [State.RUNNING, State.COMPLETE, State.FAILED, State.WAITING, State.COMPLETE]
    assert archive.proposals.list("study")[2].reason == "NaN"
    assert archive.proposals.list("study")[0].curve == {}
    assert not list((tmp_path / "outbox").iterdir())
    # The one that lived through it delivers, too, and nothing is doubled.
    assert own.flush() == []
    assert [each.value for each in archive.studies.evaluations("study")] == [0.5, 0.25]
    assert [type(event) for event in happened if isinstance(event, events.Away | events.Back)] == [
        events.Away, events.Back,
    ]  # fmt: skip


def test_what_was_handed_back_too_late_is_another_workers(archive, own, make, outage, tmp_path):
    propose(archive, cells(2))
    a, b = own.claim(2)
    end = outage()
    own.say(Release(a.id, a.token))
    own.say(Release(b.id, b.token))
    own.flush()
    end(own)
    # One was taken from this worker meanwhile, and has another; it keeps it.
    archive.proposals.fail(a.id, a.token, "taken away", retry=True)
    (other,) = make("other").claim(1)
    assert other.id == a.id
    after = make("v")
    after._outbox.adopt()
    assert after.flush() == []
    first, second = archive.proposals.list("study")
    assert (first.state, first.worker, first.attempts) == (State.RUNNING, "other", 1)
    assert (second.state, second.attempts) == (State.WAITING, 0)
    assert not list((tmp_path / "outbox").iterdir())


def test_a_lost_lease_is_noticed(archive, own):
    propose(archive, cells(2))
    a, b = own.claim(2)
    archive.proposals.fail(a.id, a.token, "taken away")
    own.say(Report(a.id, a.token))
    own.say(Report(b.id, b.token))
    assert own.flush() == [a.id]


def test_a_result_that_came_second_is_no_error(archive, own, happened):
    propose(archive, cells(1))
    (claim,) = own.claim(1)
    archive.proposals.complete(claim.id, "another", Result(0.75))
    own.say(Completion(claim.id, claim.token, Result(0.5)))
    own.flush()
    assert happened == [events.Delivered(claim.id, False)]
    assert [each.value for each in archive.studies.evaluations("study")] == [0.75]


def test_what_the_server_cannot_store_stops_nothing_else(archive, own, monkeypatch, tmp_path, happened):
    propose(archive, cells(3))
    a, b, c = own.claim(3)
    settle = archive.proposals.settle

    def picky(told):
        if any(notice.id == b.id for notice in told):
            raise QueryError("no such type")
        return settle(told)

    monkeypatch.setattr(archive.proposals, "settle", picky)
    for claim in (a, b, c):
        own.say(Completion(claim.id, claim.token, Result(0.5)))
    for _ in range(2 * queue.MOST_REFUSALS):
        own.flush()
        own._away_until = 0.0
    assert states(archive) == [State.COMPLETE, State.RUNNING, State.COMPLETE]
    assert [path.suffix for path in (tmp_path / "outbox").iterdir()] == [".refused"]
    assert [event.proposal for event in happened if isinstance(event, events.Refused)] == [b.id]


def test_an_empty_queue_is_asked_ever_less_often(archive, make):
    propose(archive, [])
    own = make()
    assert own.claim(1) == []
    asked = []
    own._ask = lambda call, **_: asked.append(1)
    assert own.claim(1) == []
    assert not asked


def test_who_fails_again_and_again_looks_for_work_less_often(archive, own, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(queue.time, "monotonic", lambda: now[0])
    propose(archive, cells(3))
    waits = []
    for failures in (1, 2, 3, 20):
        own.rest(failures)
        assert own.claim(1) == []
        waits.append(own.idle_until - now[0])
    assert waits == [0.25, 0.5, 1.0, 60.0]
    now[0] += 59.0
    assert own.claim(1) == []
    now[0] += 1.0
    assert len(own.claim(1)) == 1
