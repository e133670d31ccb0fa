"""Sources that take part only while there is evidence for them."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History, Observation
from archive.agents.transfer import coordinator
from archive.agents.transfer.coordinator import OTHER_SPACES
from archive.agents.transfer.evidence import FIRST, Evidence
from archive.agents.transfer.source_model import group_sources
from archive.errors import UnknownNameError
from tests.agents.transfer.test_coordinator import half, search, source
from tests.support.listed import score, small_table


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return small_table(tmp_path_factory.mktemp("table"))


def test_a_good_source_is_followed_as_soon_as_there_is_evidence(space):
    known = half(space)
    # Another unit and origin, and a nonlinear map: only the order is informative.
    one_source = source(known, [np.exp(score(one)) - 40.0 for one in known])
    agent = agents.get("portfolio", space)
    evaluated, correlations = search(agent, [one_source], FIRST + 3)
    assert evaluated[:FIRST] == search(agent, [], FIRST)[0]
    ranks = sorted((score(one) for one in space.members()), reverse=True)
    assert min(ranks.index(score(one)) for one in evaluated[FIRST:]) <= 3
    assert correlations["s"] > 0.3


def test_a_source_that_says_nothing_changes_nothing(space):
    known = half(space)
    shuffled = source(known, np.random.default_rng(5).permutation([score(one) for one in known]))
    agent = agents.get("portfolio", space)
    evaluated, correlations = search(agent, [shuffled], 12)
    assert evaluated == search(agent, [], 12)[0]
    assert correlations == {"s": 0.0}


def test_evidence_for_a_source_that_tells_bad_networks_from_good_ones_and_not_which_is_best(space):
    def value(cell):
        # Cells without a convolution are far behind, and differ by more than all others.
        return score(cell) if score(cell) >= 1.0 else -9.0 - 2.0 * (len(cell.edges) % 5)

    def evidence(*transform):
        transfer = coordinator.Transfer(space, rule="evidence")
        (group,) = group_sources((source(known, values),))
        return Evidence(*transform).verdict(transfer.models_of(group), seen)

    known = half(space)
    seen = tuple(Observation(one, value(one), one.key) for one in list(space.members())[::4])
    values = np.array([value(one) for one in known])
    good = values >= 1.0
    values[good] = np.random.default_rng(0).permutation(values[good])
    assert evidence().suffices
    assert evidence("log-regret").nats < evidence().nats - 2.0


@pytest.mark.parametrize("variance", [0.0, 0.01])
def test_a_decision_needs_no_order_of_sources_and_is_the_same_again(variance, space):
    known = half(space)
    good = source(known, [score(one) for one in known], "good", "t")
    bad = source(
        known, np.random.default_rng(5).permutation([score(one) for one in known]), "bad", "u"
    )
    seen = tuple(
        Observation(one, score(one), one.key, variance) for one in list(space.members())[1:32:3]
    )
    answers = [
        agents.get("portfolio", space).propose(
            History(seen, sources=sources), 1, np.random.default_rng(0)
        )
        for sources in ((good, bad), (bad, good), (good,))
    ]
    assert answers[0] == answers[1]
    assert [one.architecture for one in answers[0]] == [one.architecture for one in answers[2]]
    correlations = answers[0][0].task_correlations
    assert (
        correlations["bad"] == 0.0
        and correlations["good"] == answers[2][0].task_correlations["good"] > 0.3
    )


def test_a_source_of_reversed_scores_tells_as_much_as_the_source(space):
    known = half(space)
    seen = tuple(Observation(one, score(one), one.key) for one in list(space.members())[1:32:3])
    straight, reversed_scores = (
        agents.get("portfolio", space).propose(
            History(seen, sources=(source(known, [sign * score(one) for one in known]),)),
            1,
            np.random.default_rng(0),
        )
        for sign in (1.0, -1.0)
    )
    assert straight[0].architecture == reversed_scores[0].architecture
    assert straight[0].task_correlations["s"] == -reversed_scores[0].task_correlations["s"] > 0.3


def test_an_unknown_rule_is_refused(space):
    with pytest.raises(UnknownNameError, match="evidence"):
        agents.get("portfolio", space, sources="always")


def test_beyond_the_evaluations_of_which_sources_tell_something_no_evidence_is_computed(
    space, monkeypatch
):
    known = half(space)
    good = source(known, [score(one) for one in known])
    seen = tuple(Observation(one, score(one), one.key) for one in list(space.members())[1:32:3])
    asked = []
    verdict = Evidence.verdict
    monkeypatch.setattr(
        Evidence,
        "verdict",
        lambda self, models, seen: asked.append(len(seen)) or verdict(self, models, seen),
    )
    monkeypatch.setattr(coordinator, "MOST_EVALUATIONS", len(seen))
    transfer = coordinator.Transfer(space, rule="evidence")
    assert transfer.without_evidence(History(seen, sources=(good,))) == {}
    assert asked and set(asked) == {len(seen)}
    more = Observation(list(space.members())[2], 0.5, "more")
    assert transfer.without_evidence(History((*seen, more), sources=(good,))) == {}
    assert set(asked) == {len(seen)}


@pytest.mark.whole
def test_a_source_of_another_space_that_is_dropped_is_not_doubted():
    def convolutions(cell):
        return float(sum("conv" in layer.op for layer in cell.functional.layers))

    def distinct(name, count):
        space = spaces.get(name)
        rng = np.random.default_rng(0)
        drawn = (space.sample(rng) for _ in range(3 * count))
        return list({cell.functional_key: cell for cell in drawn}.values())[:count]

    others = distinct("nasbench101", 60)
    foreign = source(others, [convolutions(one) + 0.01 * at for at, one in enumerate(others)])
    cells = distinct("nasbench201", OTHER_SPACES)
    seen = tuple(
        Observation(one, convolutions(one) + 0.01 * at, one.key) for at, one in enumerate(cells)
    )
    agent = agents.get("portfolio", spaces.get("nasbench201"))
    before, after = (
        agent.propose(History(known, sources=(foreign,)), 1, np.random.default_rng(0))[
            0
        ].task_correlations
        for known in (seen[:-1], seen)
    )
    assert before["s"] > 0.3
    assert after == {}


def test_evidence_is_of_the_networks_and_not_of_their_names(space):
    known = half(space)
    good = source(known, [score(one) for one in known])
    cells = list(space.members())[1:32:3]
    shuffled = np.random.default_rng(5).permutation(len(cells))
    # The same identifiers and scores, of other networks.
    histories = [
        History(
            tuple(
                Observation(cells[to], score(cells[of]), f"own#{of}") for of, to in enumerate(order)
            ),
            sources=(good,),
        )
        for order in (range(len(cells)), shuffled)
    ]
    shared = agents.get("portfolio", space)
    assert shared.propose(histories[0], 1, np.random.default_rng(0))[0].task_correlations["s"] > 0.3
    fresh = agents.get("portfolio", space).propose(histories[1], 1, np.random.default_rng(0))
    assert shared.propose(histories[1], 1, np.random.default_rng(0)) == fresh
