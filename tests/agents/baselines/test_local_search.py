"""Local search: all neighbours of the current network, then a step up or a new start."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.base import History, Observation, Pending
from archive.agents.baselines.local_search import LocalSearch, Neighbourhood
from archive.errors import UsageError
from tests.support.histories import observed


@pytest.fixture
def cells():
    return spaces.get("nasbench201")


def around(space, architecture):
    by_key = {m.child.functional_key: m.child for m in space.neighbours(architecture)}
    by_key.pop(architecture.functional_key, None)
    return list(by_key.values())


def propose(agent, history, n=1, seed=0):
    return agent.propose(history, n, np.random.default_rng(seed))


def with_scores(architectures, scores):
    return History(observed(architectures, scores))


@pytest.mark.parametrize("full", [False, True])
def test_neighbours_of_the_best_start(cells, full):
    pool = cells.initial_pool()
    agent = LocalSearch(cells, full=full)
    history = with_scores(pool, [0.1] * 4 + [0.9] + [0.2] * 5)
    reach = {cell.functional_key for cell in around(cells, pool[4])} - set(history.known)
    suggestions = propose(agent, history, len(reach))
    assert {s.architecture.functional_key for s in suggestions} == reach
    assert {s.parent for s in suggestions} == {pool[4]}


def test_moves_at_once_or_after_the_whole_neighbourhood(cells):
    root = cells.initial_pool()[0]
    near = around(cells, root)
    better = with_scores([root, *near[:3]], [0.5, 0.4, 0.6, 0.3])
    (eager,) = propose(LocalSearch(cells, n_initial=1), better)
    assert eager.parent == near[1]
    (patient,) = propose(LocalSearch(cells, n_initial=1, full=True), better)
    assert patient.parent == root
    whole = with_scores([root, *near], [0.5, 0.6, 0.8, 0.7, *[0.1] * (len(near) - 3)])
    (moved,) = propose(LocalSearch(cells, n_initial=1, full=True), whole)
    assert moved.parent == near[1]


@pytest.mark.parametrize("full", [False, True])
def test_a_local_optimum_is_left_for_a_new_start(cells, full):
    pool = cells.initial_pool()
    root = pool[0]
    near = around(cells, pool[0])
    agent = LocalSearch(cells, n_initial=1, full=full)
    done = with_scores([root, *near], [0.9, *[0.5] * len(near)])
    (start,) = propose(agent, done)
    # A random network, neither a neighbour of the optimum nor of the second best.
    assert start.parent is None
    elsewhere = next(cell for cell in pool[1:] if cell.functional_key not in done.known)
    again = History((*done.observations, Observation(elsewhere, 0.2, "study#9")))
    (climb,) = propose(agent, again)
    # The new climb starts below the end of the first one.
    assert climb.parent == elsewhere


def test_a_new_climb_chooses_among_several_starts(cells):
    pool = cells.initial_pool()
    root = pool[0]
    near = around(cells, pool[0])
    done = with_scores([root, *near], [0.9, *[0.5] * len(near)])
    fresh = [cell for cell in pool[1:] if cell.functional_key not in done.known]
    agent = LocalSearch(cells, n_initial=3)
    two = History((*done.observations, *observed(fresh[:2], [0.1, 0.3])))
    assert propose(agent, two)[0].parent is None
    waiting = History(two.observations, (Pending(fresh[2]),))
    assert propose(agent, waiting)[0].parent == fresh[1]


def test_finds_the_best_of_a_smooth_function(cells):
    """One peak: the number of 3x3 convolutions."""

    def score(cell):
        return sum(layer.op == "nor_conv_3x3" for layer in cell.layers) / 6

    agent = LocalSearch(cells, n_initial=3)
    rng = np.random.default_rng(0)
    history = History()
    for at in range(60):
        (suggestion,) = agent.propose(history, 1, rng)
        seen = Observation(suggestion.architecture, score(suggestion.architecture), f"study#{at}")
        history = History((*history.observations, seen))

    assert max(seen.score for seen in history.observations) == 1.0


def test_neighbours_are_drawn_where_there_are_too_many_to_list():
    space = spaces.get("mlp")
    root = space.initial_pool()[0]
    neighbourhood = Neighbourhood(space)
    drawn = neighbourhood.fresh(root, 5, {root.functional_key}, np.random.default_rng(0))
    every = {m.child.functional_key for m in neighbourhood.all(root)}
    assert len({s.architecture.functional_key for s in drawn} & every) == 5


def test_an_exhausted_neighbourhood_says_so():
    space = spaces.get("mlp", max_layers=4, min_units=8, max_units=8)
    root = space.sample(np.random.default_rng(0))
    neighbourhood = Neighbourhood(space)
    every = {m.child.functional_key for m in neighbourhood.all(root)}
    fresh = Neighbourhood(space).fresh(
        root, len(every) + 1, {root.functional_key}, np.random.default_rng(0)
    )
    assert {s.architecture.functional_key for s in fresh} == every


def test_settings_are_checked(cells):
    with pytest.raises(UsageError, match="n_initial must be >= 0, got -1"):
        LocalSearch(cells, n_initial=-1)
