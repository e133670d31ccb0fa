"""The nugget: its covariance, and what it explains in place of noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from archive import spaces
from archive.agents.bayesopt.portfolio_members import NOISE_PRIOR, member_model
from archive.agents.surrogates.gp.nugget import DistancesWithIdentity, NuggetCovariance
from archive.kernels.covariance.base import Exponential

SPACE = spaces.get("nasbench201")
NETWORKS = [SPACE.sample(np.random.default_rng(seed)).functional for seed in range(8)]


def stack_of(seed: int, m: int = 5, n: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [rng.exponential(1.0, (2, m, n)), rng.integers(0, 2, (1, m, n)).astype(float)]
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_gradient_and_value(seed):
    covariance = NuggetCovariance(Exponential([0, 1]))
    stack = stack_of(seed)
    assert covariance.names[-1] == "delta2" and len(covariance.bounds(stack)) == len(
        covariance.names
    )
    theta = np.random.default_rng(seed).normal(0.0, 0.5, 4)
    value, layers = covariance.value_and_gradient(stack, theta)
    inner = Exponential([0, 1]).value(stack[:2], theta[:-1])
    np.testing.assert_allclose(value, inner + np.exp(theta[-1]) * (stack[2] == 0))
    np.testing.assert_array_equal(value, covariance.value(stack, theta))
    expected = approx_fprime(theta, lambda x: covariance.value(stack, x).ravel(), 1e-7)
    np.testing.assert_allclose(layers.reshape(4, -1).T, expected, atol=1e-5)
    assert covariance.variance(theta) == pytest.approx(
        covariance.value(np.zeros((3, 1, 1)), theta).item()
    )


def test_only_a_network_itself_has_identity_zero():
    distances = DistancesWithIdentity(member_model("choices", SPACE).pairwise)
    differ = distances.distances(NETWORKS).stack[-1]
    keys = [network.key for network in NETWORKS]
    np.testing.assert_array_equal(differ == 0.0, np.equal.outer(keys, keys))
    twice = distances.distances(NETWORKS[:2], [NETWORKS[1], NETWORKS[1], NETWORKS[3]]).stack[-1]
    np.testing.assert_array_equal(twice, [[1, 1, 1], [0, 0, 1]])


def test_deviations_of_networks_are_no_noise_and_hide_no_trend():
    rng = np.random.default_rng(4)
    networks = list(
        {
            network.key: network for network in (SPACE.sample(rng).functional for _ in range(150))
        }.values()
    )
    assert len(networks) >= 80
    networks = networks[:80]
    trend = np.array(
        [
            sum("conv" in layer.op and "3x3" in layer.op for layer in each.layers)
            for each in networks
        ]
    )
    trend = (trend - trend.mean()) / trend.std()
    truth = trend + rng.normal(0.0, 0.7, 80)
    # Fifteen networks have eight evaluations each, 35 have one, and thirty are new.
    at = np.concatenate([np.repeat(np.arange(15), 8), np.arange(15, 50)])
    scores = truth[at] + rng.normal(0.0, 0.1, len(at))
    model = member_model("topology", SPACE)
    errors = []
    noises = []
    for surrogate in (
        model.noisy_surrogate("standardise"),
        model.surrogate("standardise", NOISE_PRIOR),
    ):
        fitted = surrogate.fit([networks[row] for row in at], scores, np.random.default_rng(0))
        errors.append(np.mean((fitted.posterior(networks[50:]).in_scores().mean - trend[50:]) ** 2))
        noises.append(np.sqrt(fitted.noises().mean()))

    assert noises[0] == pytest.approx(0.1, rel=0.2) and noises[1] > 0.15
    assert errors[0] < 0.5 * errors[1]
