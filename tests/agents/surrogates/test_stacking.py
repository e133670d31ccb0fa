"""Stacking against its definition: refits without one observation, and a search of the simplex."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.exact import GaussianProcess
from archive.agents.surrogates.gp.likelihood import FixedHyperparameters
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.agents.surrogates.stacking import StackedGP, loo_log_densities, stacking_weights
from archive.errors import UsageError
from archive.kernels.covariance.base import Exponential
from tests.support.gp_points import Differences, points, smooth


def member(component, theta=None, transform="standardise"):
    inference = MarginalLikelihood(starts=1) if theta is None else FixedHyperparameters(theta)
    return DistanceGP(Differences(), Exponential([component]), inference, transform=transform)


def fit(committee, count=30, noise=0.1):
    networks = points(count)
    return committee.fit(networks, smooth(networks, noise=noise), np.random.default_rng(0))


def objective(likelihoods, weights, prior):
    with np.errstate(divide="ignore"):
        return np.log(np.exp(likelihoods) @ weights).sum() + prior * np.log(weights).sum()


def test_left_out_is_what_the_others_say():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(9, 2))
    values = rng.normal(size=9)
    gram = np.exp(-np.abs(x[:, None] - x[None]).sum(axis=-1))
    variances = rng.uniform(0.05, 0.5, 9)
    densities = GaussianProcess.condition(gram, values, 0.1, variances).loo_log_densities()
    for at in range(9):
        rest = np.delete(np.arange(9), at)
        others = GaussianProcess.condition(
            gram[np.ix_(rest, rest)], values[rest], 0.1, variances[rest]
        )
        mean, variance = others.predict(gram[rest, at : at + 1], gram[at : at + 1, at])
        law = stats.norm(mean[0], np.sqrt(variance[0] + variances[at]))
        assert densities[at] == pytest.approx(law.logpdf(values[at]))


@pytest.mark.parametrize("prior", [0.0, 1.0, 5.0])
def test_shares_are_the_most_probable(prior):
    likelihoods = np.random.default_rng(4).normal(size=(12, 3))
    weights = stacking_weights(likelihoods, prior)
    assert weights.sum() == pytest.approx(1.0)
    grid = [(a, b, 60 - a - b) for a, b in itertools.product(range(1, 59), repeat=2) if a + b < 60]
    best = max(objective(likelihoods, np.array(point) / 60.0, prior) for point in grid)
    assert objective(likelihoods, weights, prior) >= best - 1e-6


def test_without_evaluations_all_are_alike():
    np.testing.assert_allclose(stacking_weights(np.empty((0, 4)), 1.0), 0.25)
    np.testing.assert_allclose(stacking_weights(np.empty((0, 4)), 0.0), 0.25)


@given(st.integers(1, 6), st.integers(1, 4), st.floats(0.0, 3.0), st.integers(0, 99))
def test_shares_are_shares(n, count, prior, seed):
    likelihoods = 200.0 * np.random.default_rng(seed).normal(size=(n, count))
    weights = stacking_weights(likelihoods, prior)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= prior / (n + count * prior) - 1e-12).all()


def test_two_that_say_the_same_count_as_one():
    likelihoods = np.random.default_rng(1).normal(size=(40, 2))
    twice = stacking_weights(likelihoods[:, [0, 0, 1]], 0.0)
    np.testing.assert_allclose(
        [twice[:2].sum(), twice[2]], stacking_weights(likelihoods, 0.0), atol=1e-3
    )


def test_the_better_predictor_gets_the_larger_weight():
    weights = fit(StackedGP([member(0), member(2)]), noise=0.02).stacking
    assert weights[0] > 0.9


def test_posterior_is_the_weighted_mixture():
    fitted = fit(StackedGP([member(0), member(1)]), count=12)
    others = points(5, 1)
    posterior = fitted.posterior(others, joint=True)
    apart = [one.posterior(others, joint=True) for one in fitted.members]
    np.testing.assert_allclose(posterior.weights, fitted.stacking)
    expected = sum(w * one.means[0] for w, one in zip(fitted.stacking, apart, strict=True))
    np.testing.assert_allclose(posterior.mean, expected)
    np.testing.assert_allclose(posterior.covariance.diagonal(), posterior.variance)
    assert len(posterior.best) == 2


def test_sets_of_one_member_divide_its_share():
    two = np.array([[0.0, 0.0, -2.0], [0.0, 1.0, -3.0]])
    fitted = fit(StackedGP([member(0, two), member(1)]), count=12)
    np.testing.assert_allclose(
        fitted.weights, [fitted.stacking[0] / 2, fitted.stacking[0] / 2, fitted.stacking[1]]
    )
    scores = smooth(points(12))
    each = np.array([process.loo_log_densities() for process in fitted.members[0].processes])
    np.testing.assert_allclose(
        loo_log_densities(fitted.members, scores)[:, 0],
        np.log(np.exp(each).mean(axis=0) / scores.std()),
    )


def test_members_of_negligible_weight_are_dropped():
    fitted = fit(StackedGP([member(0), member(2)], prior=0.0), count=60, noise=0.01)
    assert fitted.stacking[1] < 0.01
    assert len(fitted.members) == 1
    np.testing.assert_allclose(fitted.weights, 1.0)


def test_belief_keeps_means_and_shrinks_deviations():
    fitted = fit(StackedGP([member(0), member(1)]), count=12)
    others = points(4, 1)
    before = fitted.posterior(others)
    after = fitted.hallucinate(others[:1]).posterior(others)
    np.testing.assert_allclose(after.means, before.means, atol=1e-8)
    assert (after.variances[:, 0] < before.variances[:, 0]).all()


@pytest.mark.parametrize("name", ["rank-normal", "compress-below-median", "log-regret"])
def test_densities_are_of_scores(name):
    """The predictive density of a member integrates to 1 over all scores, under every transform."""
    scores = smooth(points(12))
    scale = outcome_transforms.get(name).learn(scores)
    grid = np.linspace(-60.0, 60.0, 240_001)
    slopes = np.exp(scale.log_slopes(grid))
    density = stats.norm(0.2, 0.7).pdf(scale.standardise(grid)) * slopes
    assert density.sum() * (grid[1] - grid[0]) == pytest.approx(1.0, abs=2e-3)


def test_members_with_other_units_are_compared_in_scores():
    """Standardised twice, once in a thousandth of the unit: the same model, the same share."""
    given = FixedHyperparameters(np.array([[0.0, 0.0, -2.0]]))
    networks = points(12)
    scores = smooth(points(12))
    apart = [
        DistanceGP(Differences(), Exponential([0]), given, transform=name).fit(
            networks, scores, np.random.default_rng(0)
        )
        for name in ("standardise", "none")
    ]
    centred = (scores - scores.mean()) / scores.std()
    np.testing.assert_allclose(
        loo_log_densities(apart, scores)[:, 0],
        loo_log_densities(
            [
                DistanceGP(Differences(), Exponential([0]), given, transform="none").fit(
                    networks, centred, np.random.default_rng(0)
                )
            ],
            centred,
        )[:, 0]
        - np.log(scores.std()),
    )


def test_members_are_mixed_in_scores():
    fitted = fit(StackedGP([member(0, transform="log-regret"), member(1)]), count=12)
    others = points(5, 1)
    posterior = fitted.posterior(others).in_scores()
    first, second = (one.posterior(others) for one in fitted.members)
    np.testing.assert_allclose(
        posterior.means, [fitted.members[0].scale.restore(first.mean), second.mean]
    )
    np.testing.assert_allclose(posterior.variances[1], second.variance)
    np.testing.assert_array_equal(posterior.weights, fitted.weights)


def test_one_observation():
    fitted = fit(StackedGP([member(0), member(2)]), count=1)
    assert np.isfinite(fitted.posterior(points(3, 1)).mean).all()


def test_arguments():
    with pytest.raises(UsageError, match="one or more members, got none"):
        StackedGP([])

    with pytest.raises(UsageError, match="prior must be >= 0 and finite, got -1"):
        StackedGP([member(0)], prior=-1)
