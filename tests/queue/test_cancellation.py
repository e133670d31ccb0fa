"""Cancellation and retry of proposals on each server: changes, refusals, races."""

from __future__ import annotations

import random

import pytest

from archive.agents import loop, provenance
from archive.errors import LeaseLostError, ProposalStateError, SearchError, UnknownNameError
from archive.exchange.load import load
from archive.queue import cancellation, event_log
from archive.queue.proposals import Proposals
from archive.queue.updates import Completion
from archive.rungs import Rungs
from archive.store.architectures import Architectures
from archive.store.records import Result, State
from tests.conftest import wipe
from tests.support.dumped import dumped
from tests.support.stores import (
    STRAYS,
    Forgetful,
    cells,
    count,
    evaluate,
    everywhere,
    propose,
    suggest,
)

LONG = 600.0


def claim(archive, worker="w"):
    return archive.proposals.claim(worker, study="study", lease_seconds=LONG)


def events(archive, id_):
    return [entry.event for entry in event_log.read(archive.connection, "study", id_)]


def state(archive, id_):
    proposal = archive.proposals.get(id_)
    return proposal.state, proposal.reason


def test_a_waiting_proposal_is_cancelled_once(archive):
    first, second = propose(archive, cells(2))
    assert archive.proposals.cancel(first.id) is True
    assert archive.proposals.cancel(first.id, "again") is False
    cancelled = archive.proposals.get(first.id)
    assert (cancelled.state, cancelled.reason, cancelled.cancelled) == (
        State.FAILED,
        "cancelled",
        True,
    )
    assert cancelled.finished is not None
    assert claim(archive).id == second.id and claim(archive) is None
    assert events(archive, first.id) == ["proposed", "cancelled"]
    assert count(archive.connection, STRAYS) == 0


def test_a_running_proposal_loses_its_lease(archive):
    (proposal,) = propose(archive, cells(1))
    held = claim(archive)
    archive.proposals.report(held.id, held.token, {"loss": [1.0]})
    assert archive.proposals.cancel(proposal.id, "too slow")
    with pytest.raises(LeaseLostError):
        archive.proposals.heartbeat(held.id, held.token)

    with pytest.raises(LeaseLostError):
        archive.proposals.release(held.id, held.token)

    # A failure that the trainer reports afterwards changes nothing.
    archive.proposals.fail(held.id, held.token, "crash", retry=True)
    assert state(archive, held.id) == (State.FAILED, "cancelled: too slow")
    *_, last = event_log.read(archive.connection, "study", held.id)
    assert (last.event, last.details["reason"]) == ("cancelled", "cancelled: too slow")
    assert events(archive, held.id) == ["proposed", "claimed", "cancelled"]


def test_a_result_that_arrives_in_spite_of_a_cancellation_is_kept(archive):
    (proposal,) = propose(archive, cells(1))
    held = claim(archive)
    archive.proposals.cancel(proposal.id)
    assert archive.proposals.complete(held.id, held.token, Result(0.5))
    assert state(archive, held.id) == (State.COMPLETE, None)
    assert archive.studies.snapshot("study").incumbent.value == 0.5


def test_what_has_ended_is_refused_with_its_state(archive):
    done, failed, waits = propose(archive, cells(3))
    held = claim(archive)
    archive.proposals.complete(held.id, held.token, Result(0.5))
    held = claim(archive)
    archive.proposals.fail(held.id, held.token, "crash")
    with pytest.raises(
        ProposalStateError,
        match=r"cannot be cancelled: it has its result "
        r"\(state COMPLETE\)",
    ):
        archive.proposals.cancel(done.id)

    with pytest.raises(ProposalStateError, match=r"it has failed \(state FAILED\)"):
        archive.proposals.cancel(failed.id)

    with pytest.raises(UnknownNameError):
        archive.proposals.cancel("study#00009")

    # A refused one leaves the other proposals of the call unchanged.
    with pytest.raises(ProposalStateError):
        cancellation.cancel(archive.connection, [waits.id, done.id])

    assert state(archive, waits.id) == (State.WAITING, None)
    assert cancellation.cancel(archive.connection, [waits.id, waits.id]) == [True, True]


def test_a_retry_brings_back_what_failed_or_was_cancelled_with_all_attempts(archive):
    failed, cancelled = propose(archive, cells(2))
    for attempt in range(3):
        held = claim(archive, f"w{attempt}")
        archive.proposals.fail(held.id, held.token, "crash", retry=True)

    archive.proposals.cancel(cancelled.id)
    assert claim(archive) is None
    for one in (failed, cancelled):
        assert archive.proposals.retry(one.id) is True
        assert archive.proposals.retry(one.id) is False

    assert [one.attempts for one in archive.proposals.list("study")] == [0, 0]
    assert count(archive.connection, STRAYS) == 0
    held = claim(archive)
    archive.proposals.fail(held.id, held.token, "crash", retry=True)
    assert state(archive, failed.id)[0] is State.WAITING
    with pytest.raises(ProposalStateError, match="it is being trained"):
        archive.proposals.retry(claim(archive).id)

    attempts = [
        entry.details["attempt"]
        for entry in event_log.read(archive.connection, "study", failed.id)
        if entry.event == "claimed"
    ]
    assert attempts[:4] == [1, 2, 3, 1]
    assert events(archive, cancelled.id)[:3] == ["proposed", "cancelled", "retried"]


def test_a_result_is_not_tried_again(archive):
    (proposal,) = evaluate(archive, [0.5])
    with pytest.raises(ProposalStateError, match="cannot be tried again: it has its result"):
        archive.proposals.retry(proposal.id)


def test_a_lost_acknowledgement_changes_nothing_more(archive):
    (proposal,) = propose(archive, cells(1))
    forgetful = Proposals(Forgetful(archive.connection), Architectures(archive.connection))
    assert forgetful.cancel(proposal.id) is True
    assert forgetful.retry(proposal.id) is True
    assert events(archive, proposal.id) == ["proposed", "cancelled", "retried"]


@pytest.mark.every_server
def test_two_who_cancel_at_once_are_one_cancellation(archive):
    proposals = propose(archive, cells(6))
    claim(archive)
    ids = [proposal.id for proposal in proposals]

    def work(at):
        order = random.Random(at).sample(ids, len(ids))
        return cancellation.cancel(archive.connection, order)

    answers = everywhere(work, threads=4)
    assert sum(map(sum, answers)) == len(ids)
    assert all(events(archive, id_).count("cancelled") == 1 for id_ in ids)


@pytest.mark.every_server
def test_a_cancellation_and_a_completion_at_once_keep_the_result(archive):
    proposals = propose(archive, cells(8))
    held = [claim(archive) for _ in proposals]

    def work(at):
        one = held[at // 2]
        if at % 2:
            return archive.proposals.complete(one.id, one.token, Result(0.1 * at))

        try:
            return archive.proposals.cancel(one.id)
        except ProposalStateError as error:
            return error.state

    answers = everywhere(work, threads=16)
    assert set(answers[::2]) <= {True, "COMPLETE"} and set(answers[1::2]) == {True}
    assert {one.state for one in archive.proposals.list("study")} == {State.COMPLETE}
    assert len(archive.studies.evaluations("study")) == 8


@pytest.mark.every_server
def test_claims_and_cancellations_at_once_leave_nothing_open(archive):
    ids = [proposal.id for proposal in propose(archive, cells(12))]

    def work(at):
        return claim(archive, f"w{at}") if at % 2 else cancellation.cancel(archive.connection, ids)

    everywhere(work, threads=6)
    assert {state(archive, id_) for id_ in ids} == {(State.FAILED, "cancelled")}
    assert claim(archive) is None


def test_the_budget_is_free_again_and_the_network_is_not_proposed_again(archive):
    first, _ = propose(archive, cells(2), budget=2)
    agent = archive.proposals.register_agent("random", {}, "1")
    assert archive.proposals.create("study", agent, suggest(cells(3)[2:])) == []
    archive.proposals.cancel(first.id)
    assert archive.proposals.create("study", agent, suggest(cells(1))) == []
    assert len(archive.proposals.create("study", agent, suggest(cells(3)[2:]))) == 1
    history = provenance.history_of(archive, archive.studies.get("study"))[0]
    assert cells(1)[0].functional_key in history.known and not history.observations


def test_cancelled_proposals_are_no_fault_of_a_study(archive):
    proposals = propose(archive, cells(loop.FAILURES + 1))
    limit = loop.FailureLimit(archive.studies.snapshot("study"))
    cancellation.cancel(archive.connection, [one.id for one in proposals[1:]])
    limit.check(archive.studies.snapshot("study"))
    archive.proposals.cancel(proposals[0].id)
    cancellation.retry(archive.connection, [one.id for one in proposals])
    for _ in proposals:
        held = claim(archive)
        archive.proposals.fail(held.id, held.token, "crash")

    with pytest.raises(SearchError, match="crash"):
        limit.check(archive.studies.snapshot("study"))


def test_a_cancelled_promotion_keeps_the_result_of_its_rung_and_can_go_on(archive):
    rungs = Rungs((2, 6), 2)
    propose(archive, cells(2), config={"rungs": rungs.as_config()}, objective="valid_accuracy")
    for value in (0.9, 0.1):
        held = claim(archive)
        notice = Completion(held.id, held.token, Result(value, epochs=2), pruned=True, rung=0)
        assert archive.proposals.settle([notice]) == [True]

    promoted, paused = archive.proposals.list("study")
    assert (promoted.state, promoted.rung, paused.state) == (State.WAITING, 1, State.PRUNED)
    with pytest.raises(ProposalStateError):
        archive.proposals.cancel(paused.id)

    with pytest.raises(ProposalStateError):
        archive.proposals.retry(paused.id)

    assert archive.proposals.cancel(promoted.id)
    assert state(archive, promoted.id) == (State.PRUNED, "cancelled")
    assert [each.value for each in archive.studies.evaluations("study")] == [0.9, 0.1]
    assert archive.proposals.retry(promoted.id)
    held = claim(archive)
    assert (held.id, held.proposal.rung) == (promoted.id, 1)
    archive.proposals.settle([Completion(held.id, held.token, Result(0.95, epochs=6), rung=1)])
    assert state(archive, promoted.id) == (State.COMPLETE, None)


def test_a_retry_survives_the_load_of_an_older_dump(archive, connection, tmp_path):
    (proposal,) = propose(archive, cells(1))
    archive.proposals.cancel(proposal.id)
    older = tmp_path / "older.gz"
    newer = tmp_path / "newer.gz"
    dumped(archive, older)
    archive.proposals.retry(proposal.id)
    dumped(archive, newer)
    for files in ((older, newer), (newer, older)):
        wipe(connection)
        for file in files:
            load(connection, file)

        assert state(archive, proposal.id) == (State.WAITING, None)
        assert events(archive, proposal.id) == ["proposed", "cancelled", "retried"]
