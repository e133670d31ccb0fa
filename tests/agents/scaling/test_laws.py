"""Scaling laws: coefficients recovered from their own losses, and losses that fall with scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.agents.scaling import laws
from archive.errors import UnknownNameError, UsageError

TRUE = {
    "power": (lambda n, d: (1e9 / (6.0 * n * d)) ** 0.05, [0.05]),
    # Kaplan et al., 2020, eq. 1.5, with larger exponents.
    "kaplan": (lambda n, d: ((1e9 / n) ** (0.2 / 0.3) + 1e11 / d) ** 0.3, [0.2, 0.3]),
    # Hoffmann et al., 2022, eq. 10.
    "chinchilla": (lambda n, d: 1.69 + 406.4 / n**0.34 + 410.7 / d**0.28, [0.34, 0.28]),
}


def sizes():
    params, tokens = np.meshgrid(np.geomspace(1e6, 1e9, 8), np.geomspace(1e8, 1e11, 8))
    return params.ravel(), tokens.ravel()


@pytest.mark.parametrize("name", TRUE)
def test_a_law_recovers_its_exponents_beside_outliers(name):
    truth, exponents = TRUE[name]
    params, tokens = sizes()
    losses = truth(params, tokens)
    # Huber's loss bears trainings that diverged.
    losses[[5, 40]] *= 2.0
    law = laws.fit(laws.get(name), params, tokens, losses)
    found = law.theta[-len(exponents) :]
    np.testing.assert_allclose(found, exponents, atol=0.02)
    larger = law.loss(np.array([1e10]), np.array([1e12]))
    np.testing.assert_allclose(larger, truth(1e10, 1e12), rtol=0.02)


def test_the_irreducible_loss_is_recovered():
    truth, _ = TRUE["chinchilla"]
    params, tokens = sizes()
    law = laws.fit(laws.get("chinchilla"), params, tokens, truth(params, tokens))
    assert np.exp(law.theta[2]) == pytest.approx(1.69, abs=0.05)


@given(st.integers(0, 1000), st.sampled_from(sorted(laws.FORMS)))
def test_losses_fall_with_parameters_and_tokens_at_the_prior(seed, name):
    rng = np.random.default_rng(seed)
    form = laws.get(name)
    u, v = rng.uniform(-5.0, 5.0, (2, 4))
    theta = form.centre(1.0)
    less = form.log_loss(theta, u, v)
    assert (form.log_loss(theta, u + 1.0, v) < less).all()
    assert (form.log_loss(theta, u, v + 1.0) < less).all()


def test_one_run_leaves_the_prior():
    law = laws.fit_with_prior(
        laws.get("chinchilla"), np.array([1e6]), np.array([1e8]), np.array([3.0])
    )
    assert law.loss(np.array([1e6]), np.array([1e8])) == pytest.approx([3.0], rel=0.05)
    np.testing.assert_allclose(law.theta[3:], 0.35, atol=0.01)


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (np.array([1.0, 2.0]), "chinchilla needs 6 runs, got 2"),
        (np.array([1.0, -2.0]), "losses of a scaling law must be > 0, got -2"),
        (np.array([1.0, np.nan]), "got nan"),
    ],
)
def test_runs_that_no_law_describes(losses, message):
    with pytest.raises(UsageError, match=message):
        laws.fit(laws.get("chinchilla"), np.array([1e6, 1e7]), np.array([1e8, 1e8]), losses)


def test_an_unknown_law():
    with pytest.raises(UnknownNameError, match="scaling law 'chinchila'"):
        laws.get("chinchila")
