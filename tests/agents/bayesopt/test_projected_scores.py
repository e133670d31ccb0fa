"""Variances of projected scores on their way to the surrogate of an agent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import agents
from archive.agents.base import History
from tests.support.histories import Chains, grown, with_goals

pytestmark = pytest.mark.usefixtures("few_candidates")


class Spy:
    """A surrogate that keeps the variances of its fits."""

    def __init__(self, surrogate):
        self.surrogate = surrogate
        self.given = []

    def __getattr__(self, name):
        return getattr(self.surrogate, name)

    def fit(self, networks, scores, rng, variances=None):
        self.given.append(variances)
        return self.surrogate.fit(networks, scores, rng, variances)


def fits(kind, history):
    agent = agents.get(
        kind, Chains(), **({"candidates": "mutations"} if kind != "nasbot" else {"samples": 2})
    )
    if kind == "nasbot":
        spy = agent._surrogate = Spy(agent._surrogate)
    else:
        spy = Spy(agent.method.surrogate)
        agent.method = replace(agent.method, surrogate=spy, transfer=None)

    agent.propose(history, 1, np.random.default_rng(0))
    return spy.given


def projected(history):
    variances = 0.01 * np.arange(len(history.observations))
    seen = [
        replace(one, variance=float(each))
        for one, each in zip(history.observations, variances, strict=True)
    ]
    return replace(history, observations=tuple(seen)), variances


@pytest.mark.parametrize("kind", ["gp-wl", "nasbot"])
def test_the_surrogate_is_told_the_variances(kind):
    history, variances = projected(grown(Chains(), 11))
    (given,) = fits(kind, history)
    np.testing.assert_array_equal(given, variances)
    # A study without partial trainings: the very call of one that knows no variances.
    assert fits(kind, grown(Chains(), 11)) == [None]


def test_only_the_first_objective_is_projected():
    history, variances = projected(with_goals(grown(Chains(), 11)))
    first, second = fits("gp-wl", history)
    np.testing.assert_array_equal(first, variances)
    assert second is None


def test_scores_that_are_not_finite_have_no_variance():
    history, variances = projected(grown(Chains(), 5))
    seen = [replace(history.observations[0], score=np.nan), *history.observations[1:]]
    np.testing.assert_array_equal(History(tuple(seen)).variances, variances[1:])
    assert History().variances is None
