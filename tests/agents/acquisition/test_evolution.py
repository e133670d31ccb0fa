"""The evolutionary optimiser: its schedule, its selection, the lineage of candidates."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.acquisition import evolution
from archive.agents.acquisition.evolution import (
    best_new,
    evaluations_at,
    evolve,
    mutations_at,
    selection_probabilities,
)
from archive.agents.base import History, Pending
from tests.support.histories import observed


def fewest_layers(architectures):
    return np.array([-float(len(architecture.layers)) for architecture in architectures])


def test_schedule_grows_as_the_paper_says():
    assert [evaluations_at(t) for t in (0, 1, 4, 16, 100, 10_000)] == [50, 50, 50, 100, 250, 500]
    assert [mutations_at(n) for n in (1, 50, 100, 500)] == [1, 8, 10, 23]


def test_softmax_by_hand():
    # The standard deviation of (0, 2) is 1.
    np.testing.assert_allclose(
        selection_probabilities(np.array([0.0, 2.0])), [1 / (1 + np.e**2), np.e**2 / (1 + np.e**2)]
    )


def test_softmax_does_not_see_scale_or_shift():
    scores = np.array([0.3, 0.1, 0.9, 0.9])
    np.testing.assert_allclose(
        selection_probabilities(scores), selection_probabilities(1e-30 * scores), rtol=1e-9
    )
    np.testing.assert_allclose(
        selection_probabilities(scores), selection_probabilities(5.0 + 1e3 * scores), rtol=1e-9
    )


def test_softmax_of_degenerate_scores():
    np.testing.assert_allclose(
        selection_probabilities(np.array([0.7, 0.7, 0.7])), np.full(3, 1 / 3)
    )
    np.testing.assert_allclose(selection_probabilities(np.array([-np.inf, -np.inf])), [0.5, 0.5])
    np.testing.assert_allclose(selection_probabilities(np.array([-np.inf, 4.0])), [0.0, 1.0])


def test_finds_what_it_looks_for(space):
    start = space.initial_pool()
    ranked = evolve(space, start, fewest_layers, 200, np.random.default_rng(0))
    assert ranked[0].rank > fewest_layers(start).max()
    assert [each.rank for each in ranked] == sorted((each.rank for each in ranked), reverse=True)


def test_counts_distinct_members(space):
    start = space.initial_pool()
    ranked = evolve(space, start, fewest_layers, 60, np.random.default_rng(1))
    keys = {each.candidate.architecture.functional_key for each in ranked}
    assert len(ranked) == len(keys) == len(start) + 60
    assert all(space.contains(each.candidate.architecture) for each in ranked)


def test_lineage_begins_at_the_start(space):
    start = space.initial_pool()
    roots = {architecture.key for architecture in start}
    ranked = evolve(space, start, fewest_layers, 100, np.random.default_rng(2))
    for candidate in (each.candidate for each in ranked):
        if candidate.architecture.key in roots:
            assert candidate.parent is None and candidate.operations == ()
        else:
            assert candidate.parent.key in roots and candidate.operations

    assert max(len(each.candidate.operations) for each in ranked) > 5


def test_values_each_generation_in_one_call(space):
    sizes = []

    def rank(architectures):
        sizes.append(len(architectures))
        return fewest_layers(architectures)

    start = space.initial_pool()
    evolve(space, start, rank, 100, np.random.default_rng(3))
    assert sizes[0] == len(start)
    assert sum(sizes) == len(start) + 100
    assert max(sizes[1:]) <= mutations_at(100)


@pytest.mark.parametrize("shift", [0.0, -5000.0])
def test_logarithms_select_as_their_exponentials(shift):
    space = spaces.get("mlp")

    def value(architectures):
        return np.array([1.0 / len(architecture.layers) for architecture in architectures])

    plain = evolve(space, space.initial_pool(), value, 50, np.random.default_rng(4))
    logs = evolve(
        space,
        space.initial_pool(),
        lambda networks: np.log(value(networks)) + shift,
        50,
        np.random.default_rng(4),
        logarithmic=True,
    )
    assert [r.candidate.architecture.key for r in plain] == [
        r.candidate.architecture.key for r in logs
    ]


def test_a_space_that_runs_out_ends_the_search(chains):
    ranked = evolve(chains, chains.initial_pool(), fewest_layers, 500, np.random.default_rng(5))
    assert len(ranked) == 20
    taken = {each.candidate.architecture.functional_key for each in ranked}
    assert best_new(ranked, taken) is None
    assert best_new(ranked, taken - {ranked[7].candidate.architecture.functional_key}) is ranked[7]


def test_equal_ranks_are_no_obstacle(space):
    ranked = evolve(
        space,
        space.initial_pool(),
        lambda networks: np.zeros(len(networks)),
        50,
        np.random.default_rng(6),
    )
    assert len(ranked) == len(space.initial_pool()) + 50


def test_a_long_history_starts_with_its_best_networks(chains, monkeypatch):
    every = chains.every()
    history = History(observed(every[:5], [1.0, 4.0, 2.0, 5.0, 3.0]), (Pending(every[5]),))
    assert list(evolution.starts(history)) == every[:6]
    monkeypatch.setattr(evolution, "MOST_PARENTS", 3)
    assert [one.key for one in evolution.starts(history)] == [every[at].key for at in (3, 1, 4)]
