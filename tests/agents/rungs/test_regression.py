"""The regression from one rung to the next."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.agents.rungs import (
    INTERCEPT,
    PRECISION,
    SHAPE,
    SLOPE,
    SPREAD,
    RungRegression,
)


def pairs(n, slope=0.6, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    early = rng.normal(0.5, 0.2, n)
    return early, 0.3 + slope * early + rng.normal(0.0, noise, n)


def test_the_posterior_is_that_of_the_integral():
    """Mean and variance of a prediction, by quadrature over intercept, slope and noise."""
    early, late = pairs(4)
    lower = np.append(early, [0.4, 0.9])
    fitted = RungRegression.fit(lower, early, late)
    z = (early - lower.mean()) / lower.std()
    w = (late - lower.mean()) / lower.std()
    a, b, sigma2 = np.meshgrid(
        np.linspace(-2, 3, 81), np.linspace(-2, 3, 81), np.geomspace(5e-3, 30, 60), indexing="ij"
    )
    log = -(SHAPE + 1) * np.log(sigma2) - SHAPE * SPREAD / sigma2 + np.log(sigma2)
    log += -0.5 * (INTERCEPT * a**2 + PRECISION * (b - SLOPE) ** 2) / sigma2 - np.log(sigma2)
    for one, value in zip(z, w, strict=True):
        log += -0.5 * (value - a - b * one) ** 2 / sigma2 - 0.5 * np.log(sigma2)

    weights = np.exp(log - log.max())
    weights /= weights.sum()
    at = float(z.max())
    mean = (weights * (a + b * at)).sum()
    variance = (weights * ((a + b * at) ** 2 + sigma2)).sum() - mean**2
    told = fitted.predict(float(early.max()))
    assert told.mean == pytest.approx(lower.mean() + lower.std() * mean, rel=1e-3)
    assert told.variance == pytest.approx(lower.var() * variance, rel=0.02)


def test_a_training_that_went_wrong_does_not_set_the_unit():
    early, late = pairs(12)
    lower = np.append(early, [0.1, 0.15])
    fitted, again = (
        RungRegression.fit(values, early, late) for values in (lower, np.append(lower, -1e4))
    )
    assert again.predict(0.1) == fitted.predict(0.1)
    assert again.predict(-1e4).mean < fitted.predict(0.1).mean
    assert again.predict(-1e4).variance > 1e6


@pytest.mark.parametrize("wrong", ["early", "late"])
def test_a_training_that_went_wrong_does_not_turn_the_line(wrong):
    early, late = pairs(12)
    values = {"early": np.append(early, 0.5), "late": np.append(late, 0.6)}
    values[wrong][-1] = -1e4
    fitted = RungRegression.fit(values["early"], values["early"], values["late"])
    assert fitted.slope == pytest.approx(RungRegression.fit(early, early, late).slope, rel=0.1)
    assert fitted.noise < 1.0


def test_one_pair_decides_the_level():
    fitted = RungRegression.fit(np.array([0.2, 0.4, 0.6]), np.array([0.6]), np.array([0.9]))
    assert fitted.predict(0.6).mean == pytest.approx(0.9, abs=0.01)
    assert fitted.predict(0.2).mean < fitted.predict(0.4).mean < fitted.predict(0.6).mean


def test_a_falling_line_is_taken_for_a_flat_one():
    early, late = pairs(20, slope=-1.0)
    fitted = RungRegression.fit(early, early, late)
    assert (
        fitted.predict(0.1).mean
        == pytest.approx(fitted.predict(0.9).mean)
        == pytest.approx(late.mean(), abs=0.01)
    )


def test_uncertainty_grows_below_the_promoted_and_with_that_of_the_input():
    early, late = pairs(60)
    best = np.argsort(-early)[:20]
    fitted = RungRegression.fit(early, early[best], late[best])
    low = float(early.min())
    least = float(early[best].min())
    assert fitted.predict(low).variance > 2 * fitted.predict(least).variance
    more = fitted.predict(low, 0.01).variance - fitted.predict(low).variance
    assert more == pytest.approx(0.01 * fitted.slope**2)


def test_equal_scores_have_a_finite_prediction():
    for late in ([0.5, 0.5], [0.7, 0.9]):
        told = RungRegression.fit(np.full(3, 0.5), np.full(2, 0.5), np.array(late)).predict(0.5)
        assert told.mean == pytest.approx(np.mean(late), abs=0.02) and 0.0 < told.variance < 1.0


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_of_equal_scores_and_one_promotion_the_gain_is_the_unit(unit):
    def told(unit):
        return RungRegression.fit(
            unit * np.full(3, 0.1), unit * np.array([0.1]), unit * np.array([0.9])
        ).predict(unit * 0.1)

    assert told(unit).variance == pytest.approx(unit**2 * told(1.0).variance)


@given(st.floats(0.01, 1e3), st.floats(-1e3, 1e3))
def test_the_unit_of_the_scores_does_not_matter(factor, shift):
    early, late = pairs(6)
    one = RungRegression.fit(early, early[:4], late[:4]).predict(0.3, 1e-3)
    other = RungRegression.fit(*(shift + factor * each for each in (early, early[:4], late[:4])))
    told = other.predict(shift + factor * 0.3, factor**2 * 1e-3)
    assert told.mean == pytest.approx(shift + factor * one.mean, rel=1e-6, abs=1e-6 * factor)
    assert told.variance == pytest.approx(factor**2 * one.variance, rel=1e-6)
