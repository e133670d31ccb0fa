"""Outcome transforms: increasing, equal to values by hand, and defined for degenerate scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.agents.surrogates.outcome_transforms import LEAST_FACTOR, LogRegret, Scale
from archive.errors import UnknownNameError
from archive.kernels.covariance.base import exponential
from tests.support import examples
from tests.support.gp_points import Differences, points, smooth

NAMES = ["none", "standardise", "rank-normal", "compress-below-median", "log-regret"]
every = pytest.mark.parametrize("name", NAMES)
# Differences of 1e-6 and more: below, any increasing function may round to equality.
scores_of_any_kind = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20)


@every
@given(seen=scores_of_any_kind, new=scores_of_any_kind)
def test_increasing_on_what_was_seen_and_on_what_comes(name, seen, new):
    scale = outcome_transforms.get(name).learn(np.array(seen, np.float64) / 1e3)
    values = scale.standardise(np.unique(np.array([*seen, *new]) / 1e3))
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0.0).all()
    if len(set(seen)) > 1:
        assert (np.diff(values) > 0.0).all()


@pytest.mark.parametrize("name", NAMES[1:])
@given(scores_of_any_kind)
def test_mean_0_and_deviation_1(name, scores):
    values = (
        outcome_transforms.get(name)
        .learn(scores := np.array(scores, np.float64))
        .standardise(scores)
    )
    assert values.mean() == pytest.approx(0.0, abs=1e-6)
    assert values.std() == pytest.approx(1.0 if len(set(scores)) > 1 else 0.0, abs=1e-6)


def test_none_changes_nothing():
    scale = outcome_transforms.get("none").learn(np.array([3.0, 5.0]))
    np.testing.assert_array_equal(scale.standardise(np.array([3.0, 7.0])), [3.0, 7.0])
    assert scale.linear


def test_quantiles_by_hand():
    scores = np.array([5.0, 1.0, 100.0, 5.0])
    transform = outcome_transforms.get("rank-normal").learn(scores).monotone_map
    np.testing.assert_allclose(transform(scores), norm.ppf([0.5, 0.125, 0.875, 0.5]))
    slope = 2.0 * norm.ppf(0.875) / 99.0
    np.testing.assert_allclose(
        transform(np.array([3.0, 110.0, -9.0])),
        [norm.ppf(0.125) / 2.0, norm.ppf(0.875) + 10.0 * slope, norm.ppf(0.125) - 10.0 * slope],
    )


def test_compression_by_hand():
    scores = np.array([-1e6, 1.0, 2.0, 3.0, 5.0])
    transform = outcome_transforms.get("compress-below-median").learn(scores).monotone_map
    # The excess over the median 2 is 1 and 3, its median 2.
    np.testing.assert_allclose(transform(scores), [-4.0, 2.0 - 6.0 / 7.0, 2.0, 3.0, 5.0], rtol=1e-4)


def test_compression_hears_the_good_ones_over_one_that_failed():
    networks = points(40)
    others = points(30, 1)
    scores = smooth(networks)
    truth = smooth(others, noise=0.0)
    scores[7] = -1e4

    def error(name):
        gp = DistanceGP(Differences(), exponential(3), MarginalLikelihood(), transform=name)
        mean = gp.fit(networks, scores, np.random.default_rng(0)).posterior(others).mean
        return 1.0 - np.corrcoef(mean, truth)[0, 1]

    assert error("compress-below-median") < 0.5 * error("standardise")


@pytest.mark.parametrize("name", ["log-regret", "compress-below-median"])
def test_a_training_that_went_wrong_does_not_set_the_unit(name):
    networks = points(40)
    others = points(60, seed=1)
    truth = smooth(others, noise=0.0)

    def correlation(wrong):
        scores = smooth(networks)
        scores[7] = wrong
        gp = DistanceGP(Differences(), exponential(3), MarginalLikelihood(), transform=name)
        return np.corrcoef(
            gp.fit(networks, scores, np.random.default_rng(0)).posterior(others).mean, truth
        )[0, 1]

    assert correlation(-1e20) == pytest.approx(correlation(-1e3), abs=0.05)


def test_log_regret_beyond_the_fence_by_hand():
    scores = np.array([-1000.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    scale = outcome_transforms.get("log-regret").learn(scores)
    lower, upper = np.quantile(scores, [0.25, 0.75])
    usual = 5.0 - (lower - 20.0 * (upper - lower))
    short = usual * (2.0 - usual / 1005.0)
    assert scale.monotone_map(scores[:1])[0] == pytest.approx(5.0 - 2.5 * np.log1p(short / 2.5))
    assert scale.restore(scale.monotone_map(scores)) == pytest.approx(scores)


def test_noise_of_scores_follows_the_slope_at_the_mean_of_a_network():
    # The median is 4 and the depth 3, so that the slope at x below it is 1 / (1 + x / 3)^2.
    keys = list("aabcdef")
    scores = np.array([0.0, 2.0, 4.0, 5.0, 5.0, 5.0, -1e6])
    scale = outcome_transforms.CompressBelowMedian(noise_of_scores=True).learn(scores)
    factors = scale.noise_factors(keys, scores)
    np.testing.assert_allclose(
        factors, [1 / 16, 1 / 16, factors[2], 1.0, 1.0, 1.0, LEAST_FACTOR], rtol=1e-3
    )
    assert (
        outcome_transforms.CompressBelowMedian().learn(scores).noise_factors(keys, scores) is None
    )


def test_a_best_that_is_an_outlier_itself_is_no_fence():
    # Of a study with constraints: the only result that meets them diverged.
    scores = np.array([-1000.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    scale = LogRegret(-1000.0).learn(scores)
    values = scale.standardise(np.array([-3000.0, -2000.0, -1000.0, 1.0, 5.0]))
    assert np.isfinite(values).all() and (np.diff(values) > 0.0).all()
    assert scale.restore(scale.monotone_map(scores)) == pytest.approx(scores)


def test_log_regret_by_hand():
    scores = np.array([1.0, 5.0, 4.0, 2.0, 3.0])
    transform = outcome_transforms.get("log-regret").learn(scores).monotone_map
    # The best is 5, the median falls 2 short of it.
    np.testing.assert_allclose(
        transform(np.array([1.0, 3.0, 5.0, 7.5])),
        [5.0 - 2.0 * np.log(3.0), 5.0 - 2.0 * np.log(2.0), 5.0, 7.5],
    )
    step = 1e-6
    below, above = transform(np.array([5.0, 5.0 + step])) - transform(np.array([5.0 - step, 5.0]))
    assert below == pytest.approx(above, rel=1e-5)


@every
@examples(5)
@given(seen=scores_of_any_kind, new=scores_of_any_kind)
def test_every_transform_is_undone(name, seen, new):
    scores = np.array(seen, np.float64) / 1e3
    scale = outcome_transforms.get(name).learn(scores)
    asked = np.array([*seen, *new], np.float64) / 1e3
    restored = scale.restore(scale.centre + scale.spread * scale.standardise(asked))
    floor = -np.inf if scale.linear else scores.min()
    # A score far below a depth of almost nothing has lost its digits to the median's.
    np.testing.assert_allclose(
        restored, np.maximum(asked, floor), rtol=1e-9, atol=1e-4 * max(np.ptp(asked), 1e-6)
    )


@every
@given(seen=scores_of_any_kind, predicted=st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=20))
def test_an_inverse_has_a_score_for_all_that_a_posterior_may_say(name, seen, predicted):
    scores = np.array(seen, np.float64) / 1e3
    scale = outcome_transforms.get(name).learn(scores)
    values = np.sort([*predicted, *(scores.mean() + 1e-3 * np.array(predicted))])
    restored = scale.restore(values)
    assert np.isfinite(restored).all()
    # Increasing but for rounding.
    assert (np.diff(restored) >= -1e-12 * np.abs(restored).max()).all()
    if not scale.linear:
        assert (restored >= scores.min()).all()


def test_inverses_by_hand():
    scores = np.array([1.0, 5.0, 4.0, 2.0, 3.0])
    # The median is 3; the excess over it is 1 and 2, so that no value of g is more than 4.5 below
    # it.
    compressed = outcome_transforms.get("compress-below-median").learn(scores)
    np.testing.assert_allclose(
        compressed.restore(np.array([7.0, 3.0, 3.0 - 1.0 / (1.0 + 1.0 / 4.5), -1.6, -99.0])),
        [7.0, 3.0, 2.0, 1.0, 1.0],
    )
    ranked = outcome_transforms.get("rank-normal").learn(scores)
    quantiles = norm.ppf([0.1, 0.3, 0.5, 0.7, 0.9])
    slope = 2.0 * quantiles[-1] / 4.0
    asked = [-3.0, quantiles[1], 0.0, 0.5 * quantiles[3], quantiles[4] + slope]
    np.testing.assert_allclose(ranked.restore(np.array(asked)), [1.0, 2.0, 3.0, 3.5, 6.0])
    # The best is 5, the median falls 2 short of it.
    regret = outcome_transforms.get("log-regret").learn(scores)
    np.testing.assert_allclose(
        regret.restore(np.array([6.0, 5.0 - 2.0 * np.log(2.0), -1e9])), [6.0, 3.0, 1.0]
    )


@pytest.mark.parametrize("name", NAMES[1:])
def test_predictions_in_scores_are_quantiles_of_the_score(name):
    """Against draws of the transformed score, each inverted by a search."""
    networks = points(20)
    others = points(4, 1)
    scores = smooth(networks)
    gp = DistanceGP(Differences(), exponential(3), MarginalLikelihood(), transform=name)
    fitted = gp.fit(networks, scores, np.random.default_rng(0))
    posterior = fitted.posterior(others, joint=True)
    scored = posterior.in_scores()
    if name == "standardise":
        assert scored.mean.tolist() == posterior.mean.tolist()
        assert scored.std.tolist() == posterior.std.tolist()

    for at in range(len(others)):
        draws = np.random.default_rng(at).normal(posterior.mean[at], posterior.std[at], 4001)
        grid = np.linspace(scores.min(), scores.max() + 20.0, 400_001)
        transformed = grid if fitted.scale.linear else fitted.scale.monotone_map(grid)
        low, median, high = np.quantile(
            np.interp(draws, transformed, grid), norm.cdf([-1.0, 0.0, 1.0])
        )
        tolerance = 0.1 * scored.std[at]
        assert scored.mean[at] == pytest.approx(median, abs=tolerance)
        assert scored.std[at] == pytest.approx(0.5 * (high - low), abs=tolerance)

    assert scored.best == pytest.approx([scores.max()])


@pytest.mark.parametrize("scores", [[3.0, 3.0, 3.0], [1.0, 3.0, 3.0], [2.0]])
def test_log_regret_where_the_median_is_the_best(scores):
    transform = outcome_transforms.get("log-regret").learn(np.array(scores)).monotone_map
    assert transform.unit == pytest.approx(np.std(scores) or 1.0)


@pytest.mark.parametrize("name", ["rank-normal", "compress-below-median", "log-regret"])
def test_the_incumbent_is_in_the_posterior_s_units(name):
    networks = points(20)
    scores = smooth(networks)
    gp = DistanceGP(Differences(), exponential(3), MarginalLikelihood(), transform=name)
    fitted = gp.fit(networks, scores, np.random.default_rng(0))
    assert not fitted.scale.linear
    posterior = fitted.posterior(networks)
    np.testing.assert_allclose(posterior.best, fitted.scale.monotone_map(scores).max())
    if name != "rank-normal":
        assert posterior.best == pytest.approx(scores.max())


def test_scale_of_scores_without_a_spread():
    assert Scale.of(np.array([0.1 + 0.2, 0.3, 0.3])).spread == 1.0
    assert Scale.of(np.array([-1e-200, 1e-200])).spread == 1.0
    assert Scale.of(np.array([-1e-100, 1e-100])).spread == pytest.approx(1e-100)


def test_names():
    transform = outcome_transforms.get("rank-normal")
    assert outcome_transforms.get(transform) is transform
    with pytest.raises(UnknownNameError, match="log"):
        outcome_transforms.get("log")
