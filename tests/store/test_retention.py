"""Retention on each server: protected weights are never removed."""

from __future__ import annotations

import pytest

from archive.errors import UsageError
from archive.store.records import Result, Weights
from archive.store.weights.retention import Policy
from tests.support.stores import cells, everywhere, known, propose, study, suggest

UNDER = "file:///weights/"
NOTHING = Policy(keep_best=0, grace_seconds=0)


def saved(at: int) -> Weights:
    return Weights(f"{UNDER}{at:02d}", f"{at:02d}" * 32, 10 + at)


def train(archive, values, name="study", direction="maximise", first=0):
    """Complete one cell for each value, each with separate weights, numbered from `first`."""
    networks = cells(len(values))
    propose(archive, networks, name, direction=direction)
    for at, value in enumerate(values):
        claim = archive.proposals.claim("w", study=name)
        archive.proposals.complete(claim.id, claim.token, Result(value, weights=saved(first + at)))
    return networks


def reasons(archive, policy, under=UNDER):
    return [one.reason for one in archive.retention.holdings(policy, under)]


def test_the_best_of_each_study_stay(archive):
    train(archive, [0.1, 0.9, 0.5, float("nan")])
    train(archive, [0.1, 0.9, 0.5], "other", direction="minimise", first=4)
    assert reasons(archive, Policy(1, 0)) == ["", "best", "", "", "best", "", ""]
    assert reasons(archive, Policy(2, 0)) == ["", "best", "best", "", "best", "", "best"]


def test_young_weights_are_kept(archive):
    train(archive, [0.1, 0.9])
    assert reasons(archive, Policy(0, 3600)) == ["young", "young"]
    assert reasons(archive, NOTHING) == ["", ""]


def test_what_was_reserved_is_young_again(archive):
    train(archive, [0.1, 0.9])
    archive.query("MATCH (e:Evaluation) SET e.created = e.created - 7200000", write=True)
    assert reasons(archive, Policy(0, 3600)) == ["", ""]
    assert archive.lineage.reserve(saved(1))
    assert reasons(archive, Policy(0, 3600)) == ["", "young"]


def test_ancestors_of_what_waits_or_runs_are_in_use(archive):
    first, second, third = train(archive, [0.1, 0.5, 0.9])
    child = cells(5)[-1]
    archive.architectures.record_morph(first, second, ["deepen"])
    archive.architectures.record_morph(second, child, ["widen"])
    propose(archive, [child], "next")
    assert reasons(archive, NOTHING) == ["in use", "in use", ""]
    claim = archive.proposals.claim("w", study="next")
    assert reasons(archive, NOTHING) == ["in use", "in use", ""]
    archive.proposals.complete(claim.id, claim.token, Result(0.5))
    assert reasons(archive, NOTHING) == ["", "", ""]
    propose(archive, [third], "again")
    assert reasons(archive, NOTHING) == ["", "", "in use"]


def test_only_unprotected_weights_are_removed(archive):
    train(archive, [0.1, 0.9, 0.5])
    uris = [saved(at).uri for at in range(3)]
    assert archive.retention.forget(Policy(1, 0), uris) == [uris[0], uris[2]]
    assert known(archive) == {uris[1]}
    assert archive.retention.forget(Policy(1, 0), uris) == []
    assert archive.weights.of_evaluation("study#00000") is None
    assert archive.studies.evaluations("study")[0].value == 0.1


def test_other_places_are_left_alone(archive):
    train(archive, [0.1, 0.9])
    assert archive.retention.holdings(NOTHING, "file:///elsewhere/") == []


def test_shared_weights_are_kept_for_any_of_their_evaluations(archive):
    train(archive, [0.9, 0.1])
    train(archive, [0.3], "other")
    (first, second) = archive.retention.holdings(Policy(1, 0), UNDER)
    assert (first.evaluations, first.reason) == (("other#00000", "study#00000"), "best")
    assert (second.evaluations, second.reason) == (("study#00001",), "")


@pytest.mark.every_server
def test_reserving_and_forgetting_at_once_is_one_or_the_other(archive, open_connection):
    from archive.api import Archive

    train(archive, [0.5])
    archive.query("MATCH (e:Evaluation) SET e.created = e.created - 7200000", write=True)
    archives = [Archive(open_connection()) for _ in range(8)]

    def work(at):
        if at % 2:
            return "reserved" if archives[at].lineage.reserve(saved(0)) else "gone"
        return "forgotten" if archives[at].retention.forget(Policy(0, 3600), [saved(0).uri]) else "kept"

    outcomes = everywhere(work)
    assert ("reserved" in outcomes) != ("forgotten" in outcomes)
    assert known(archive) == (set() if "forgotten" in outcomes else {saved(0).uri})


def test_proposals_that_wait_are_looked_at_again_when_weights_are_forgotten(archive):
    (network,) = train(archive, [0.5])
    (holding,) = archive.retention.holdings(NOTHING, UNDER)
    assert not holding.reason
    archive.studies.create(study("late"))
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create("late", agent, suggest([network]))
    assert archive.retention.forget(NOTHING, [holding.weights.uri]) == []


@pytest.mark.parametrize("numbers", [(-1, 0.0), (1, -1.0), (1, float("nan"))])
def test_an_invalid_policy_is_refused(numbers):
    with pytest.raises(UsageError, match="must be >= 0"):
        Policy(*numbers)
