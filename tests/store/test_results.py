"""Results on each server: complete, unique, and never lost."""

from __future__ import annotations

import math

import pytest

from archive.errors import IncompleteWriteError, LeaseLostError, UsageError
from archive.queue.proposals import Proposals
from archive.store.architectures import Architectures
from archive.store.records import Result, State, Weights
from tests.support import wait_until
from tests.support.stores import Forgetful, cells, count, everywhere, propose

CURVE = {"train_loss": [2.0, 1.0, 0.5], "valid_accuracy": [0.25, 0.5, 0.75]}
RESULT = Result(
    0.75,
    {"accuracy": 0.75, "loss": 0.5},
    CURVE,
    seconds=12.5,
    seed=3,
    device="cpu",
    hardware="A processor of 2 GHz",
    environment={"torch": "2.8"},
    weights=Weights("file:///weights", "ab" * 32, 1024),
)


@pytest.fixture
def claim(archive):
    propose(archive, cells(2))
    return archive.proposals.claim("w", study="study", lease_seconds=600)


def evaluations(archive):
    return archive.studies.evaluations("study")


@pytest.mark.parametrize(
    ("result", "end"),
    [(Result(0.75), ""), (Result(0.75, epochs=1, seconds=2.5), ", 1 epoch, 2.5 s")],
)
def test_a_printed_evaluation_is_one_line_without_what_is_unknown(archive, claim, result, end):
    archive.proposals.complete(claim.id, claim.token, result)
    key = claim.architecture.key
    assert str(evaluations(archive)[0]) == (
        f"{claim.id}: value 0.75, architecture {key} (nasbench201, 8 layers){end}"
    )


def shape(connection):
    patterns = (
        "RESULTED_IN]->(:Evaluation)",
        "ON]->(:Task)",
        "SAVED]->(:Weights)",
        "OF]->(:Architecture)",
    )
    return [count(connection, f"()-[:{pattern}") for pattern in patterns]


@pytest.mark.every_server
def test_a_result_is_written_whole_or_refused(archive, claim):
    key = claim.proposal.architecture_key
    archive.query("MATCH (a:Architecture {key: $key}) DETACH DELETE a", {"key": key}, write=True)
    with pytest.raises(IncompleteWriteError, match=f"{claim.id}.*not in the archive"):
        archive.proposals.complete(claim.id, claim.token, RESULT)

    assert archive.proposals.get(claim.id).state is State.RUNNING
    assert count(archive.connection, "(:Evaluation)") == 0


def test_a_result_comes_back_as_it_was_found(archive, claim):
    archive.proposals.report(
        claim.id, claim.token, {name: values[:2] for name, values in CURVE.items()}
    )
    assert archive.proposals.complete(claim.id, claim.token, RESULT)
    (found,) = evaluations(archive)
    assert (found.id, found.number, found.value, found.metrics) == (
        claim.id,
        0,
        0.75,
        RESULT.metrics,
    )
    assert found.curve == {"epoch": [1, 2, 3], **CURVE}
    assert (found.epochs, found.seconds, found.seed, found.device) == (3, 12.5, 3, "cpu")
    assert found.hardware == RESULT.hardware
    assert found.architecture == claim.architecture
    proposal = archive.proposals.get(claim.id)
    assert (proposal.state, proposal.reason, proposal.curve) == (State.COMPLETE, None, {})
    assert proposal.finished is not None
    assert archive.weights.of_evaluation(claim.id) == RESULT.weights
    # Two proposals and one evaluation are OF an architecture; the study is ON the task, too.
    assert shape(archive.connection) == [1, 2, 1, 3]


@pytest.mark.every_server
def test_cypher_reads_every_epoch_and_every_metric(archive, claim):
    archive.proposals.complete(claim.id, claim.token, RESULT)
    rows = archive.query(
        """MATCH (:Study {name: 'study'})-[:PROPOSED]->()-[:RESULTED_IN]->(e)-[:ON]->(:Task {name: 'digits'})
        UNWIND range(0, size(e.curve_epoch) - 1) AS i
        RETURN e.curve_epoch[i], e.curve_train_loss[i], e.curve_valid_accuracy[i], e.metric_accuracy"""
    ).rows
    assert [tuple(row) for row in rows] == [
        (1, 2.0, 0.25, 0.75),
        (2, 1.0, 0.5, 0.75),
        (3, 0.5, 0.75, 0.75),
    ]


def test_completing_twice_changes_nothing(archive, connection, claim):
    proposals = Proposals(Forgetful(connection), archive.architectures)
    assert proposals.complete(claim.id, claim.token, RESULT)
    assert archive.proposals.complete(claim.id, claim.token, Result(0.1))
    assert [each.value for each in evaluations(archive)] == [0.75]
    assert shape(connection) == [1, 2, 1, 3]


def test_a_late_result_is_kept_and_the_first_one_stays(archive, claim):
    archive.proposals.heartbeat(claim.id, claim.token, 0.001)
    wait_until(lambda: archive.proposals.expire("study"))
    second = archive.proposals.claim("v", study="study", lease_seconds=600)
    assert second.id == claim.id
    assert archive.proposals.complete(claim.id, claim.token, RESULT)
    with pytest.raises(LeaseLostError, match="COMPLETE"):
        archive.proposals.heartbeat(second.id, second.token)

    assert not archive.proposals.complete(second.id, second.token, Result(0.1))
    assert [each.value for each in evaluations(archive)] == [0.75]


def test_a_result_outlives_a_proposal_that_was_given_up(archive, claim):
    proposals = Proposals(archive.connection, archive.architectures, max_attempts=1)
    proposals.heartbeat(claim.id, claim.token, 0.001)
    wait_until(lambda: proposals.expire("study"))
    assert archive.proposals.get(claim.id).state is State.FAILED
    assert archive.proposals.complete(claim.id, claim.token, RESULT)
    found = archive.proposals.get(claim.id)
    assert (found.state, found.reason) == (State.COMPLETE, None)


@pytest.mark.every_server
def test_many_who_complete_one_proposal(archive, connection, open_connection, claim):
    opened = [open_connection() for _ in range(6)]
    trainers = [Proposals(each, Architectures(each)) for each in opened]
    kept = everywhere(lambda i: trainers[i].complete(claim.id, f"token{i}", Result(float(i))), 6)
    assert sum(kept) == 1
    assert [each.value for each in evaluations(archive)] == [float(kept.index(True))]
    assert shape(connection) == [1, 2, 0, 3]


@pytest.mark.every_server
def test_many_proposals_completed_at_once(archive, connection, open_connection):
    propose(archive, cells(48), budget=48)
    opened = [open_connection() for _ in range(8)]
    trainers = [Proposals(each, Architectures(each)) for each in opened]

    def work(i):
        while claim := trainers[i].claim(f"w{i}", study="study", lease_seconds=600):
            trainers[i].report(claim.id, claim.token, CURVE)
            assert trainers[i].complete(
                claim.id, claim.token, Result(claim.proposal.number / 100, {}, CURVE)
            )

    everywhere(work)
    found = evaluations(archive)
    assert [each.value for each in found] == [number / 100 for number in range(48)]
    assert all(each.curve["train_loss"] == CURVE["train_loss"] for each in found)
    assert shape(connection)[:2] == [48, 49]


def test_a_pruned_result_is_kept_as_such(archive, claim):
    archive.proposals.complete(claim.id, claim.token, RESULT, pruned=True)
    assert archive.proposals.get(claim.id).state is State.PRUNED
    assert archive.proposals.complete(claim.id, claim.token, RESULT)
    assert archive.proposals.get(claim.id).state is State.PRUNED


def test_values_that_are_not_finite(archive, claim):
    result = Result(math.nan, {"loss": math.inf}, {"loss": [1.0, math.inf], "epoch": [5, 10]})
    archive.proposals.complete(claim.id, claim.token, result)
    (found,) = evaluations(archive)
    assert math.isnan(found.value) and found.metrics["loss"] == math.inf
    assert found.curve == {"epoch": [5, 10], "loss": [1.0, math.inf]}
    assert found.epochs == 2


def test_a_curve_that_does_not_fit_changes_nothing(archive, claim):
    with pytest.raises(UsageError, match="one length"):
        archive.proposals.complete(claim.id, claim.token, Result(0.5, {}, {"a": [1.0], "b": []}))

    assert archive.proposals.get(claim.id).state is State.RUNNING
    assert evaluations(archive) == []


class TestFailing:
    def test_for_good(self, archive, connection, claim):
        proposals = Proposals(Forgetful(connection), archive.architectures)
        proposals.report(claim.id, claim.token, {"loss": [math.inf]})
        proposals.fail(claim.id, claim.token, "loss is NaN in epoch 1")
        found = archive.proposals.get(claim.id)
        assert (found.state, found.reason, found.attempts) == (
            State.FAILED,
            "loss is NaN in epoch 1",
            0,
        )
        assert found.curve["epoch"] == [1]
        proposals.fail(claim.id, claim.token, "something else")
        assert archive.proposals.get(claim.id) == found

    @pytest.mark.every_server
    def test_to_be_tried_again_until_the_limit(self, archive, connection):
        proposals = Proposals(Forgetful(connection), archive.architectures)
        propose(archive, cells(1))
        for attempt in (1, 2, 3):
            claim = proposals.claim("w", study="study")
            proposals.fail(claim.id, claim.token, "worker killed", retry=True)
            found = archive.proposals.get(claim.id)
            assert found.attempts == attempt
            assert found.state is (State.FAILED if attempt == 3 else State.WAITING)

        assert "worker killed" in found.reason and "3 attempts" in found.reason
        assert proposals.claim("w", study="study") is None

    def test_never_takes_a_result_back(self, archive, claim):
        archive.proposals.complete(claim.id, claim.token, RESULT)
        with pytest.raises(LeaseLostError):
            archive.proposals.fail(claim.id, claim.token, "too late")

        assert archive.proposals.get(claim.id).state is State.COMPLETE

    def test_is_for_the_holder_only(self, archive, claim):
        with pytest.raises(LeaseLostError, match="worker w"):
            archive.proposals.fail(claim.id, "another token", "NaN")

        assert archive.proposals.get(claim.id).state is State.RUNNING
