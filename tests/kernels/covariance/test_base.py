"""Covariances: values by hand, gradients against differences, bounds, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from archive.errors import UsageError
from archive.kernels.covariance.base import (
    CommonScaleARD,
    Exponential,
    Sum,
    exponential,
    nasbot_covariance,
)

COVARIANCES = {
    "laplacian": Exponential([0, 1]),
    "gaussian": Exponential([1, 3], 2.0),
    "between": Exponential([2], 1.5),
    "sum": Exponential([0, 1]) + Exponential([2, 3], 2.0, "_other"),
    "nested": (Exponential([0]) + Exponential([1], 2.0)) + (Exponential([2]) + Exponential([3])),
    "nasbot": nasbot_covariance(2),
    "common": CommonScaleARD(4),
}
every = pytest.mark.parametrize("covariance", COVARIANCES.values(), ids=COVARIANCES.keys())


def stack_of(seed: int, m: int = 5, n: int = 4) -> np.ndarray:
    stack = np.random.default_rng(seed).exponential(1.0, (4, m, n))
    stack[:, 0, 0] = 0.0
    return stack


@every
@given(seed=st.integers(0, 2**32 - 1))
def test_gradients(covariance, seed):
    stack = stack_of(seed)
    theta = np.random.default_rng(seed).uniform(-2, 1, len(covariance.names))
    value, gradient = covariance.value_and_gradient(stack, theta)
    np.testing.assert_allclose(value, covariance.value(stack, theta), rtol=1e-12)
    assert gradient.shape == (len(theta), 5, 4)
    slopes = approx_fprime(theta, lambda t: covariance.value(stack, t).ravel(), 1e-7)
    np.testing.assert_allclose(gradient, slopes.T.reshape(gradient.shape), atol=1e-5)


@every
def test_variance_is_the_value_at_distance_zero(covariance):
    theta = np.linspace(-1, 1, len(covariance.names))
    assert covariance.variance(theta) == pytest.approx(
        covariance.value(np.zeros((4, 1, 1)), theta)[0, 0]
    )


@every
def test_shapes_of_empty_blocks(covariance):
    theta = np.zeros(len(covariance.names))
    assert covariance.value(np.zeros((4, 0, 3)), theta).shape == (0, 3)
    assert covariance.value_and_gradient(np.zeros((4, 2, 0)), theta)[1].shape == (len(theta), 2, 0)


@every
def test_bounds_are_one_pair_a_parameter(covariance):
    for stack in (stack_of(1), np.zeros((4, 1, 1)), np.zeros((4, 0, 0))):
        bounds = covariance.bounds(stack)
        assert bounds.shape == (len(covariance.names), 2)
        assert (bounds[:, 0] < bounds[:, 1]).all()
        assert np.isfinite(bounds).all()

    assert len(set(covariance.names)) == len(covariance.names)


def test_equation_4_by_hand():
    covariance = nasbot_covariance()
    d = np.arange(8.0).reshape(8, 1, 1) / 4
    alpha = 1.5
    beta = np.array([0.1, 0.2, 0.3, 0.4])
    alpha_bar = 0.7
    beta_bar = np.array([1.0, 0.5, 0.25, 2.0])
    theta = np.log(np.concatenate([[alpha], beta, [alpha_bar], beta_bar]))
    flat = d.ravel()
    expected = alpha * np.exp(-beta @ flat[:4]) + alpha_bar * np.exp(-beta_bar @ flat[4:] ** 2)
    assert covariance.value(d, theta)[0, 0] == pytest.approx(expected, rel=1e-12)
    assert covariance.names[0] == "alpha"
    assert covariance.names[5:7] == ("alpha_normalised", "beta_normalised[0]")


def test_bounds_follow_the_scale_of_the_distances():
    covariance = Exponential([0], 2.0)
    stack = stack_of(3)
    near = covariance.bounds(stack)
    far = covariance.bounds(1e6 * stack)
    np.testing.assert_allclose(near[1] - far[1], 2 * np.log(1e6))
    np.testing.assert_allclose(near[0], far[0])


def test_vast_distances_and_parameters_give_no_warning():
    covariance = nasbot_covariance()
    stack = np.full((8, 2, 2), 1e8)
    value, gradient = covariance.value_and_gradient(stack, np.zeros(10))
    assert not value.any()
    assert not gradient.any()


@every
def test_layers_come_one_at_a_time_and_a_bound_block_is_reused(covariance):
    stack = stack_of(4)
    bound = covariance.bind(stack)
    for shift in (-1.0, 0.5):
        theta = np.linspace(-1, 1, len(covariance.names)) + shift
        value, layers = bound.value_and_layers(theta)
        expected, gradient = covariance.value_and_gradient(stack, theta)
        np.testing.assert_array_equal(value, expected)
        count = 0
        for layer, slope in zip(layers, gradient, strict=True):
            np.testing.assert_array_equal(layer, slope)
            count += 1

        assert count == len(theta)
        np.testing.assert_array_equal(bound.value(theta), covariance.value(stack, theta))


def test_a_value_is_the_caller_s_to_change():
    for covariance in COVARIANCES.values():
        bound = covariance.bind(stack_of(5))
        theta = np.zeros(len(covariance.names))
        before = bound.value(theta).copy()
        bound.value(theta)[:] = 7.0
        np.testing.assert_array_equal(bound.value(theta), before)


def test_one_beta_a_component():
    covariance = exponential(3, 2.0, "_x")
    assert covariance.names == ("alpha_x", "beta_x[0]", "beta_x[1]", "beta_x[2]")
    theta = np.log([1.5, 0.1, 0.2, 0.3])
    d = np.array([1.0, 2.0, 3.0]).reshape(3, 1, 1)
    assert covariance.value(d, theta)[0, 0] == pytest.approx(1.5 * np.exp(-(0.1 + 0.8 + 2.7)))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: Exponential([]), "components must be one or more"),
        (lambda: Exponential([-1]), "components must be one or more"),
        (lambda: Exponential([0], 2.5), r"power must be in \(0, 2\], got 2.5"),
        (lambda: Sum(()), "terms must be one or more"),
        (
            lambda: Exponential([0]).value(np.zeros((1, 1, 1)), np.zeros(3)),
            "theta must hold 2 parameters",
        ),
        (lambda: exponential(0), "components must be one or more"),
        (
            lambda: Exponential([4]).value(np.zeros((4, 1, 1)), np.zeros(2)),
            "needs component 4, got a stack of 4",
        ),
    ],
)
def test_bad_input(call, reason):
    with pytest.raises(UsageError, match=reason):
        call()


def test_a_common_scale_and_weights_make_the_betas_of_the_components():
    stack = stack_of(3)
    covariance = CommonScaleARD(4)
    alpha = 1.5
    beta = 0.8
    weights = np.array([0.5, 1.0, 2.0, 4.0])
    value = covariance.value(stack, np.log([alpha, beta, *weights]))
    np.testing.assert_allclose(
        value, alpha * np.exp(-beta * np.tensordot(weights, stack, 1) / 4), rtol=1e-12
    )
    # The scale follows the distances, whatever their unit; weights have none.
    moved = covariance.bounds(10.0 * stack) - covariance.bounds(stack)
    np.testing.assert_allclose(
        moved, np.outer([0.0, -np.log(10.0), *[0.0] * 4], [1.0, 1.0]), atol=1e-12
    )
