"""The end of a study while searches and trainers run."""

import threading

import pytest

from archive.dashboard.endpoints.changes import STOPPED, stop_study
from archive.errors import UnknownNameError
from archive.store.records import Result, State
from tests.support.stores import cells, propose, suggest

pytestmark = pytest.mark.every_server


def ended(archive):
    """Stop the study, and return what that changed."""
    return stop_study(archive.studies, archive.proposals, "study")


def counts(archive):
    return {state.value: count for state, count in archive.studies.counts("study").items() if count}


def test_what_waits_is_cancelled_and_the_budget_is_what_is_evaluated_or_runs(archive):
    propose(archive, cells(6))
    done = archive.proposals.claim("trainer")
    _ = archive.proposals.claim("trainer")
    archive.proposals.complete(done.id, done.token, Result(0.5, {"accuracy": 0.5}))
    stopped = ended(archive)
    assert (stopped.cancelled, stopped.budget) == (4, 2)
    assert archive.studies.get("study").budget == 2
    assert counts(archive) == {"RUNNING": 1, "COMPLETE": 1, "FAILED": 4}
    assert archive.proposals.get("study#00005").reason == f"cancelled: {STOPPED}"
    assert propose(archive, cells(8)[6:]) == []
    assert ended(archive).cancelled == 0
    with pytest.raises(UnknownNameError):
        stop_study(archive.studies, archive.proposals, "none")


def test_a_search_refills_no_place_of_a_cancelled_proposal(archive, monkeypatch):
    propose(archive, cells(4), budget=4)
    further = iter(cells(40)[4:])
    cancel = archive.proposals.cancel

    def refilled(id_, reason):
        cancelled = cancel(id_, reason)
        propose(archive, [next(further)])
        return cancelled

    monkeypatch.setattr(archive.proposals, "cancel", refilled)
    assert ended(archive).budget == 0
    assert counts(archive) == {"FAILED": 4}


def test_a_proposal_that_a_trainer_returns_meanwhile_is_cancelled(archive, monkeypatch):
    propose(archive, cells(3))
    held = [archive.proposals.claim("trainer")]
    cancel = archive.proposals.cancel

    def returned(id_, reason):
        if held:
            claim = held.pop()
            archive.proposals.release(claim.id, claim.token)

        return cancel(id_, reason)

    monkeypatch.setattr(archive.proposals, "cancel", returned)
    assert ended(archive).cancelled == 3
    assert counts(archive) == {"FAILED": 3} and archive.studies.get("study").budget == 0


def test_a_result_that_arrives_meanwhile_counts(archive, monkeypatch):
    propose(archive, cells(3))
    cancel = archive.proposals.cancel

    def completed(id_, reason):
        claim = archive.proposals.claim("trainer")
        if claim is not None:
            archive.proposals.complete(claim.id, claim.token, Result(0.5, {"accuracy": 0.5}))

        return cancel(id_, reason)

    monkeypatch.setattr(archive.proposals, "cancel", completed)
    assert ended(archive).cancelled == 0
    assert counts(archive) == {"COMPLETE": 3} and archive.studies.get("study").budget == 3


def test_nothing_waits_after_a_stop_of_a_fast_search(archive):
    budget = 60
    known = cells(200)
    propose(archive, known[:8], budget=budget)
    agent = archive.proposals.register_agent("random", {}, "1")
    over = threading.Event()

    def search():
        """Keep eight proposals open, as a loop in another process does."""
        at = 8
        while not over.is_set() and at < len(known):
            open_ = archive.studies.counts("study")
            missing = 8 - open_[State.WAITING] - open_[State.RUNNING]
            archive.proposals.create(
                "study", agent, suggest(known[at : at + max(0, missing)]), budget=budget
            )
            at += max(0, missing)

    thread = threading.Thread(target=search)
    thread.start()
    try:
        stopped = ended(archive)
        assert stopped.budget == archive.studies.get("study").budget == 0
    finally:
        over.set()
        thread.join()

    assert set(counts(archive)) == {"FAILED"}
