"""The slice sampler against densities whose moments are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from archive.agents.surrogates.gp.likelihood import Bounds
from archive.agents.surrogates.gp.slice_sampling import (
    SamplingSchedule,
    SliceSampling,
    slice_sample,
)
from archive.errors import NumericalError, UsageError

METHODS = ["coordinates", "directions"]


@pytest.mark.parametrize("method", METHODS)
def test_correlated_normal(method):
    mean = np.array([0.5, -1.0])
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    precision = np.linalg.inv(covariance)
    bounds = Bounds(np.full(2, -12.0), np.full(2, 12.0))

    def log_density(x):
        return -0.5 * float((x - mean) @ precision @ (x - mean))

    drawn = slice_sample(
        log_density, bounds, SamplingSchedule(3000, 20, 2), np.random.default_rng(1), method=method
    )
    # 3000 draws of an autocorrelation time of about 5: a standard error of 0.04, four of which are
    # allowed.
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.16)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.2)


@pytest.mark.parametrize("method", METHODS)
def test_density_cut_off_by_the_box(method):
    # exp(-x) on [0, 1], where most steps meet a wall.
    bounds = Bounds(np.zeros(1), np.ones(1))
    drawn = slice_sample(
        lambda x: -float(x[0]),
        bounds,
        SamplingSchedule(2000),
        np.random.default_rng(2),
        method=method,
    )
    law = stats.truncexpon(1.0)
    assert stats.kstest(drawn[::2, 0], law.cdf).pvalue > 1e-3


def test_two_separate_modes_are_both_visited():
    def log_density(x):
        return float(np.logaddexp(-0.5 * ((x[0] + 2) / 0.3) ** 2, -0.5 * ((x[0] - 2) / 0.3) ** 2))

    bounds = Bounds(np.full(1, -5.0), np.full(1, 5.0))
    drawn = slice_sample(
        log_density, bounds, SamplingSchedule(2000, 10, 1), np.random.default_rng(3)
    )
    assert 0.25 < (drawn > 0).mean() < 0.75


@pytest.mark.parametrize("method", METHODS)
def test_flat_density_fills_the_box_and_stays_inside(method):
    bounds = Bounds(np.array([-1.0, 10.0, 0.0]), np.array([1.0, 30.0, 1e-3]))
    drawn = slice_sample(
        lambda x: 0.0, bounds, SamplingSchedule(1500, 0, 2), np.random.default_rng(4), method=method
    )
    assert ((drawn >= bounds.lower) & (drawn <= bounds.upper)).all()
    for column, low, width in zip(drawn.T, bounds.lower, bounds.widths, strict=True):
        assert stats.kstest(column[::3], stats.uniform(low, width).cdf).pvalue > 1e-3


def test_one_seed_gives_one_result():
    def draw():
        return slice_sample(
            lambda x: -float(x @ x),
            Bounds(-np.ones(3), np.ones(3)),
            SamplingSchedule(5),
            np.random.default_rng(7),
        )

    np.testing.assert_array_equal(draw(), draw())


def test_holes_in_the_density_are_walked_around():
    def log_density(x):
        return 0.0 if x[0] > 0.5 else -np.inf

    drawn = slice_sample(
        log_density,
        Bounds(np.zeros(1), np.ones(1)),
        SamplingSchedule(200),
        np.random.default_rng(5),
    )
    assert (drawn > 0.5).all()


def test_start_of_zero_density_is_refused():
    with pytest.raises(NumericalError, match="must start at a finite log density, got -inf"):
        slice_sample(
            lambda x: -np.inf,
            Bounds(np.zeros(2), np.ones(2)),
            SamplingSchedule(1),
            np.random.default_rng(6),
        )


def test_bad_bounds_and_schedules_are_refused():
    with pytest.raises(NumericalError, match="ascending"):
        Bounds(np.zeros(2), np.array([1.0, 0.0]))

    with pytest.raises(NumericalError, match="samples >= 1"):
        SamplingSchedule(samples=0)

    with pytest.raises(UsageError, match="observations must be >= 1, got 0"):
        SliceSampling(observations=0)
