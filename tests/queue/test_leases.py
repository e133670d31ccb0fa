"""Leases on each server: one holder each, the server's clock, and a limit to lost attempts."""

from __future__ import annotations

import math
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from archive.errors import LeaseLostError, ProposalStateError, UnknownNameError, UsageError
from archive.queue import claimer, claims
from archive.queue.proposals import Proposals
from archive.store.architectures import Architectures
from archive.store.records import Result, State
from tests.support import wait_until
from tests.support.stores import Forgetful, Suggestion, cells, count, everywhere, propose, study

MOMENT = 0.001
LONG = 600.0


@pytest.fixture
def queue(archive):
    """Eight waiting proposals."""
    return propose(archive, cells(8))


def lost(archive, worker="w", **which):
    """Claim a proposal and let its lease run out."""
    claim = archive.proposals.claim(worker, study="study", lease_seconds=MOMENT, **which)
    wait_until(
        lambda: archive.query(
            "MATCH (p:Proposal {id: $id}) RETURN p.lease_until < timestamp()", {"id": claim.id}
        ).rows[0][0]
    )
    return claim


@pytest.mark.every_server
def test_a_claim_has_all_that_training_needs(archive, queue):
    claim = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    assert claim.id == queue[0].id == claim.proposal.id
    assert claim.architecture == cells(1)[0].canonical
    assert (claim.study.task, claim.study.protocol, claim.study.seed) == ("digits", "digits/1", 0)
    stored = archive.proposals.get(claim.id)
    assert (stored.state, stored.worker, stored.attempts) == (State.RUNNING, "w", 0)
    assert stored.lease_until - stored.started == 1000 * LONG
    assert (
        count(
            archive.connection,
            f"(:Worker {{id: 'w'}})-[:CLAIMED]->(:Proposal {{id: '{claim.id}'}})",
        )
        == 1
    )


@pytest.mark.every_server
@pytest.mark.parametrize(
    ("seconds", "stored"), [(0.0, 1), (-5.0, 1), (1e300, 1000 * 100 * 365 * 86400)]
)
def test_a_lease_lasts_from_a_millisecond_to_a_century(archive, queue, seconds, stored):
    claim = archive.proposals.claim("w", study="study", lease_seconds=seconds)
    held = archive.proposals.get(claim.id)
    assert held.lease_until - held.started == stored


def test_one_worker_alone_keeps_the_order(archive, queue):
    archive.studies.create(study("other"))
    archive.proposals.create("other", queue[0].agent, [Suggestion(cells(1)[0], priority=1.0)])
    assert archive.proposals.claim("w", lease_seconds=MOMENT).proposal.study == "other"
    order = []
    while claim := archive.proposals.claim("w", study="study"):
        order.append(claim.proposal.number)
        archive.proposals.fail(claim.id, claim.token, "no matter")

    assert order == list(range(8))
    assert archive.proposals.claim("w", study="nowhere") is None


@pytest.mark.every_server
def test_higher_priority_goes_first_however_many_work(archive):
    archive.studies.create(study())
    agent = archive.proposals.register_agent("random", {}, "1")
    priorities = [0.0, 2.0, 1.0, 2.0, 0.0, 2.0]
    archive.proposals.create(
        "study",
        agent,
        [Suggestion(cell, priority=p) for cell, p in zip(cells(6), priorities, strict=True)],
    )
    claimed = [archive.proposals.claim(f"w{i}", study="study").proposal.priority for i in range(6)]
    assert claimed == sorted(priorities, reverse=True)


def test_workers_spread_over_the_head_of_the_queue(archive, monkeypatch):
    parts = []
    reaches = []
    monkeypatch.setattr(random, "sample", lambda part, count: parts.append(part) or part[:count])
    propose(archive, cells(60))
    for i in range(20):
        parts.clear()
        archive.proposals.claim(f"w{i}", study="study", lease_seconds=LONG)
        reaches.append(len(parts[0]) if parts else 1)

    assert reaches == [1 + 2 * others for others in range(20)]


@pytest.mark.every_server
def test_a_worker_looks_once_for_several_claims(archive, connection, open_connection, monkeypatch):
    propose(archive, cells(12))
    looks = []
    look = claims.look
    monkeypatch.setattr(
        claims, "look", lambda *arguments, **options: looks.append(1) or look(*arguments, **options)
    )
    monkeypatch.setattr(claimer, "HEAD_SECONDS", LONG)
    other = Proposals(open_connection(), archive.architectures)

    def number(proposals, worker):
        return proposals.claim(worker, study="study", lease_seconds=LONG).proposal.number

    assert [number(archive.proposals, "w") for _ in range(4)] == [0, 1, 2, 3]
    assert len(looks) == 1
    # Of the proposals of that look, another worker has claimed some by now.
    taken = {number(other, "v") for _ in range(3)}
    assert number(archive.proposals, "w") == min(set(range(4, 12)) - taken)
    assert len(looks) == 2  # the other worker's


def test_claims_run_one_after_the_other_on_an_embedded_server(archive, connection, queue):
    """Proposals of the head of the queue share pages of ArcadeDB: claims at the same time would
    conflict."""
    with ThreadPoolExecutor(1) as pool:
        with connection.turn(alone=False, lane="claims"):
            claim = pool.submit(archive.proposals.claim, "w", study="study", lease_seconds=LONG)
            if connection.dialect == "embedded":
                with pytest.raises(TimeoutError):
                    claim.result(timeout=0.3)

        assert claim.result(timeout=60).id == queue[0].id


def test_a_changed_order_is_noticed_at_once_or_soon(archive, queue, open_connection, monkeypatch):
    def claim():
        return archive.proposals.claim("w", study="study", lease_seconds=LONG)

    claim()
    archive.proposals.prioritise(queue[7].id, 1.0)
    first = claim()
    assert first.id == queue[7].id
    archive.proposals.release(first.id, first.token)
    assert claim().id == queue[7].id
    Proposals(open_connection(), archive.architectures).prioritise(queue[6].id, 1.0)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + claimer.HEAD_SECONDS)
    assert claim().id == queue[6].id


@pytest.mark.parametrize("priority", [math.inf, -math.inf, math.nan, 10**400, "high", None])
def test_a_priority_without_a_place_in_an_order_is_refused(archive, queue, priority):
    with pytest.raises(UsageError, match="priority must be a finite number, got "):
        archive.proposals.prioritise(queue[7].id, priority)

    if priority is not None:
        with pytest.raises(UsageError, match="priority must be a finite number, got "):
            archive.proposals.create(
                "study", queue[0].agent, [Suggestion(cells(9)[8], priority=priority)]
            )

    assert [one.priority for one in archive.proposals.list("study")] == [0.0] * 8


@pytest.mark.every_server
def test_exactly_one_winner_each(archive, open_connection):
    propose(archive, cells(80))
    opened = [open_connection() for _ in range(8)]
    trainers = [Proposals(each, Architectures(each)) for each in opened]

    def work(i):
        won = []
        while claim := trainers[i].claim(f"w{i}", study="study", lease_seconds=LONG):
            won.append(claim)

        return won

    claims = [claim for won in everywhere(work) for claim in won]
    assert sorted(claim.proposal.number for claim in claims) == list(range(80))
    assert len({claim.token for claim in claims}) == 80
    assert count(archive.connection, "(:Worker)-[:CLAIMED]->(:Proposal)") == 80
    held = {
        proposal.id: proposal.worker
        for proposal in archive.proposals.list("study", [State.RUNNING])
    }
    assert held == {claim.id: claim.proposal.worker for claim in claims}


@pytest.mark.every_server
def test_one_proposal_has_one_winner(archive, open_connection):
    propose(archive, cells(1))
    opened = [open_connection() for _ in range(8)]
    trainers = [Proposals(each, Architectures(each)) for each in opened]
    claims = everywhere(lambda i: trainers[i].claim(f"w{i}", study="study", lease_seconds=LONG))
    assert sum(claim is not None for claim in claims) == 1


def test_a_lost_acknowledgement_claims_nothing_twice(archive, connection, queue):
    proposals = Proposals(Forgetful(connection), archive.architectures)
    claims = [proposals.claim("w", study="study", lease_seconds=LONG) for _ in range(3)]
    assert [claim.proposal.number for claim in claims[:1]] == [0]
    assert len({claim.id for claim in claims}) == 3
    assert len(archive.proposals.list("study", [State.RUNNING])) == 3
    assert count(connection, "(:Worker)-[:CLAIMED]->(:Proposal)") == 3


def test_heartbeats_keep_a_lease(archive, queue):
    claim = archive.proposals.claim("w", study="study", lease_seconds=MOMENT)
    archive.proposals.heartbeat(claim.id, claim.token, LONG)
    archive.proposals.report(claim.id, claim.token, {"loss": [1.0]}, LONG)
    assert archive.proposals.expire("study") == 0
    other = archive.proposals.claim("other", study="study", lease_seconds=LONG)
    assert other.id != claim.id


def test_the_callers_clock_decides_nothing(archive, queue, monkeypatch):
    held = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert archive.proposals.expire("study") == 0
    assert archive.proposals.claim("other", study="study", lease_seconds=LONG).id != held.id


def test_a_lease_that_ran_out_can_still_be_renewed_while_nobody_took_it(archive, queue):
    claim = lost(archive)
    archive.proposals.heartbeat(claim.id, claim.token, LONG)
    assert archive.proposals.expire("study") == 0


def test_a_proposal_with_an_expired_lease_can_be_claimed_again(archive, queue):
    first = lost(archive)
    archive.proposals.report(first.id, first.token, {"loss": [1.0]}, MOMENT)
    wait_until(lambda: archive.proposals.expire("study"))
    waiting = archive.proposals.get(first.id)
    assert (waiting.state, waiting.attempts, waiting.curve) == (State.WAITING, 1, {})
    assert "w" in waiting.reason
    second = archive.proposals.claim("v", study="study", lease_seconds=LONG)
    assert (second.id, second.proposal.attempts) == (first.id, 1)
    assert second.token != first.token
    for call in (
        archive.proposals.heartbeat,
        lambda *a: archive.proposals.report(*a, {"loss": [2.0]}),
    ):
        with pytest.raises(LeaseLostError, match="worker v"):
            call(first.id, first.token)

    assert archive.proposals.get(first.id).curve == {}


def test_claiming_ends_expired_leases_by_itself(archive):
    propose(archive, cells(1))
    first = lost(archive)
    second = archive.proposals.claim("v", study="study", lease_seconds=LONG)
    assert (second.id, second.proposal.attempts, second.proposal.worker) == (first.id, 1, "v")


def test_three_lost_workers_are_enough(archive):
    propose(archive, cells(1))
    for attempt in range(3):
        claim = lost(archive, worker=f"w{attempt}")
        assert claim.proposal.attempts == attempt

    assert archive.proposals.claim("v", study="study") is None
    failed = archive.proposals.get(claim.id)
    assert (failed.state, failed.attempts) == (State.FAILED, 3)
    assert "w2" in failed.reason and "3 attempts" in failed.reason
    assert failed.finished is not None
    with pytest.raises(LeaseLostError):
        archive.proposals.heartbeat(claim.id, claim.token)


@pytest.mark.every_server
def test_many_who_end_one_lease_count_one_attempt(archive, open_connection):
    propose(archive, cells(1))
    claim = lost(archive)
    opened = [open_connection() for _ in range(6)]
    everywhere(lambda i: Proposals(opened[i], Architectures(opened[i])).expire("study"), 6)
    stored = archive.proposals.get(claim.id)
    assert (stored.state, stored.attempts) == (State.WAITING, 1)


def test_reports_replace_the_whole_curve(archive, connection, queue):
    proposals = Proposals(Forgetful(connection), archive.architectures)
    claim = proposals.claim("w", study="study")
    proposals.report(claim.id, claim.token, {"loss": [3.0], "valid_accuracy": [0.1]})
    proposals.report(claim.id, claim.token, {"loss": [3, None], "valid_accuracy": [0.1, 0.5]})
    curve = archive.proposals.get(claim.id).curve
    assert curve["epoch"] == [1, 2]
    assert curve["valid_accuracy"] == [0.1, 0.5]
    assert curve["loss"][0] == 3.0 and curve["loss"][1] != curve["loss"][1]
    with pytest.raises(UsageError, match="one length"):
        proposals.report(claim.id, claim.token, {"loss": [3.0], "valid_accuracy": [0.1, 0.5]})

    assert archive.proposals.get(claim.id).curve["epoch"] == [1, 2]


def test_proposals_that_do_not_exist(archive):
    for call in (archive.proposals.heartbeat, lambda *a: archive.proposals.fail(*a, "NaN")):
        with pytest.raises(UnknownNameError):
            call("study#00009", "token")


def test_a_proposal_handed_back_has_lost_no_attempt(archive, queue):
    claim = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.report(claim.id, claim.token, {"train_loss": [1.0]})
    for _ in range(2):
        archive.proposals.release(claim.id, claim.token)
        back = archive.proposals.get(claim.id)
        assert (back.state, back.attempts, back.reason, back.curve) == (State.WAITING, 0, None, {})

    other = archive.proposals.claim("v", study="study", lease_seconds=LONG)
    assert other.id == claim.id
    with pytest.raises(LeaseLostError, match="worker v holds it"):
        archive.proposals.release(claim.id, claim.token)


def test_a_proposal_with_its_result_gets_no_other_priority(archive, queue):
    claim = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.complete(claim.id, claim.token, Result(0.5))
    with pytest.raises(
        ProposalStateError,
        match=rf"{claim.id} gets no other priority: .* "
        r"\(state COMPLETE\)",
    ):
        archive.proposals.prioritise(claim.id, 5.0)

    assert archive.proposals.get(claim.id).priority == 0.0
    assert archive.proposals.get(queue[-1].id).priority == 0.0
