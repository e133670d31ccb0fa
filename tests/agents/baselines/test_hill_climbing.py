"""Hill climbing: generations, and the parent of each."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.base import History, Pending
from archive.agents.baselines.hill_climbing import HillClimbing
from archive.errors import UsageError
from tests.support.histories import grown, observed


@pytest.fixture
def space():
    return spaces.get("mlp")


def parents(agent, history, n=1, seed=0):
    return [s.parent.functional_key for s in agent.propose(history, n, np.random.default_rng(seed))]


def test_the_parent_is_the_best_and_never_falls_back(space):
    every = [seen.architecture for seen in grown(space, 18).observations]
    agent = HillClimbing(space, children=4, n_initial=2)
    scores = [0.5, 0.3]
    stands = []
    for generation in range(4):
        history = History(observed(every[: len(scores)], scores))
        (parent,) = parents(agent, history)
        best = int(np.argmax(scores))
        assert parent == every[best].functional_key
        stands.append(scores[best])
        # The second generation is worse than its parent, the third better.
        scores += [[0.6, 0.1, 0.2, 0.3], [0.4, 0.4, 0.4, 0.4], [0.1, 0.7, 0.1, 0.1], [0.0] * 4][
            generation
        ]

    assert stands == sorted(stands) == [0.5, 0.6, 0.6, 0.7]


def test_a_generation_has_one_parent(space):
    every = [seen.architecture for seen in grown(space, 12).observations]
    agent = HillClimbing(space, children=8, n_initial=3)
    # Three of eight children are evaluated, one of them better: the parent stays until the
    # generation is complete.
    history = History(observed(every[:6], [0.1, 0.5, 0.2, 0.3, 0.9, 0.4]))
    assert parents(agent, history, 5) == [every[1].functional_key] * 5
    grown_up = History(observed(every[:11], [0.1, 0.5, 0.2, 0.3, 0.9, 0.4, 0, 0, 0, 0, 0]))
    assert parents(agent, grown_up) == [every[4].functional_key]


def test_pending_children_fill_the_generation(space):
    every = [seen.architecture for seen in grown(space, 12).observations]
    agent = HillClimbing(space, children=4, n_initial=2)
    finished = observed(every[:3], [0.1, 0.5, 0.9])
    three = tuple(Pending(architecture) for architecture in every[3:6])
    assert parents(agent, History(finished, three)) == [every[2].functional_key]
    assert parents(agent, History(finished, three[:2]), 2) == [
        every[1].functional_key,
        every[2].functional_key,
    ]


def test_steps_add_up(space):
    history = grown(space, 12)
    for steps in (1, 3):
        agent = HillClimbing(space, steps=steps)
        least = min(len(s.operations) for s in agent.propose(history, 20, np.random.default_rng(0)))
        assert least >= steps


def test_settings_are_checked(space):
    with pytest.raises(UsageError, match="children must be >= 1, got 0"):
        HillClimbing(space, children=0)

    with pytest.raises(UsageError, match="steps must be >= 1, got 0"):
        HillClimbing(space, steps=0)
