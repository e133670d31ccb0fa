"""Retention on each server: protected weights are never removed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archive.constraints import parse
from archive.errors import UsageError
from archive.store.records import Objective, Result, Weights
from archive.store.weights import Policy
from tests.support.stores import Repeat, cells, everywhere, known, propose, study, suggest

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


def complete(archive, results, *, pruned=()):
    """Give the waiting proposals these results, each with separate weights; those at `pruned` are
    partial ones."""
    for at, result in enumerate(results):
        claim = archive.proposals.claim("w", study="study")
        archive.proposals.complete(
            claim.id, claim.token, replace(result, weights=saved(at)), pruned=at in pruned
        )


def reasons(archive, policy, under=UNDER):
    return [one.reason for one in archive.retention.holdings(policy, under)]


def test_the_best_of_each_study_stay(archive):
    train(archive, [0.1, 0.9, 0.5, float("nan")])
    train(archive, [0.1, 0.9, 0.5], "other", direction="minimise", first=4)
    assert reasons(archive, Policy(1, 0)) == ["", "best", "", "", "best", "", ""]
    assert reasons(archive, Policy(2, 0)) == ["", "best", "best", "", "best", "", "best"]


def test_results_that_meet_the_constraints_are_the_best_then_those_near_to_it(archive):
    propose(archive, cells(6), constraints=(parse("params<=10"),))
    rows = [(0.9, 30.0), (0.1, 10.0), (0.8, 20.0), (0.95, None), (0.2, 5.0)]
    complete(
        archive,
        [Result(value, {} if params is None else {"params": params}) for value, params in rows],
    )
    assert reasons(archive, Policy(1, 0)) == ["", "", "", "", "best"]
    assert reasons(archive, Policy(3, 0)) == ["", "best", "best", "", "best"]
    archive.query("MATCH (s:Study) SET s.bounds = [1.0]", write=True)
    assert reasons(archive, Policy(1, 0)) == ["", "", "", "", "best"]
    assert reasons(archive, Policy(2, 0)) == ["", "best", "", "", "best"]


def test_whole_results_are_better_than_partial_ones(archive):
    propose(archive, cells(3))
    complete(archive, [Result(0.9), Result(0.5), Result(0.8)], pruned={0, 2})
    assert reasons(archive, Policy(1, 0)) == ["", "best", ""]
    assert reasons(archive, Policy(2, 0)) == ["best", "best", ""]


def test_of_several_objectives_the_whole_pareto_set_stays(archive):
    propose(
        archive,
        cells(9),
        further=(Objective("params", "minimise"),),
        constraints=(parse("params<=20"),),
    )
    rows = [*((0.1 * at, float(at)) for at in range(7)), (0.05, 6.0), (0.99, 21.0)]
    complete(archive, [Result(value, {"params": params}) for value, params in rows])
    assert reasons(archive, Policy(1, 0)) == ["best"] * 7 + ["", ""]
    assert reasons(archive, NOTHING) == [""] * 9


def test_the_pareto_set_is_that_of_means_over_replicates(archive):
    noisy, other = cells(2)
    propose(archive, [noisy, other], further=(Objective("params", "minimise"),))
    archive.proposals.create(
        "study", archive.proposals.register_agent("random", {}, "1"), [Repeat(noisy)]
    )
    # The first evaluation of the noisy network is worse than the other network, the mean of both is
    # better.
    complete(archive, [Result(value, {"params": 1.0}) for value in (0.4, 0.5, 0.8)])
    assert archive.studies.snapshot("study").incumbent.number == 2
    assert reasons(archive, Policy(1, 0)) == ["best", "", "best"]


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

        return (
            "forgotten"
            if archives[at].retention.forget(Policy(0, 3600), [saved(0).uri])
            else "kept"
        )

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
