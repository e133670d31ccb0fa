"""Merged replicates against the process that has a row for every evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from archive.agents.surrogates.gp.exact import GaussianProcess
from archive.agents.surrogates.gp.likelihood import Likelihood
from archive.agents.surrogates.gp.replicates import Replicates
from archive.kernels.covariance.base import exponential
from tests.support.gp_points import Differences, points, smooth

KEYS = list("abacabbd")
histories = st.lists(st.integers(0, 4), min_size=1, max_size=12)


def history(rows, seed, unequal):
    rng = np.random.default_rng(seed)
    known = rng.uniform(0.0, 0.5, len(rows)) if unequal else np.zeros(len(rows))
    factors = rng.uniform(0.1, 1.0, len(rows)) if unequal else None
    return Replicates.of([str(row) for row in rows], rng.standard_normal(len(rows)), known, factors)


def covariances(replicates, theta):
    """K of the rows, and that of the evaluations with their noise."""
    stack = Differences().distances(points(len(replicates.keys))).stack
    gram = exponential(3).value(stack, theta[:-1])
    naive = gram[np.ix_(replicates.rows, replicates.rows)] + np.diag(
        replicates.known_variances + replicates.factors * np.exp(theta[-1])
    )
    return stack, gram, naive


@given(histories, st.integers(0, 2**32 - 1), st.booleans())
def test_likelihood_and_gradient_are_those_of_all_evaluations(rows, seed, unequal):
    replicates = history(rows, seed, unequal)
    theta = np.random.default_rng(seed).uniform(-2.0, 0.5, 5)
    stack, _, naive = covariances(replicates, theta)
    likelihood = Likelihood(exponential(3), stack, replicates, (1e-3, 2.0))
    expected = multivariate_normal(np.zeros(len(rows)), naive).logpdf(replicates.values)
    value, gradient = likelihood.value_and_gradient(theta)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert likelihood.value(theta) == pytest.approx(expected, rel=1e-9, abs=1e-9)

    def of_all(t):
        return multivariate_normal(np.zeros(len(rows)), covariances(replicates, t)[2]).logpdf(
            replicates.values
        )

    np.testing.assert_allclose(gradient, approx_fprime(theta, of_all, 1e-6), rtol=1e-3, atol=1e-4)


@given(histories, st.integers(0, 2**32 - 1), st.booleans())
def test_posterior_is_that_of_all_evaluations(rows, seed, unequal):
    replicates = history(rows, seed, unequal)
    theta = np.array([0.2, -1.0, -0.5, 0.0, -2.0])
    _, gram, naive = covariances(replicates, theta)
    networks = points(len(replicates.keys))
    cross = exponential(3).value(Differences().distances(networks, points(6, 9)).stack, theta[:-1])
    values, variances = replicates.merge(np.exp(theta[-1]))
    merged = GaussianProcess.condition(gram, values, np.exp(theta[-1]), variances)
    solved = np.linalg.solve(naive, cross[replicates.rows])
    mean, variance = merged.predict(cross, np.full(6, np.exp(0.2)))
    np.testing.assert_allclose(mean, solved.T @ replicates.values, atol=1e-9)
    np.testing.assert_allclose(
        variance, np.exp(0.2) - (cross[replicates.rows] * solved).sum(axis=0), atol=1e-9
    )


def test_equal_noise_gives_means_and_noise_over_count():
    replicates = Replicates.of(KEYS, np.arange(8.0))
    means, variances = replicates.merge(0.6)
    assert replicates.keys == ("a", "b", "c", "d")
    np.testing.assert_allclose(means, [2.0, 4.0, 3.0, 7.0])
    np.testing.assert_allclose(variances, [0.2, 0.2, 0.6, 0.6])
    np.testing.assert_array_equal(replicates.first, [0, 1, 3, 7])


def test_a_row_known_well_counts_more():
    means, variances = Replicates.of(["a", "a"], np.array([0.0, 1.0]), np.array([0.0, 0.2])).merge(
        0.1
    )
    np.testing.assert_allclose(means, [0.25])
    np.testing.assert_allclose(variances, [0.075])


def test_adding_equals_grouping_at_once():
    values = np.arange(8.0)
    known = np.linspace(0, 1, 8)
    factors = np.linspace(1, 0.1, 8)
    whole = Replicates.of(KEYS, values, known, factors)
    grown = Replicates.of(KEYS[:3], values[:3], known[:3], factors[:3])
    grown = grown.adding(KEYS[3:], values[3:], known[3:], factors[3:])
    assert grown.keys == whole.keys
    np.testing.assert_array_equal(grown.rows, whole.rows)
    np.testing.assert_array_equal(grown.merge(0.1), whole.merge(0.1))


def test_a_subset_keeps_all_evaluations_of_its_rows():
    part = Replicates.of(KEYS, np.arange(8.0)).subset(np.array([3, 0]))
    assert part.keys == ("d", "a")
    np.testing.assert_array_equal(part.rows, [0, 1, 1, 1])
    np.testing.assert_allclose(part.merge(0.3), [[7.0, 2.0], [0.3, 0.1]])
    shared = Replicates.of(KEYS, np.arange(8.0), None, np.arange(1.0, 9.0)).subset(np.array([3, 2]))
    np.testing.assert_array_equal(shared.variances(0.5), [4.0, 2.0])
    single = Replicates.of(KEYS, np.arange(8.0)).subset(np.array([3, 2]))
    assert single.single
    np.testing.assert_array_equal(single.merge(0.3)[0], [7.0, 3.0])


def test_the_likelihood_of_a_sample_is_that_of_its_rows():
    networks = points(12)
    replicates = Replicates.of([point.key for point in networks], smooth(networks))
    whole = Likelihood(
        exponential(3), Differences().distances(networks).stack, replicates, (0.1, 0.1)
    )
    part = whole.sample(5, np.random.default_rng(0))
    at = [int(key.split("-")[1]) for key in part.replicates.keys]
    chosen = [networks[row] for row in at]
    np.testing.assert_array_equal(part.stack, Differences().distances(chosen).stack)
    np.testing.assert_array_equal(part.replicates.values, replicates.values[at])
    assert whole.sample(12, np.random.default_rng(0)) is whole


def test_fixed_noise_is_no_parameter():
    networks = points(6)
    replicates = Replicates.of([point.key for point in networks], smooth(networks))
    stack = Differences().distances(networks).stack
    fixed, free = (
        Likelihood(exponential(3), stack, replicates, bounds) for bounds in ((0.2, 0.2), (0.1, 0.3))
    )
    x = np.array([0.1, -1.0, -0.5, 0.0])
    theta = fixed.full(x)
    assert len(fixed.bounds.lower) == 4 and len(free.bounds.lower) == 5
    assert theta[-1] == pytest.approx(np.log(0.2))
    assert fixed.value(x) == free.value(theta)
    np.testing.assert_allclose(
        fixed.value_and_gradient(x)[1], free.value_and_gradient(theta)[1][:-1]
    )


def test_no_covariance_has_likelihood_minus_infinity_and_no_slope():
    # Two networks at distance 0 from a third, and far from each other: no kernel can do that.
    stack = np.array([[[0.0, 0.0, 9.0], [0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]])
    likelihood = Likelihood(exponential(1), stack, Replicates.of("abc", np.ones(3)), (1e-6, 1.0))
    value, gradient = likelihood.value_and_gradient(np.array([0.0, 0.0, -9.0]))
    assert value == likelihood.value(np.array([0.0, 0.0, -9.0])) == -np.inf
    assert not gradient.any()
