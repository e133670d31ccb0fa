"""Repeats of noisy evaluations: their expected gain, and searches with and without noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import agents
from archive.agents.acquisition import functions
from archive.agents.base import History, Pending
from archive.agents.surrogates.base import Posterior
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.nugget import NuggetCovariance
from archive.agents.surrogates.noisy_incumbent import NoisyIncumbent, rivals
from archive.kernels.covariance.base import exponential
from archive.kernels.features.weisfeiler_lehman import WeisfeilerLehman
from tests.support.histories import Chains, observed

MEANS = np.array([[0.5, 0.3, -1.0], [0.0, 0.4, 0.1]])
VARIANCES = np.full((2, 3), 0.2)
NOISES = np.array([0.3, 0.1])


def test_gain_of_a_repeat_is_that_of_the_greatest_mean():
    posterior = Posterior(MEANS, VARIANCES, MEANS.max(axis=1), noises=NOISES)
    gains = np.exp(functions.repeat_gains(posterior))
    z = np.random.default_rng(0).standard_normal(400_000)
    for at in range(3):
        by_member = []
        for means, variances, noise in zip(MEANS, VARIANCES, NOISES, strict=True):
            # One evaluation y = f + noise: the mean moves by gain * (y - mean), of variance gain^2
            # * var(y).
            total = variances[at] + noise
            moved = means[at] + variances[at] / total * np.sqrt(total) * z
            others = np.delete(means, at).max()
            by_member.append(np.maximum(moved, others).mean() - means.max())

        assert gains[at] == pytest.approx(np.mean(by_member), rel=0.05, abs=1e-4)


def test_rivals_of_the_best_and_of_the_others():
    assert rivals(MEANS).tolist() == [[0.3, 0.5, 0.5], [0.4, 0.1, 0.4]]
    assert rivals(MEANS[:, :1]).tolist() == [[-np.inf], [-np.inf]]


def test_improvement_over_noise_is_that_of_exact_evaluations_without_noise():
    exact = Posterior(MEANS, VARIANCES, MEANS.max(axis=1))
    rng = np.random.default_rng(0)
    plain = functions.ExpectedImprovement().rank(exact, rng)
    assert np.allclose(
        functions.ExpectedImprovement().rank(replace(exact, noises=np.zeros(2)), rng), plain
    )
    assert (functions.ExpectedImprovement().rank(replace(exact, noises=NOISES), rng) < plain).all()


def test_incumbent_is_the_greatest_posterior_mean():
    networks = Chains().every()[:12]
    scores = np.random.default_rng(0).normal(size=12)
    kernel = WeisfeilerLehman()
    fitted = DistanceGP(kernel, exponential(1)).fit(networks, scores, np.random.default_rng(0))
    noisy = NoisyIncumbent(fitted, tuple(networks))
    means = fitted.posterior(networks).means.max(axis=1)
    assert (noisy.posterior(networks[:2]).best == means).all()
    assert (means < fitted.posterior(networks[:2]).best).all()
    assert noisy.hallucinate(networks[:1]).networks == tuple(networks)


def contested(seeds):
    """Two good networks whose single evaluations differ by noise, and seventeen bad ones; one is
    unknown."""
    networks = Chains().every()
    scores = [1.0, 0.95, *(-5.0 + 0.1 * at for at in range(16))]
    scores = [*scores, -4.0]
    seen = observed(networks[:19], scores)
    # Replicates of bad networks show the noise.
    seen += observed(networks[2:8], [score + 1.0 for score in scores[2:8]])
    return History(tuple(replace(one, seed=at if seeds else None) for at, one in enumerate(seen)))


def propose(history, n=1, **settings):
    agent = agents.get(
        "portfolio", Chains(), members=["subtrees"], patience=0, candidates="evolution", **settings
    )
    return agent.propose(history, n, np.random.default_rng(0))


def test_close_rivals_are_evaluated_again():
    history = contested(seeds=True)
    best = {seen.architecture.functional_key for seen in history.observations[:2]}
    repeated = propose(history, 2)
    assert repeated[0].repeat
    assert {one.architecture.functional_key for one in repeated if one.repeat} <= best
    # A repeat under way is not requested once more.
    waiting = replace(history, pending=(Pending(repeated[0].architecture),))
    again = propose(waiting)[0]
    assert again.architecture.functional_key != repeated[0].architecture.functional_key


def test_a_nugget_is_estimated_from_the_first_replicate_on(monkeypatch):
    bound = []
    bind = NuggetCovariance.bind
    monkeypatch.setattr(
        NuggetCovariance, "bind", lambda self, stack: bound.append(stack.shape) or bind(self, stack)
    )
    replicated = contested(seeds=True)
    propose(History(replicated.observations[:19]))
    assert not bound
    propose(History(replicated.observations[:20]))
    assert bound


def test_exact_values_are_not_repeated():
    seen = contested(seeds=False).observations[:19]
    assert not any(one.repeat for one in propose(History(seen), 1))


@pytest.mark.parametrize("kind", ["portfolio", "gp"])
def test_where_all_networks_are_known_noisy_ones_are_evaluated_again(kind):
    every = Chains().every()
    rng = np.random.default_rng(0)
    seen = observed(every, np.linspace(0.0, 1.0, 20) + 0.1 * rng.standard_normal(20))
    noisy = tuple(replace(one, seed=at) for at, one in enumerate(seen))
    agent = agents.get(kind, Chains())
    assert agent.propose(History(seen), 2, rng) == []
    first, second = agent.propose(History(noisy), 2, rng)
    assert first.repeat and second.repeat
    assert first.architecture.key != second.architecture.key
    # The last new network is one of the candidates; a batch is full.
    assert len(agent.propose(History(noisy[1:]), 3, rng)) == 3
