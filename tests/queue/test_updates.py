"""Many proposals in one transaction: shared claims, and notices with separate answers."""

from __future__ import annotations

import json
import math
import random
import time

import pytest

from archive.errors import LeaseLostError, UnknownNameError, UsageError
from archive.queue import updates
from archive.queue.proposals import Proposals
from archive.queue.updates import Completion, Failure, Release, Report
from archive.store.architectures import Architectures
from archive.store.records import Result, State
from tests.support import wait_until
from tests.support.stores import Forgetful, Suggestion, cells, count, everywhere, propose

LONG = 600.0


def states(archive, name="study"):
    return {proposal.number: proposal.state for proposal in archive.proposals.list(name)}


@pytest.mark.every_server
def test_several_are_claimed_in_order_under_one_token(archive):
    propose(archive, cells(8))
    first = archive.proposals.claim_many("w", 5, study="study", lease_seconds=LONG)
    assert [claim.proposal.number for claim in first] == [0, 1, 2, 3, 4]
    assert [claim.architecture for claim in first] == [cell.canonical for cell in cells(8)[:5]]
    assert len({claim.token for claim in first}) == 1
    rest = archive.proposals.claim_many("w", 5, study="study", lease_seconds=LONG)
    assert [claim.proposal.number for claim in rest] == [5, 6, 7]
    assert rest[0].token != first[0].token
    assert (
        archive.proposals.claim_many("w", 5, study="study")
        == archive.proposals.claim_many("w", 0)
        == []
    )
    assert (
        count(archive.connection, "(:Worker {id: 'w'})-[:CLAIMED]->(:Proposal {state: 'RUNNING'})")
        == 8
    )


def test_no_worker_takes_more_than_its_share(archive):
    propose(archive, cells(12))
    assert len(archive.proposals.claim_many("a", 2, study="study", lease_seconds=LONG)) == 2
    assert len(archive.proposals.claim_many("b", 9, study="study", lease_seconds=LONG)) == 5
    assert len(archive.proposals.claim_many("c", 9, study="study", lease_seconds=LONG)) == 1
    assert len(archive.proposals.claim_many("a", 9, study="study", lease_seconds=LONG)) == 1


def test_a_table_worker_takes_the_whole_queue_and_expired_proposals(archive):
    propose(archive, cells(12))
    assert len(archive.proposals.claim_many("a", 2, study="study", lease_seconds=0.001)) == 2
    held = archive.proposals.claim_many("b", 8, study="study", lease_seconds=LONG, whole=True)
    assert [claim.proposal.number for claim in held] == [*range(2, 10)]
    assert (
        len(archive.proposals.claim_many("c", 9, study="study", lease_seconds=LONG, whole=True))
        == 2
    )
    # The leases of the first are suspected, and end a third of their duration later.
    lost = wait_until(
        lambda: archive.proposals.claim_many("c", 9, study="study", lease_seconds=LONG, whole=True)
    )
    assert [claim.proposal.number for claim in lost] == [0, 1]


@pytest.mark.every_server
def test_a_proposal_without_a_priority_is_an_ordinary_one(archive):
    propose(archive, cells(3))
    archive.query("MATCH (p:Proposal {number: 1}) SET p.priority = null", write=True)
    claimed = archive.proposals.claim_many("w", 9, study="study", lease_seconds=LONG)
    assert [claim.proposal.number for claim in claimed] == [0, 1, 2]


def test_a_batch_never_reaches_past_the_highest_priority(archive):
    propose(archive, cells(2))
    (proposal, _) = archive.proposals.list("study")
    archive.proposals.create(
        "study", proposal.agent, [Suggestion(cell, priority=1.0) for cell in cells(5)[2:]]
    )
    claimed = archive.proposals.claim_many("w", 5, study="study", lease_seconds=LONG)
    assert [claim.proposal.number for claim in claimed] == [2, 3, 4]


@pytest.mark.every_server
def test_batches_of_many_workers_do_not_meet(archive, open_connection):
    propose(archive, cells(80))
    opened = [open_connection() for _ in range(8)]
    trainers = [Proposals(each, Architectures(each)) for each in opened]

    def work(i):
        won = []
        while some := trainers[i].claim_many(
            f"w{i}", random.randint(1, 9), study="study", lease_seconds=LONG
        ):
            won += some
            answers = trainers[i].settle(
                [Completion(claim.id, claim.token, Result(float(i))) for claim in some]
            )
            assert answers == [True] * len(some)

        return won

    won = [[claim.proposal.number for claim in each] for each in everywhere(work)]
    assert sorted(number for each in won for number in each) == list(range(80))
    assert set(states(archive).values()) == {State.COMPLETE}
    by_worker = {each.number: each.value for each in archive.studies.evaluations("study")}
    assert by_worker == {number: float(i) for i, each in enumerate(won) for number in each}


def test_a_lost_acknowledgement_changes_nothing_more(archive, connection):
    propose(archive, cells(6))
    proposals = Proposals(Forgetful(connection), archive.architectures)
    claimed = proposals.claim_many("w", 4, study="study", lease_seconds=LONG)
    assert [claim.proposal.number for claim in claimed] == [0, 1, 2, 3]
    a, b, c, d = claimed
    notices = [
        Report(a.id, a.token, {"loss": [1.0]}, LONG),
        Completion(b.id, b.token, Result(0.5)),
        Failure(c.id, c.token, "out of memory", retry=True),
        Release(d.id, d.token),
    ]
    assert proposals.settle(notices) == [True] * 4
    found = archive.proposals.list("study")
    assert [each.state for each in found[:4]] == [
        State.RUNNING,
        State.COMPLETE,
        State.WAITING,
        State.WAITING,
    ]
    assert [each.attempts for each in found[:4]] == [0, 0, 1, 0]
    assert found[0].curve == {"epoch": [1], "loss": [1.0]}
    assert count(connection, "(:Evaluation)") == 1


@pytest.mark.every_server
def test_reports_extend_the_curve(archive, connection):
    """Repeated, overlapping and too late reports lead to the same curve, whatever other clients
    have done to it."""
    propose(archive, cells(3))
    a, b, c = archive.proposals.claim_many("w", 3, study="study", lease_seconds=LONG)
    whole = {
        "epoch": [1, 2, 4, 8],
        "loss": [4.0, math.nan, 2.0, 1.0],
        "top`5/acc@v": [0.1, 0.2, 0.3, 0.4],
    }
    part = {name: values[:2] for name, values in whole.items()}
    proposals = Proposals(Forgetful(connection), archive.architectures)
    assert proposals.settle(
        [Report(a.id, a.token, part, LONG), Report(b.id, b.token, None, LONG)]
    ) == [True, True]
    later = [
        Report(a.id, a.token, whole, LONG, 2),
        Report(b.id, b.token, whole, LONG, 3),
        Report(c.id, c.token),
    ]
    for _ in range(2):
        assert proposals.settle(later) == [True] * 3
        assert _curves(archive) == [whole, whole, {}]

    assert proposals.settle([Report(a.id, a.token, whole, LONG, 1)]) == [True]
    archive.query("MATCH (p:Proposal {id: $id}) SET p.curve_loss = null", {"id": b.id}, write=True)
    assert proposals.settle([Report(b.id, b.token, whole, LONG, 3)]) == [True]
    assert _curves(archive) == [whole, whole, {}]
    types = (
        "RETURN p.curve_epoch[3] = 8, p.curve_epoch[0] + p.curve_epoch[3] = 9, "
        "p.curve_loss[3] / 2 = 0.5"
    )
    assert archive.query("MATCH (p:Proposal {number: 0}) " + types).rows == [(True, True, True)]


def test_a_report_is_as_long_as_what_is_new(archive, connection):
    propose(archive, cells(1))
    (claim,) = archive.proposals.claim_many("w", 1, study="study", lease_seconds=LONG)
    sent = []

    class Spy:
        def __init__(self, tx):
            self.tx = tx

        def run(self, statement, **parameters):
            sent.append(len(json.dumps(parameters)))
            return self.tx.run(statement, **parameters)

    for length in (1000, 1001, 2000, 2001):
        curve = {"loss": [0.5] * length, "accuracy": [0.25] * length}
        report = Report(claim.id, claim.token, curve, LONG, begin=length - 1 if length % 2 else 0)
        assert connection.write(lambda tx, report=report: updates.settle_held(Spy(tx), [report]))

    assert sent[1] == sent[3] < sent[0] / 20
    assert archive.proposals.get(claim.id).curve["epoch"] == list(range(1, 2002))


def test_each_notice_is_answered_for_itself(archive):
    propose(archive, cells(4))
    a, b, c = archive.proposals.claim_many("w", 3, study="study", lease_seconds=LONG)
    archive.proposals.complete(b.id, "another", Result(0.25))
    answers = archive.proposals.settle(
        [
            Completion("study#99999", "token", Result(1.0)),
            Completion(a.id, a.token, Result(0.5)),
            Completion(b.id, b.token, Result(0.75)),
            Report(b.id, b.token, {"loss": [1.0]}),
            Failure(c.id, "another", "NaN"),
            # An earlier notice of the same call counts.
            Report(a.id, a.token, {"loss": [1.0]}),
        ]
    )
    assert [type(answer) for answer in answers] == [
        UnknownNameError, bool, bool, LeaseLostError, LeaseLostError, LeaseLostError,
    ]  # fmt: skip
    assert answers[1:3] == [True, False]
    assert [each.value for each in archive.studies.evaluations("study")] == [0.5, 0.25]
    assert archive.proposals.get(c.id).state is State.RUNNING


@pytest.mark.every_server
def test_results_that_come_together_each_find_their_place(archive, connection):
    """Notices have the same effect whether all are stored in one step or some are refused."""
    propose(archive, cells(6))
    a, b, c, d, e = archive.proposals.claim_many("w", 5, study="study", lease_seconds=LONG)
    # One has reported a curve that its result lacks, one is lost, one has its result already.
    archive.proposals.report(a.id, a.token, {"loss": [1.0], "gradient": [9.0]}, LONG)
    archive.proposals.release(c.id, c.token)
    archive.proposals.complete(d.id, "another", Result(0.25))
    results = {
        one.id: Result(one.proposal.number / 8, curve={"loss": [1.0, 0.5]})
        for one in (a, b, c, d, e)
    }
    several = [Completion(one.id, one.token, results[one.id]) for one in (a, b, c, d)]
    several.append(Completion(e.id, e.token, results[e.id], architecture=a.architecture.key))

    for _ in range(2):
        answers = archive.proposals.settle(several)
        assert answers[:4] == [True, True, True, False]
        assert isinstance(answers[4], LeaseLostError)
        assert states(archive) == {4: State.RUNNING, 5: State.WAITING} | dict.fromkeys(
            range(4), State.COMPLETE
        )
        found = {one.number: one for one in archive.studies.evaluations("study")}
        assert {number: one.value for number, one in found.items()} == {
            0: 0.0,
            1: 0.125,
            2: 0.25,
            3: 0.25,
        }
        assert found[0].curve == found[2].curve == {"epoch": [1, 2], "loss": [1.0, 0.5]}
        assert not any(proposal.curve for proposal in archive.proposals.list("study"))
        assert (
            count(connection, "(:Proposal)-[:RESULTED_IN]->(:Evaluation)-[:OF]->(:Architecture)")
            == 4
        )

    more = Completion(e.id, e.token, Result(0.5))
    less = Completion(e.id, e.token, Result(0.75))
    assert archive.proposals.settle([more, less]) == [True, True]
    assert archive.studies.evaluations("study")[-1].value == 0.5


def test_a_result_of_another_network_is_refused(archive):
    propose(archive, cells(2))
    a, b = archive.proposals.claim_many("w", 2, study="study", lease_seconds=LONG)
    # As in an archive that was emptied and filled again: the same id, another network.
    told = Completion(a.id, "of an earlier archive", Result(0.99), architecture=b.architecture.key)
    (answer,) = archive.proposals.settle([told])
    assert isinstance(answer, LeaseLostError)
    assert archive.proposals.get(a.id).state is State.RUNNING
    assert archive.proposals.settle(
        [Completion(a.id, a.token, Result(0.5), architecture=a.architecture.key)]
    ) == [True]
    assert [each.value for each in archive.studies.evaluations("study")] == [0.5]


def test_an_invalid_notice_is_refused_before_anything_is_stored(archive):
    propose(archive, cells(2))
    a, b = archive.proposals.claim_many("w", 2, study="study", lease_seconds=LONG)
    with pytest.raises(UsageError, match="one length"):
        archive.proposals.settle(
            [
                Completion(a.id, a.token, Result(0.5)),
                Report(b.id, b.token, {"a": [1.0], "b": [1.0, 2.0]}),
            ]
        )

    assert archive.proposals.get(a.id).state is State.RUNNING


@pytest.mark.every_server
def test_an_attempt_keeps_how_it_ended(archive):
    propose(archive, cells(1))
    for number, retry in enumerate((True, True, True)):
        claim = archive.proposals.claim(f"w{number}", study="study")
        archive.proposals.fail(
            claim.id, claim.token, f"signal {number}", retry, log=f"line\n{'x' * 5000}{number}"
        )

    proposal = archive.proposals.get(claim.id)
    assert (proposal.state, proposal.reason) == (
        State.FAILED,
        "signal 2; given up after 3 attempts",
    )
    rows = archive.query(
        "MATCH (w:Worker)-[c:CLAIMED]->() RETURN w.id, c.outcome, c.reason, size(c.log), "
        "c.ended "
        ">= c.at ORDER BY c.at"
    ).rows
    assert [tuple(row) for row in rows] == [
        (f"w{i}", "failed", f"signal {i}", 4000, True) for i in range(3)
    ]


def test_after_an_outage_holders_get_time_to_come_back(archive):
    """After an outage of minutes all leases have expired; the first worker to claim must not take
    running proposals."""
    propose(archive, cells(1))
    claim = archive.proposals.claim("w", study="study", lease_seconds=3.0)
    _let_run_out(archive, claim)
    assert archive.proposals.claim("v", study="study") is None
    archive.proposals.heartbeat(claim.id, claim.token, LONG)
    assert archive.proposals.expire("study") == 0
    assert (archive.proposals.get(claim.id).state, archive.proposals.get(claim.id).attempts) == (
        State.RUNNING,
        0,
    )
    # A holder that does not return loses it a third of the lease later.
    archive.proposals.heartbeat(claim.id, claim.token, 0.6)
    _let_run_out(archive, claim)
    second = wait_until(lambda: archive.proposals.claim("v", study="study", lease_seconds=LONG))
    assert (second.id, second.proposal.attempts) == (claim.id, 1)


@pytest.mark.every_server
def test_a_worker_whose_clock_is_wrong_is_a_worker_like_any_other(
    archive, open_connection, monkeypatch
):
    """Clocks an hour ahead or behind have no effect on leases."""
    propose(archive, cells(3))
    now = time.time
    for shift, name in ((3600.0, "ahead"), (-3600.0, "behind")):
        monkeypatch.setattr(time, "time", lambda shift=shift: now() + shift)
        held = archive.proposals.claim(name, study="study", lease_seconds=LONG)
        lease = archive.query(
            (
                "MATCH (p:Proposal {id: $id}) RETURN p.lease_until - timestamp(), timestamp() - "
                "p.started"
            ),
            {"id": held.id},
        ).rows[0]
        assert 0 < lease[0] <= 1000 * LONG and 0 <= lease[1] < 60_000
        archive.proposals.report(held.id, held.token, {"loss": [1.0]}, 0.001)
        wait_until(lambda: archive.proposals.expire("study"))
        monkeypatch.undo()
        taken = archive.proposals.claim("right", study="study", lease_seconds=LONG)
        assert (taken.id, taken.proposal.attempts) == (held.id, 1)
        monkeypatch.setattr(time, "time", lambda shift=shift: now() + shift)
        with pytest.raises(LeaseLostError):
            archive.proposals.heartbeat(held.id, held.token)

        monkeypatch.undo()
        archive.proposals.complete(taken.id, taken.token, Result(0.5))


def _curves(archive):
    """Return the curves of the proposals, with NaN that equals itself."""
    curves = [proposal.curve for proposal in archive.proposals.list("study")]
    return [
        {name: [math.nan if x != x else x for x in values] for name, values in curve.items()}
        for curve in curves
    ]


def _let_run_out(archive, claim):
    cypher = "MATCH (p:Proposal {id: $id}) RETURN p.lease_until < timestamp()"
    wait_until(lambda: archive.query(cypher, {"id": claim.id}).rows[0][0])
