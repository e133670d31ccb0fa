"""Regularized evolution: the oldest network leaves the population, whatever its score."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.base import History, Observation
from archive.agents.baselines.regularized_evolution import RegularizedEvolution
from archive.errors import UsageError
from tests.support.histories import observed


def cells(count, seed=0):
    space = spaces.get("nasbench201")
    rng = np.random.default_rng(seed)
    by_key = {}
    while len(by_key) < count:
        cell = space.sample(rng)
        by_key.setdefault(cell.functional_key, cell)

    return list(by_key.values())


def parents(agent, history, n=40):
    return {s.parent.functional_key for s in agent.propose(history, n, np.random.default_rng(0))}


def test_the_oldest_dies_even_if_it_is_the_best():
    every = cells(12)
    agent = RegularizedEvolution(spaces.get("nasbench201"), population=5, tournament=50)
    history = History(observed(every, [1.0, *np.linspace(0.5, 0.1, 11)]))
    # Fifty draws from the last five almost surely contain the best of them.
    assert parents(agent, history, 3) == {every[7].functional_key}
    younger = RegularizedEvolution(spaces.get("nasbench201"), population=12, tournament=100)
    assert parents(younger, history, 3) == {every[0].functional_key}


def test_the_worst_stays():
    every = cells(12)
    agent = RegularizedEvolution(spaces.get("nasbench201"), population=5, tournament=1)
    history = History(observed(every, [0.9] * 11 + [0.0]))
    assert parents(agent, history) == {cell.functional_key for cell in every[-5:]}


def test_a_tournament_of_one_is_random_and_larger_ones_are_harder():
    every = cells(30)
    history = History(observed(every, np.linspace(0, 1, 30)))
    rank = {cell.functional_key: at for at, cell in enumerate(every)}
    means = []
    for size in (1, 3, 10):
        agent = RegularizedEvolution(spaces.get("nasbench201"), tournament=size)
        children = agent.propose(history, 60, np.random.default_rng(1))
        means.append(np.mean([rank[child.parent.functional_key] for child in children]))

    assert means[0] < 19 < means[1] < 25.5 < means[2]


def test_failed_evaluations_are_no_members():
    every = cells(6)
    history = History(
        (*observed(every[:5], [0.1] * 5), Observation(every[5], float("nan"), "study#00009"))
    )
    agent = RegularizedEvolution(spaces.get("nasbench201"), population=1, n_initial=0)
    assert parents(agent, history, 3) == {every[4].functional_key}


def test_the_population_of_algorithm_1_is_random_before_the_first_tournament():
    space = spaces.get("nasbench201")
    agent = RegularizedEvolution(space, population=50, n_initial=50)
    pool = {cell.functional_key for cell in space.initial_pool()}
    every = [
        *space.initial_pool(),
        *(cell for cell in cells(60) if cell.functional_key not in pool),
    ]
    early = agent.propose(History(observed(every[:48], [0.5] * 48)), 4, np.random.default_rng(0))
    assert [child.parent is None for child in early] == [True, True, False, False]


@pytest.mark.parametrize("setting", ["population", "tournament"])
def test_settings_are_checked(setting):
    with pytest.raises(UsageError, match=f"{setting} must be >= 1, got 0"):
        RegularizedEvolution(spaces.get("mlp"), **{setting: 0})
