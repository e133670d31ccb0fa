"""Covariance of pairs: formula, gradient and positive definiteness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.kernels.covariance.base import exponential
from archive.kernels.covariance.joint import JointCovariance, MaternARD
from tests.support import examples

SEEDS = st.integers(0, 2**32 - 1)


def stack_of(rng, n, networks=2, parameters=3):
    """Return L1 distances of points, then squared distances of coordinates of others."""
    places = rng.random((networks, n))
    coordinates = rng.random((parameters, n))
    first = np.abs(places[:, :, None] - places[:, None, :])
    second = np.square(coordinates[:, :, None] - coordinates[:, None, :])
    return np.concatenate([first, second])


def covariance_of(networks=2, parameters=3):
    return JointCovariance(exponential(networks), MaternARD(parameters), networks)


def theta_of(rng, covariance, stack):
    lower, upper = covariance.bounds(stack).T
    return lower + (0.3 + 0.4 * rng.random(len(lower))) * (upper - lower)


@given(seed=SEEDS)
@examples(0.3)
def test_the_covariance_is_the_sum_and_the_product_of_both_parts(seed):
    rng = np.random.default_rng(seed)
    stack = stack_of(rng, 5)
    covariance = covariance_of()
    theta = theta_of(rng, covariance, stack)
    first = exponential(2).value(stack[:2], theta[:3])
    second = MaternARD(3).value(stack[2:], theta[3:-1])
    expected = first + second + np.exp(theta[-1]) * first * second
    value = covariance.value(stack, theta)
    assert value == pytest.approx(expected)
    assert np.diagonal(value) == pytest.approx(covariance.variance(theta))
    assert np.linalg.eigvalsh(value).min() > -1e-9 * np.trace(value)


@given(seed=SEEDS)
@examples(0.3)
def test_layers_are_the_derivatives(seed):
    rng = np.random.default_rng(seed)
    stack = stack_of(rng, 4)
    covariance = covariance_of()
    theta = theta_of(rng, covariance, stack)
    _, gradient = covariance.value_and_gradient(stack, theta)
    assert len(gradient) == len(covariance.names) == len(theta)
    for index in range(len(theta)):
        step = np.zeros_like(theta)
        step[index] = 1e-6
        difference = covariance.value(stack, theta + step) - covariance.value(stack, theta - step)
        assert gradient[index] == pytest.approx(difference / 2e-6, rel=1e-4, abs=1e-7)


def test_one_parameter_is_a_matern_covariance():
    distance = 0.7
    stack = np.array([[[distance**2]]])
    value = MaternARD(1).value(stack, np.log([2.0, 4.0, 1.0]))[0, 0]
    scaled = np.sqrt(5.0) * 2.0 * distance
    assert value == pytest.approx(2.0 * (1 + scaled + scaled**2 / 3) * np.exp(-scaled))
