"""The numeric core of the Gaussian process against textbook formulae and scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import PairwiseKernel, WhiteKernel

from archive.agents.surrogates.gp.exact import (
    GaussianProcess,
    JitterWarning,
    log_likelihood,
    robust_cholesky,
    try_cholesky,
)
from archive.errors import NotPositiveDefiniteError, NumericalError


def covariance(first, second):
    return 1.3 * np.exp(-0.7 * np.abs(first[:, None] - second[None, :]))


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    observed = rng.uniform(0, 5, 25)
    asked = rng.uniform(0, 5, 40)
    return observed, asked, np.sin(observed) + 0.1 * rng.standard_normal(25)


def test_agrees_with_scikit_learn(problem):
    observed, asked, values = problem
    noise = 0.05

    def metric(x, y, gamma=1.0):
        return float(covariance(np.atleast_1d(x)[:1], np.atleast_1d(y)[:1])[0, 0])

    kernel = PairwiseKernel(metric=metric, gamma_bounds="fixed") + WhiteKernel(noise, "fixed")
    theirs = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(
        observed[:, None], values
    )
    mean, covariances = theirs.predict(asked[:, None], return_cov=True)

    ours = GaussianProcess.condition(covariance(observed, observed), values, noise)
    cross = covariance(observed, asked)
    our_mean, our_covariance = ours.predict_jointly(cross, covariance(asked, asked))
    marginal_mean, variance = ours.predict(cross, np.full(40, 1.3))
    # scikit-learn predicts a noisy value, we the function itself.
    np.testing.assert_allclose(our_covariance + noise * np.eye(40), covariances, atol=1e-6)
    np.testing.assert_allclose(our_mean, mean, atol=1e-6)
    np.testing.assert_allclose(marginal_mean, mean, atol=1e-6)
    np.testing.assert_allclose(variance, np.diag(our_covariance), atol=1e-12)
    assert ours.log_likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-9)


def test_likelihood_is_the_normal_density(problem):
    observed, _, values = problem
    noisy = covariance(observed, observed) + 0.2 * np.eye(25)
    expected = multivariate_normal(np.zeros(25), noisy).logpdf(values)
    gp = GaussianProcess.condition(covariance(observed, observed), values, 0.2)
    assert gp.log_likelihood == pytest.approx(expected, rel=1e-10)
    assert log_likelihood(noisy.copy(), values) == pytest.approx(expected, rel=1e-10)


def test_gradient_agrees_with_differences(problem):
    observed, _, values = problem
    distance = np.abs(observed[:, None] - observed[None, :])

    def parts(theta):
        scale, rate, noise = np.exp(theta)
        gram = scale * np.exp(-rate * distance)
        return gram, noise, np.stack([gram, -rate * distance * gram, noise * np.eye(25)])

    def likelihood(theta):
        gram, noise, _ = parts(theta)
        return GaussianProcess.condition(gram, values, noise).log_likelihood

    theta = np.log([1.1, 0.6, 0.3])
    gram, noise, derivatives = parts(theta)
    gradient = GaussianProcess.condition(gram, values, noise).log_likelihood_gradient(derivatives)
    np.testing.assert_allclose(gradient, approx_fprime(theta, likelihood, 1e-6), rtol=1e-4)


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_extending_equals_conditioning_at_once(n, k, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 3, n + k)
    y = rng.standard_normal(n + k)
    gram = covariance(x, x)
    whole = GaussianProcess.condition(gram, y, 0.1)
    grown = GaussianProcess.condition(gram[:n, :n], y[:n], 0.1).extend(
        gram[:n, n:], gram[n:, n:], y[n:]
    )
    np.testing.assert_allclose(grown.factor, whole.factor, atol=1e-10)
    np.testing.assert_allclose(grown.weights, whole.weights, atol=1e-8)


def test_fantasies_keep_the_mean_and_shrink_the_variance(problem):
    observed, asked, values = problem
    gp = GaussianProcess.condition(covariance(observed, observed), values, 0.05)
    pending = asked[:3]
    others = asked[3:]
    extended = gp.extend(covariance(observed, pending), covariance(pending, pending))
    mean, variance = gp.predict(covariance(observed, others), np.full(37, 1.3))
    everything = np.concatenate([observed, pending])
    new_mean, new_variance = extended.predict(covariance(everything, others), np.full(37, 1.3))
    np.testing.assert_allclose(new_mean, mean, atol=1e-9)
    assert (new_variance <= variance + 1e-12).all()
    assert new_variance.sum() < 0.99 * variance.sum()


def test_repeats_are_one_mean_with_less_noise():
    once = np.array([0.0, 1.0, 2.0])
    twice = np.array([0.0, 1.0, 1.0, 2.0])
    repeated = GaussianProcess.condition(
        covariance(twice, twice), np.array([0.3, 1.0, 0.6, -0.2]), 0.2
    )
    noise = np.diag([0.2, 0.1, 0.2])
    merged = GaussianProcess.condition(
        covariance(once, once) + noise, np.array([0.3, 0.8, -0.2]), 0.0
    )
    asked = np.linspace(-1, 3, 9)
    expected = merged.predict(covariance(once, asked), np.full(9, 1.3))
    np.testing.assert_allclose(
        repeated.predict(covariance(twice, asked), np.full(9, 1.3)), expected, atol=1e-12
    )


def test_noise_of_each_row(problem):
    observed, asked, values = problem
    variances = np.random.default_rng(0).uniform(0.01, 0.5, 25)
    gram = covariance(observed, observed)
    cross = covariance(observed, asked)
    solved = np.linalg.solve(gram + np.diag(variances), cross)
    gp = GaussianProcess.condition_repaired(gram, values, 0.05, variances)
    mean, variance = gp.predict(cross, np.full(40, 1.3))
    np.testing.assert_allclose(mean, solved.T @ values, atol=1e-9)
    np.testing.assert_allclose(variance, 1.3 - (cross * solved).sum(axis=0), atol=1e-9)
    first = GaussianProcess.condition(gram[:20, :20], values[:20], 0.05, variances[:20])
    grown = first.extend(gram[:20, 20:], gram[20:, 20:], values[20:], variances[20:])
    np.testing.assert_allclose(grown.predict(cross, np.full(40, 1.3)), (mean, variance), atol=1e-9)


def test_the_given_covariance_is_not_changed(problem):
    observed, _, values = problem
    gram = covariance(observed, observed)
    before = gram.copy()
    GaussianProcess.condition_repaired(gram, values, 0.05)
    np.testing.assert_array_equal(gram, before)


def test_repeats_without_noise_are_repaired_visibly():
    x = np.array([0.0, 1.0, 1.0])
    with pytest.warns(JitterWarning, match="to the diagonal of a 3 x 3"):
        GaussianProcess.condition(covariance(x, x), np.zeros(3), 0.0)


def test_a_certain_point_has_no_negative_variance():
    x = np.linspace(0, 1, 30)
    gp = GaussianProcess.condition(covariance(x, x), np.sin(x), 1e-8)
    _, variance = gp.predict(covariance(x, x), np.full(30, 1.3))
    assert (variance >= 0).all()


def test_cholesky_of_an_indefinite_matrix():
    with pytest.raises(NotPositiveDefiniteError) as caught:
        robust_cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))

    assert caught.value.size == 2
    assert caught.value.jitter == pytest.approx(1e-2)


def test_cholesky_escalates_only_as_far_as_needed():
    matrix = np.array([[1.0, 1.0 + 5e-6], [1.0 + 5e-6, 1.0]])
    with pytest.warns(JitterWarning, match=r"added 1\.0e-05"):
        factor = robust_cholesky(matrix)

    np.testing.assert_allclose(factor @ factor.T, matrix, atol=2e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("at", [(0, 0), (1, 1), (1, 0)])
def test_cholesky_refuses_what_is_not_finite(bad, at):
    matrix = np.eye(2)
    matrix[at] = matrix[at[::-1]] = bad
    assert try_cholesky(matrix) is None
    with pytest.raises(NumericalError, match="not finite"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        robust_cholesky(matrix)


def test_likelihood_of_no_covariance_is_minus_infinity():
    assert log_likelihood(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2)) == -np.inf


def indefinite(x):
    """exp(-d^2) of a metric that is not of negative type: the shortest paths of a star of many
    rays."""
    distance = np.where(x[:, None] == x[None, :], 0.0, 2.0)
    distance[0, 1:] = distance[1:, 0] = 1.0
    return np.exp(-0.05 * distance**2)


def test_an_indefinite_covariance_is_repaired_and_says_so():
    gram = indefinite(np.arange(30.0))
    assert np.linalg.eigvalsh(gram)[0] < -0.05
    values = np.sin(np.arange(30.0))
    gp = GaussianProcess.condition_repaired(gram[:20, :20], values[:20], 1e-3)
    assert gp.repaired > 0.0
    mean, variance = gp.predict(gram[:20, 20:], np.ones(10))
    assert np.isfinite(mean).all() and (variance >= 0).all()


def test_a_sound_covariance_is_left_alone(problem):
    observed, _, values = problem
    plain = GaussianProcess.condition(covariance(observed, observed), values, 0.05)
    repaired = GaussianProcess.condition_repaired(covariance(observed, observed), values, 0.05)
    assert repaired.repaired == 0.0 and repaired.projection is None
    np.testing.assert_array_equal(plain.factor, repaired.factor)


def test_fantasies_with_an_indefinite_covariance():
    gram = indefinite(np.arange(40.0))
    gp = GaussianProcess.condition_repaired(gram[:10, :10], np.zeros(10), 1e-3)
    for at in range(10, 40, 10):
        gp = gp.extend(gram[:at, at : at + 10], gram[at : at + 10, at : at + 10])

    assert gp.repaired > 0.0
    assert np.isfinite(gp.weights).all()
