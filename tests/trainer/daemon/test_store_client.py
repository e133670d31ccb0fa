"""The daemon's client of the store, on each server: each notice arrives once, in spite of
outages."""

from __future__ import annotations

import threading
import time

import pytest

from archive.database import messages
from archive.errors import QueryError, StoreUnavailableError
from archive.queue.capabilities import Capabilities
from archive.queue.updates import Completion, Failure, Release, Report
from archive.store.records import Result, State
from archive.trainer.daemon import events, result_spool
from archive.trainer.daemon.client import delivery, store_client, store_link
from archive.trainer.daemon.client.store_client import StoreClient
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.result_spool import ResultSpool
from tests.support import wait_until
from tests.support.stores import cells, propose


@pytest.fixture
def happened():
    return []


@pytest.fixture
def make(archive, tmp_path, happened, monkeypatch):
    """Makes queues of daemons that share a home."""
    monkeypatch.setattr(store_link, "BACKOFF_SECONDS", 3600.0)
    options = TrainerOptions(study="study", lease_seconds=600.0, poll_seconds=0.01)
    return lambda name="w": StoreClient(
        archive, name, options, ResultSpool(tmp_path / "outbox", "x"), happened.append
    )


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
            own._link.retry_at = 0.0
            for name, method in with_server.items():
                monkeypatch.setattr(archive.proposals, name, method)

        return end

    return begin


@pytest.fixture
def rejects(archive, monkeypatch):
    """Makes the server reject the notices that a test picks, every time they are told, without a
    pause between."""
    monkeypatch.setattr(store_link, "BACKOFF_SECONDS", 0.0)
    settle = archive.proposals.settle

    def begin(picked):
        def picky(told):
            if any(map(picked, told)):
                raise QueryError("not on this database")

            return settle(told)

        monkeypatch.setattr(archive.proposals, "settle", picky)
        return lambda: monkeypatch.setattr(archive.proposals, "settle", settle)

    return begin


def states(archive):
    return [proposal.state for proposal in archive.proposals.list("study")]


def test_one_flush_delivers_all_notices(archive, own, monkeypatch):
    propose(archive, cells(4))
    a, b, c, d = own.claim(4)
    calls = []
    settle = archive.proposals.settle
    monkeypatch.setattr(
        archive.proposals, "settle", lambda told: calls.append(told) or settle(told)
    )
    own.enqueue(Report(a.id, a.token, {"loss": [1.0]}))
    own.enqueue(Report(b.id, b.token, {"loss": [1.0]}))
    own.enqueue(Completion(b.id, b.token, Result(0.5)))
    own.enqueue(Failure(c.id, c.token, "NaN"))
    own.enqueue(Release(d.id, d.token))
    assert own.flush() == []
    assert own.flush() == []
    assert [len(told) for told in calls] == [4]
    assert states(archive) == [State.RUNNING, State.COMPLETE, State.FAILED, State.WAITING]
    assert archive.proposals.list("study")[0].curve["loss"] == [1.0]


def test_a_cancellation_on_this_machine_is_noticed_at_once(archive, own):
    propose(archive, cells(2))
    a, _ = own.claim(2)
    own.keeper.start()
    archive.proposals.cancel(a.id)
    lost = wait_until(own.flush)
    own.keeper.close()
    assert lost == [(a.id, a.token)]


def test_the_deletion_of_a_study_on_this_machine_is_noticed_at_once(archive, own):
    propose(archive, cells(1))
    (a,) = own.claim(1)
    own.keeper.start()
    archive.studies.delete("study")
    lost = wait_until(own.flush)
    own.keeper.close()
    assert lost == [(a.id, a.token)]


def test_reports_send_what_the_store_lacks(archive, own, outage, monkeypatch):
    propose(archive, cells(1))
    (claim,) = own.claim(1)
    begins = []
    settle = archive.proposals.settle
    losses = [float(at) for at in range(8)]
    monkeypatch.setattr(
        archive.proposals, "settle", lambda told: begins.extend(map(_begin, told)) or settle(told)
    )

    def report(**curve):
        own.enqueue(Report(claim.id, claim.token, curve))
        assert own.flush() == []

    report(loss=losses[:3])
    report(loss=losses[:5])
    end = outage()
    report(loss=losses[:6])
    end(own)
    report(loss=losses[:7])
    # A new metric has a value for each epoch before.
    report(loss=losses, accuracy=losses)
    report(loss=losses, accuracy=losses)
    assert begins == [0, 3, 5, 0, 8]
    assert archive.proposals.get(claim.id).curve == {
        "epoch": [*range(1, 9)],
        "loss": losses,
        "accuracy": losses,
    }


def _begin(report):
    return report.begin


def test_terminal_notices_outlive_an_outage_reports_do_not(
    archive, own, make, outage, tmp_path, happened
):
    propose(archive, cells(5))
    a, b, c, d, e = own.claim(5)
    end = outage()
    own.enqueue(Report(a.id, a.token, {"loss": [1.0]}))
    own.enqueue(Completion(b.id, b.token, Result(0.5)), keep=False)
    own.enqueue(Failure(c.id, c.token, "NaN"))
    own.enqueue(Release(d.id, d.token))
    assert own.flush() == []
    assert own.unreachable
    assert own.claim(1) == []
    own.enqueue(Completion(e.id, e.token, Result(0.25)))
    assert len(list((tmp_path / "outbox").glob("*.json"))) == 4
    end(own)
    # Killed meanwhile: the next daemon with this home delivers.
    after = make("v")
    after._spool.adopt()
    assert after.flush() == []
    assert states(archive) == [
        State.RUNNING,
        State.COMPLETE,
        State.FAILED,
        State.WAITING,
        State.COMPLETE,
    ]
    assert archive.proposals.list("study")[2].reason == "NaN"
    assert archive.proposals.list("study")[0].curve == {}
    assert not list((tmp_path / "outbox").iterdir())
    # The one that lived through it delivers, too, and nothing is doubled.
    assert own.flush() == []
    assert [each.value for each in archive.studies.evaluations("study")] == [0.5, 0.25]
    outage_events = (events.StoreUnreachable, events.StoreReachable)
    assert (
        tuple(type(event) for event in happened if isinstance(event, outage_events))
        == outage_events
    )


def test_late_release_has_no_effect_on_the_next_worker(archive, own, make, outage, tmp_path):
    propose(archive, cells(2))
    a, b = own.claim(2)
    end = outage()
    own.enqueue(Release(a.id, a.token))
    own.enqueue(Release(b.id, b.token))
    own.flush()
    end(own)
    # One was taken from this worker meanwhile, and has another; it keeps it.
    archive.proposals.fail(a.id, a.token, "taken away", retry=True)
    (other,) = make("other").claim(1)
    assert other.id == a.id
    after = make("v")
    after._spool.adopt()
    assert after.flush() == []
    first, second = archive.proposals.list("study")
    assert (first.state, first.worker, first.attempts) == (State.RUNNING, "other", 1)
    assert (second.state, second.attempts) == (State.WAITING, 0)
    assert not list((tmp_path / "outbox").iterdir())


def test_lost_lease_is_returned_by_flush(archive, own):
    propose(archive, cells(2))
    a, b = own.claim(2)
    archive.proposals.fail(a.id, a.token, "taken away")
    own.enqueue(Report(a.id, a.token))
    own.enqueue(Report(b.id, b.token))
    assert own.flush() == [(a.id, a.token)]


def test_of_two_claims_of_one_proposal_the_former_is_lost(archive, own):
    propose(archive, cells(1))
    (former,) = own.claim(1)
    archive.proposals.fail(former.id, former.token, "taken away", retry=True)
    (claim,) = own.claim(1)
    own.enqueue(Report(former.id, former.token))
    own.enqueue(Report(claim.id, claim.token))
    assert own.flush() == [(former.id, former.token)]


def test_second_result_is_no_error(archive, own, happened):
    propose(archive, cells(1))
    (claim,) = own.claim(1)
    archive.proposals.complete(claim.id, "another", Result(0.75))
    own.enqueue(Completion(claim.id, claim.token, Result(0.5)))
    own.flush()
    assert happened == [events.ResultDelivered(claim.id, False)]
    assert [each.value for each in archive.studies.evaluations("study")] == [0.75]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_rejected_notice_does_not_stop_others(archive, own, rejects, tmp_path, happened, at):
    propose(archive, cells(3))
    claims = own.claim(3)
    refused = claims[at]
    rejects(lambda notice: notice.id == refused.id)
    for claim in claims:
        own.enqueue(Completion(claim.id, claim.token, Result(0.5)))

    own.flush()
    wanted = [State.COMPLETE] * 3
    wanted[at] = State.RUNNING
    assert states(archive) == wanted
    assert not own.unreachable
    for _ in range(delivery.MOST_REJECTIONS - 1):
        assert not [event for event in happened if isinstance(event, events.ResultRefused)]
        own.flush()

    assert [path.suffix for path in (tmp_path / "outbox").iterdir()] == [".refused"]
    assert [event.proposal for event in happened if isinstance(event, events.ResultRefused)] == [
        refused.id
    ]
    assert not [event for event in happened if isinstance(event, events.StoreUnreachable)]


def test_result_that_the_server_does_not_take_fails_its_proposal_at_once(
    archive, own, tmp_path, happened, monkeypatch
):
    propose(archive, cells(2))
    claims = own.claim(2)
    monkeypatch.setattr(messages, "LARGEST_BYTES", 2**20)
    own.enqueue(
        Completion(claims[0].id, claims[0].token, Result(0.5, curve={"loss": [0.5] * 200_000}))
    )
    own.enqueue(Completion(claims[1].id, claims[1].token, Result(0.5)))
    own.flush()
    assert states(archive) == [State.FAILED, State.COMPLETE]
    failed = archive.proposals.get(claims[0].id)
    assert failed.cause == "training"
    assert (
        "its result cannot be stored" in failed.reason and "got 2.7 MiB: send less" in failed.reason
    )
    assert [path.suffix for path in (tmp_path / "outbox").iterdir()] == [".refused"]
    refused = [event for event in happened if isinstance(event, events.ResultRefused)]
    assert [event.proposal for event in refused] == [claims[0].id]
    assert "got 2.7 MiB" in refused[0].reason
    assert not own.unreachable


def test_server_that_rejects_every_write_counts_as_unreachable(
    archive, own, rejects, monkeypatch, tmp_path, happened
):
    propose(archive, cells(4))
    a, b, c, d = own.claim(4)
    accept = rejects(lambda _: True)

    def read_only(*_):
        raise QueryError("not on this database")

    heartbeat = archive.proposals.worker_heartbeat
    monkeypatch.setattr(archive.proposals, "worker_heartbeat", read_only)
    own.enqueue(Completion(a.id, a.token, Result(0.5)))
    own.enqueue(Failure(b.id, b.token, "NaN"))
    own.enqueue(Release(c.id, c.token))
    for _ in range(3 * delivery.MOST_REJECTIONS):
        own.enqueue(Report(d.id, d.token, {"loss": [1.0]}))
        assert own.flush() == []

    assert [path.suffix for path in (tmp_path / "outbox").iterdir()] == [".json"] * 3
    assert [type(event) for event in happened] == [events.StoreUnreachable]
    accept()
    monkeypatch.setattr(archive.proposals, "worker_heartbeat", heartbeat)
    assert own.flush() == []
    assert states(archive) == [State.COMPLETE, State.FAILED, State.WAITING, State.RUNNING]
    assert not list((tmp_path / "outbox").iterdir())


def test_rejected_report_is_no_lost_lease(archive, own, rejects):
    propose(archive, cells(2))
    a, b = own.claim(2)
    accept = rejects(lambda notice: isinstance(notice, Report) and notice.id == a.id)
    for _ in range(2 * delivery.MOST_REJECTIONS):
        own.enqueue(Report(a.id, a.token, {"loss": [1.0]}))
        own.enqueue(Report(b.id, b.token, {"loss": [1.0]}))
        assert own.flush() == []

    ragged = {"loss": [1.0], "epoch": [1.0, 2.0]}
    own.enqueue(Report(b.id, b.token, ragged))
    assert own.flush() == []
    accept()
    own.enqueue(Report(a.id, a.token, {"loss": [1.0, 0.5]}))
    assert own.flush() == []
    curves = [proposal.curve["loss"] for proposal in archive.proposals.list("study")]
    assert curves == [[1.0, 0.5], [1.0]]


def test_terminal_notice_does_not_wait_for_a_rejected_report(archive, own, rejects, monkeypatch):
    propose(archive, cells(1))
    (claim,) = own.claim(1)
    rejects(lambda notice: isinstance(notice, Report))
    monkeypatch.setattr(store_link, "BACKOFF_SECONDS", 3600.0)
    own.enqueue(Report(claim.id, claim.token, {"loss": [1.0]}))
    own.flush()
    own.enqueue(Completion(claim.id, claim.token, Result(0.5)))
    own.flush()
    assert states(archive) == [State.COMPLETE]


def test_rejected_notice_pauses_while_others_are_delivered(archive, own, rejects, monkeypatch):
    propose(archive, cells(2))
    a, b = own.claim(2)
    told = []
    rejects(lambda notice: told.append(notice.id) or notice.id == a.id)
    monkeypatch.setattr(store_link, "BACKOFF_SECONDS", 3600.0)
    own.enqueue(Completion(a.id, a.token, Result(0.5)))
    own.flush()
    told.clear()
    for _ in range(delivery.MOST_REJECTIONS):
        own.enqueue(Report(b.id, b.token, {"loss": [1.0]}))
        own.flush()

    assert told == [b.id] * delivery.MOST_REJECTIONS
    assert archive.proposals.list("study")[1].curve["loss"] == [1.0]


def test_rejections_are_counted_for_each_claim_until_it_is_delivered(
    archive, own, rejects, happened
):
    propose(archive, cells(1))
    for value in (0.25, 0.5):
        (claim,) = own.claim(1)
        accept = rejects(lambda _: True)
        own.enqueue(Failure(claim.id, claim.token, f"no {value}", retry=True))
        for _ in range(delivery.MOST_REJECTIONS - 1):
            own.flush()

        accept()
        own.flush()
        assert archive.proposals.get(claim.id).reason == f"no {value}"
        assert own._delivery._rejections == {}

    assert not [event for event in happened if isinstance(event, events.ResultRefused)]


def test_unwritten_notice_is_written_during_an_outage(
    archive, own, make, outage, monkeypatch, tmp_path
):
    monkeypatch.setattr(result_spool, "RETRY_SECONDS", 0.0)
    propose(archive, cells(1))
    (claim,) = own.claim(1)
    end = outage()
    (tmp_path / "outbox").write_text("a file where the folder should be")
    own.enqueue(Completion(claim.id, claim.token, Result(0.5)))
    own.flush()
    (tmp_path / "outbox").unlink()
    own.flush()
    end(own)
    # Killed, before the archive was back.
    after = make("v")
    assert after._spool.adopt() == 1
    after.flush()
    assert states(archive) == [State.COMPLETE]


def test_empty_queue_is_polled_less_and_less_often(archive, make):
    propose(archive, [])
    own = make()
    assert own.claim(1) == []
    asked = []
    own._link.call = lambda call, **_: asked.append(1)
    assert own.claim(1) == []
    assert not asked


def test_a_study_that_this_worker_cannot_run_is_in_its_log_once(archive, own, caplog):
    propose(archive, cells(1), protocol="digits/1+recipe:other")
    own.arrive(Capabilities(recipes=("default", "mine")))
    for _ in range(3):
        own._pace.found()
        assert own.claim(1) == []

    own.depart()
    assert caplog.text.count("passes over study=study reason=\"it has no recipe 'other'\"") == 1


def test_repeated_failures_back_off(archive, own, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(store_client.time, "monotonic", lambda: now[0])
    propose(archive, cells(3))
    waits = []
    for failures in (1, 2, 3, 20):
        own.back_off(failures, "no files left")
        assert own.claim(1) == []
        waits.append(own.idle_until - now[0])

    own.back_off(2, "no files left", doublings=3)
    assert [*waits, own.idle_until - now[0]] == [0.25, 0.5, 1.0, 60.0, 4.0]
    own.back_off(20, "no files left")
    now[0] += 59.0
    assert own.claim(1) == []
    now[0] += 1.0
    assert len(own.claim(1)) == 1


def test_claim_whose_answer_was_lost_is_found_again(archive, own, monkeypatch):
    propose(archive, cells(3))
    claim_many = archive.proposals.claim_many

    def unanswered(*which, **how):
        claim_many(*which, **how)
        raise StoreUnavailableError("the connection was lost")

    with monkeypatch.context() as outage:
        outage.setattr(archive.proposals, "claim_many", unanswered)
        assert own.claim(1) == []

    own._link.retry_at = 0.0
    (again,) = own.claim(1)
    (other,) = own.claim(1)
    assert states(archive) == [State.RUNNING, State.RUNNING, State.WAITING]
    # It holds the lease: its result is the proposal's.
    own.enqueue(Completion(again.id, again.token, Result(0.5)))
    own.flush()
    assert archive.proposals.get(again.id).state is State.COMPLETE
    assert other.token != again.token


def test_a_call_without_an_answer_is_given_up(monkeypatch):
    """The loop that watches the trials goes on, and no second call begins beside the first."""
    monkeypatch.setattr(store_link, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(store_link, "PARTING_SECONDS", 0.2)
    monkeypatch.setattr(store_link, "BACKOFF_SECONDS", 0.0)
    happened = []
    stop = []
    frozen = threading.Event()
    calls = []

    def call():
        calls.append(len(calls))
        frozen.wait()
        return "answer"

    link = store_link.StoreLink(happened.append, lambda: 0.0 if stop else None)
    begin = time.monotonic()
    assert link.call(call) is None
    assert 0.5 <= time.monotonic() - begin < 5
    assert link.call(call) is None and calls == [0]
    assert [type(event).__name__ for event in happened] == ["StoreUnreachable"]
    frozen.set()
    assert wait_until(lambda: link.call(call)) == "answer" and calls == [0, 1]
    assert [type(event).__name__ for event in happened] == ["StoreUnreachable", "StoreReachable"]
    frozen.clear()
    monkeypatch.setattr(store_link, "ANSWER_SECONDS", 60.0)
    stop.append(True)
    assert link.call(call) is None
    frozen.set()


def test_a_store_that_is_slow_is_not_away(monkeypatch):
    """After an answer that came too late, the next call has the time that it takes; so has one at
    the end."""
    monkeypatch.setattr(store_link, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(store_link, "BACKOFF_SECONDS", 0.0)
    stop = []
    calls = []

    def call():
        calls.append(time.sleep(0.6))
        return "answer"

    link = store_link.StoreLink(lambda _: None, lambda: 5.0 if stop else None)
    assert link.call(call) is None
    wait_until(lambda: len(calls) == 1)
    assert link.call(call) == "answer"
    stop.append(True)
    assert link.call(call) == "answer" and len(calls) == 3


def test_the_loop_asks_for_other_things_by_the_same_link(make):
    own = make()
    assert own.ask(lambda: None) is None
    with pytest.raises(ZeroDivisionError):
        own.ask(lambda: 1 / 0)

    def away():
        raise StoreUnavailableError("no server answers")

    with pytest.raises(StoreUnavailableError, match="the store does not answer"):
        own.ask(away)


def test_a_fleet_does_not_return_together_after_an_outage(monkeypatch):
    """The pause after a failed call is random, and grows with the failures."""
    now = 1000.0
    monkeypatch.setattr(store_link.time, "monotonic", lambda: now)

    def away():
        raise StoreUnavailableError("no server answers")

    def pauses(failures):
        links = [store_link.StoreLink(lambda _: None) for _ in range(50)]
        for link in links:
            for _ in range(failures):
                assert link.call(away) is None

        return sorted(link.retry_at - now for link in links)

    once = pauses(1)
    often = pauses(20)
    assert len(set(once)) == 50
    assert once[-1] - once[0] > store_link.BACKOFF_SECONDS / 2
    assert often[0] > once[-1]
    assert often[-1] <= 1.5 * store_link.MOST_BACKOFFS * store_link.BACKOFF_SECONDS
