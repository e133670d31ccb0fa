"""Matern and squared exponential covariances: against scikit-learn, gradients against differences, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import RBF, Matern

from archive.errors import UsageError
from archive.kernels.covariance.base import Exponential
from archive.kernels.covariance.stationary import Stationary, correlation

PROFILES = ("rbf", "matern32", "matern52")
every = pytest.mark.parametrize("profile", PROFILES)
seeds = st.integers(0, 2**32 - 1)


def euclidean(seed: int, count: int = 7) -> np.ndarray:
    """(2, count, count) Euclidean distances of points, two of which are equal in the first component."""
    points = np.random.default_rng(seed).normal(size=(2, count, 3))
    points[0, 1] = points[0, 0]
    return np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)


@every
def test_agrees_with_scikit_learn(profile):
    points, lengthscale = np.random.default_rng(0).normal(size=(8, 3)), 0.7
    peer = {"rbf": RBF(lengthscale), "matern32": Matern(lengthscale, nu=1.5), "matern52": Matern(lengthscale, nu=2.5)}
    stack = np.linalg.norm(points[:, None] - points[None], axis=-1)[None]
    found = Stationary([0], profile).value(stack, np.log([1.0, lengthscale**-2]))
    np.testing.assert_allclose(found, peer[profile](points), rtol=1e-12)


@every
@given(seed=seeds)
def test_gradients(profile, seed):
    covariance, stack = Stationary([1, 0], profile), euclidean(seed, 4)
    theta = np.random.default_rng(seed).uniform(-2, 1, 3)
    value, gradient = covariance.value_and_gradient(stack, theta)
    np.testing.assert_allclose(value, covariance.value(stack, theta), rtol=1e-12)
    for at in np.ndindex(4, 4):
        slopes = approx_fprime(theta, lambda t, at=at: covariance.value(stack, t)[at], 1e-7)
        np.testing.assert_allclose(gradient[(slice(None), *at)], slopes, atol=1e-5)


@every
def test_slope_of_the_profile_at_zero_is_its_limit(profile):
    f, slope = correlation(profile, np.array([0.0, 1e-10]))
    assert f[0] == 1.0
    assert (f[1] - f[0]) / 1e-10 == pytest.approx(slope[0], rel=1e-3)


@every
@given(seed=seeds)
def test_positive_semi_definite_on_euclidean_distances(profile, seed):
    theta = np.random.default_rng(seed).uniform(-4, 4, 3)
    K = Stationary([0, 1], profile).value(euclidean(seed, 12), theta)
    assert np.linalg.eigvalsh(K)[0] >= -1e-10 * K[0, 0]


def test_rbf_is_the_exponential_of_half_the_squares():
    stack, theta = euclidean(4), np.array([0.3, -0.4, 0.2])
    halved = theta - np.log([1.0, 2.0, 2.0])
    np.testing.assert_allclose(
        Stationary([0, 1], "rbf").value(stack, theta), Exponential([0, 1], 2.0).value(stack, halved), rtol=1e-12
    )


def test_bounds_variance_names_and_pickling():
    covariance, stack = Stationary([0, 1], label="_arc"), euclidean(2)
    assert covariance.names == ("alpha_arc", "beta_arc[0]", "beta_arc[1]")
    near, far = covariance.bounds(stack), covariance.bounds(100 * stack)
    np.testing.assert_allclose(near[1:] - far[1:], 2 * np.log(100))
    for degenerate in (np.zeros((2, 1, 1)), np.zeros((2, 0, 0))):
        assert np.isfinite(covariance.bounds(degenerate)).all()
    assert covariance.variance(np.array([0.5, 0, 0])) == pytest.approx(np.exp(0.5))
    again = pickle.loads(pickle.dumps(covariance))
    np.testing.assert_array_equal(again.value(stack, np.zeros(3)), covariance.value(stack, np.zeros(3)))
    both = covariance + Stationary([0], "rbf")
    assert both.value_and_gradient(stack, np.zeros(5))[1].shape == (5, 7, 7)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: Stationary([]), "components must be one or more positions"),
        (lambda: Stationary([-1]), "components must be one or more positions"),
        (lambda: Stationary([0], "matern12"), "profile must be one of rbf, matern32, matern52, got 'matern12'"),
        (lambda: Stationary([2]).value(np.zeros((2, 1, 1)), np.zeros(2)), "needs component 2, got a stack of 2"),
        (lambda: Stationary([0]).value(np.zeros((2, 1, 1)), np.zeros(3)), "theta must hold 2 parameters"),
    ],
)
def test_bad_input(call, reason):
    with pytest.raises(UsageError, match=reason):
        call()
