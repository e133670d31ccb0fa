"""REINFORCE: its gradient, its baseline, and a policy that is a function of the history."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.base import History, Observation
from archive.agents.baselines.reinforce import Reinforce, gradient, replay, softmax
from archive.agents.encodings import ABSENT, Decision
from archive.errors import UsageError
from tests.support.histories import observed

DECISIONS = (
    Decision("a", ("x", "y", "z")),
    Decision("b", ("no", "yes")),
    Decision("c", ("p", "q")),
)


def log_likelihood(logits, made):
    return sum(
        np.log(softmax(one)[choice])
        for one, choice in zip(logits, made, strict=True)
        if choice != ABSENT
    )


def test_gradient_is_that_of_the_log_likelihood():
    rng = np.random.default_rng(0)
    logits = [rng.normal(size=len(decision.choices)) for decision in DECISIONS]
    made = (2, 0, ABSENT)
    steps = gradient(logits, made)
    for d, at in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1)]:
        sides = []
        for shift in (1e-6, -1e-6):
            moved = [one.copy() for one in logits]
            moved[d][at] += shift
            sides.append(log_likelihood(moved, made))

        assert steps[d][at] == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=1e-8)


def test_updates_by_hand():
    """The first reward is its own baseline; of the second, u = 0.09 r1 + 0.1 r2 over w = 0.19."""
    logits = replay(DECISIONS, [((0, 1, ABSENT), 0.8), ((1, 1, 0), 0.9)], 0.5, 0.9)
    advantage = 0.9 - (0.09 * 0.8 + 0.1 * 0.9) / 0.19
    third = 1.0 / 3.0
    half = 0.5
    assert logits[0] == pytest.approx(0.5 * advantage * np.array([-third, 1 - third, -third]))
    assert logits[1] == pytest.approx(0.5 * advantage * np.array([-half, half]))
    assert logits[2] == pytest.approx(0.5 * advantage * np.array([half, -half]))


def test_better_choices_become_likelier_and_worse_ones_rarer():
    space = spaces.get("nasbench201")
    agent = Reinforce(space)
    rng = np.random.default_rng(0)
    every = [space.sample(rng) for _ in range(150)]
    scores = [sum(layer.op == "nor_conv_3x3" for layer in cell.layers) for cell in every]
    policy = [softmax(logits) for logits in agent.policy(History(observed(every, scores)))]
    at = agent._decisions.decisions[0].choices.index("nor_conv_3x3")
    assert np.mean([p[at] for p in policy]) > 0.5
    drawn = agent.propose(History(observed(every, scores)), 20, rng)
    mean = np.mean(
        [sum(layer.op == "nor_conv_3x3" for layer in s.architecture.layers) for s in drawn]
    )
    assert mean > 1.5 * np.mean(scores)


def test_the_order_of_the_history_counts_and_the_unit_of_scores_does_not():
    space = spaces.get("nasbench101")
    rng = np.random.default_rng(1)
    every = [space.sample(rng) for _ in range(12)]
    scores = rng.uniform(size=12)
    agent = Reinforce(space)
    policy = np.concatenate(agent.policy(History(observed(every, scores))))
    assert np.concatenate(
        agent.policy(History(observed(every, 100 * scores + 7)))
    ) == pytest.approx(policy)
    backwards = np.concatenate(agent.policy(History(observed(every[::-1], scores[::-1]))))
    assert not np.allclose(backwards, policy)
    raw = Reinforce(space, standardise=False)
    assert np.concatenate(raw.policy(History(observed(every, 2 * scores)))) != pytest.approx(
        np.concatenate(raw.policy(History(observed(every, scores))))
    )


def test_failed_evaluations_teach_nothing():
    space = spaces.get("nasbench201")
    every = space.initial_pool()
    finished = observed(every[:5], [0.1, 0.5, 0.3, 0.2, 0.4])
    agent = Reinforce(space)
    with_nan = History((*finished, Observation(every[5], float("nan"), "study#9")))
    assert np.array_equal(agent.policy(with_nan), agent.policy(History(finished)))


def test_settings_are_checked():
    space = spaces.get("nasbench201")
    with pytest.raises(UsageError, match="learning_rate must be > 0, got 0"):
        Reinforce(space, learning_rate=0)

    with pytest.raises(UsageError, match=r"momentum must be in \[0, 1\), got 1"):
        Reinforce(space, momentum=1.0)
