"""Breadth-first search: the order of expansion, whatever the scores."""

from __future__ import annotations

from collections import deque

import numpy as np

from archive import spaces
from archive.agents.base import History, Observation, Pending
from archive.agents.baselines.breadth_first import BreadthFirst
from tests.support.histories import observed


def levels(space, root, limit):
    """The oracle: a textbook queue."""
    depths = {root.functional_key: 0}
    queue = deque([root])
    while queue and len(depths) < limit:
        node = queue.popleft()
        for mutation in space.neighbours(node):
            key = mutation.child.functional_key
            if key not in depths:
                depths[key] = depths[node.functional_key] + 1
                queue.append(mutation.child)

    return depths


def test_levels_come_in_order_and_are_complete():
    space = spaces.get("nasbench201")
    root = space.initial_pool()[0]
    agent = BreadthFirst(space, n_initial=1)
    rng = np.random.default_rng(0)
    history = History(observed([root], [0.5]))
    for _ in range(30):
        (suggestion,) = agent.propose(history, 1, rng)
        score = float(rng.uniform())
        history = History(
            (*history.observations, Observation(suggestion.architecture, score, "study#1"))
        )

    depth = levels(space, root, 250)
    order = [depth[seen.architecture.functional_key] for seen in history.observations]
    assert order == sorted(order)
    first = sum(level == 1 for level in depth.values())
    assert order.count(1) == first < 30 == len(order) - 1
    # The second level begins with all children of the network that was found first.
    second = {s.architecture.functional_key for s in history.observations[first + 1 :]}
    eldest = {
        m.child.functional_key for m in space.neighbours(history.observations[1].architecture)
    }
    assert len(second & eldest) == min(len(second), len([k for k in eldest if depth[k] == 2]))


def test_a_batch_equals_its_single_proposals_as_a_set():
    space = spaces.get("nasbench201")
    root = space.initial_pool()[0]
    around = {m.child.functional_key for m in space.neighbours(root)} - {root.functional_key}
    agent = BreadthFirst(space, n_initial=1)
    suggestions = agent.propose(
        History(observed([root], [0.5])), len(around), np.random.default_rng(3)
    )
    assert {s.architecture.functional_key for s in suggestions} == around


def test_scores_do_not_count():
    space = spaces.get("nasbench201")
    pool = space.initial_pool()
    agent = BreadthFirst(space)
    for scores in (np.linspace(0, 1, 10), np.linspace(1, 0, 10)):
        (suggestion,) = agent.propose(History(observed(pool, scores)), 1, np.random.default_rng(0))
        assert suggestion.parent == pool[0]


def test_pending_networks_are_expanded_after_finished_ones(chains):
    every = chains.every()
    agent = BreadthFirst(chains, n_initial=0)
    (suggestion,) = agent.propose(
        History(observed(every[:1], [0.1]), (Pending(every[5]),)), 1, np.random.default_rng(0)
    )
    assert suggestion.parent == every[0]
    (suggestion,) = agent.propose(
        History(pending=(Pending(every[5]), Pending(every[2]))), 1, np.random.default_rng(0)
    )
    assert suggestion.parent == every[5]
