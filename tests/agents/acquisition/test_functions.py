"""Acquisitions against values computed by hand, by quadrature and with 80 digits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from archive.agents.acquisition import functions
from archive.agents.acquisition.functions import UpperConfidenceBound, log_h
from archive.agents.surrogates.base import Posterior
from archive.errors import NumericalError, UnknownNameError, UsageError


def posterior(mean, std, best=0.0, covariances=None):
    means = np.atleast_2d(np.asarray(mean, dtype=float))
    variances = np.broadcast_to(np.square(np.asarray(std, dtype=float)), means.shape)
    return Posterior(means, variances, np.broadcast_to(float(best), len(means)), covariances)


def rank(name, *args, seed=0, **kwargs):
    return functions.get(name).rank(posterior(*args, **kwargs), np.random.default_rng(seed))


def test_expected_improvement_by_hand():
    # s (phi(0) + 0) at mu = tau; s phi(1) + (mu - tau) Phi(1) one deviation above, with s = 2.
    at_incumbent, above = np.exp(rank("ei", [1.0, 3.0], 2.0, 1.0))
    assert at_incumbent == pytest.approx(2.0 * 0.3989422804014327)
    assert above == pytest.approx(2.0 * 0.24197072451914337 + 2.0 * 0.8413447460685429)


@pytest.mark.parametrize(
    ("mean", "std", "best"), [(0.0, 1.0, 0.5), (0.9, 0.01, 0.93), (-3.0, 2.0, 1.0)]
)
def test_expected_improvement_is_the_integral(mean, std, best):
    law = stats.norm(mean, std)
    expected, _ = quad(
        lambda f: (f - best) * law.pdf(f), best, mean + 40 * std, epsabs=0, limit=200
    )
    assert np.exp(rank("ei", [mean], std, best)[0]) == pytest.approx(expected, rel=1e-6)


# mpmath, 80 digits: log(npdf(z) + z ncdf(z)).
LOG_H = {
    3.0: 1.0987396653277077,
    0.0: -0.91893853320467274,
    -0.99: -2.4661143916690494,
    -1.01: -2.5041998574802568,
    -5.0: -16.744301162660990,
    -40.0: -808.29856835661996,
    -300.0: -45012.326536814554,
    -500.0: -125013.34816672988,
}


@pytest.mark.parametrize(("z", "expected"), LOG_H.items())
def test_log_h_with_many_digits(z, expected):
    assert log_h(np.array([z]))[0] == pytest.approx(expected, rel=1e-12)


def test_log_h_is_continuous_where_the_formula_changes():
    for seam in (-1.0, -300.0):
        below, above = log_h(np.array([np.nextafter(seam, -np.inf), np.nextafter(seam, np.inf)]))
        assert below == pytest.approx(above, rel=1e-10)


def test_log_h_rises_everywhere_and_is_never_nan():
    values = log_h(np.concatenate([-np.logspace(300, -3, 2000), np.logspace(-3, 300, 2000)]))
    assert not np.isnan(values).any()
    finite = values[np.isfinite(values)]
    assert (np.diff(finite) > 0).all()


def test_logarithm_tells_hopeless_candidates_apart():
    ranks = rank("ei", [-1.0, -2.0, -3.0], 1e-3)
    assert np.exp(ranks).max() == 0.0
    assert ranks[0] > ranks[1] > ranks[2]


@pytest.mark.parametrize("name", ["ei", "pi"])
def test_certain_candidates(name):
    better, equal, worse = rank(name, [2.0, 0.0, -2.0], 0.0)
    assert better > equal > worse
    assert not np.isnan([better, equal, worse]).any()
    if name == "ei":
        assert np.exp(better) == pytest.approx(2.0)


def test_probability_of_improvement_by_hand():
    np.testing.assert_allclose(
        np.exp(rank("pi", [0.0, 1.0, -1.96], 1.0)), [0.5, 0.8413447, 0.0249979], atol=1e-7
    )


def test_upper_confidence_bound_by_hand():
    bounds = UpperConfidenceBound(1.5).rank(
        posterior([1.0, 2.0], [2.0, 0.0]), np.random.default_rng(0)
    )
    np.testing.assert_allclose(bounds, [4.0, 2.0])
    with pytest.raises(UsageError, match="kappa must be >= 0, got -1"):
        UpperConfidenceBound(-1.0)


def test_members_of_a_mixture_are_averaged():
    means = np.array([[0.0], [1.0]])
    stds = np.array([[1.0], [0.5]])
    both = Posterior(means, np.square(stds), np.array([0.2, 0.4]))
    apart = [np.exp(rank("ei", means[s], stds[s], best)[0]) for s, best in enumerate((0.2, 0.4))]
    ranks = functions.get("ei").rank(both, np.random.default_rng(0))
    assert np.exp(ranks[0]) == pytest.approx(np.mean(apart))


def test_moments_of_a_mixture():
    both = Posterior(np.array([[0.0], [2.0]]), np.array([[1.0], [3.0]]), np.zeros(2))
    assert both.mean[0] == pytest.approx(1.0)
    assert both.variance[0] == pytest.approx(2.0 + 1.0)


def test_thompson_draws_jointly():
    covariances = np.array([[[1.0, 1.0], [1.0, 1.0]]])
    joint = posterior([0.0, 3.0], 1.0, covariances=covariances)
    rng = np.random.default_rng(5)
    drawn = np.array([functions.get("ts").rank(joint, rng) for _ in range(2000)])
    np.testing.assert_allclose(drawn[:, 1] - drawn[:, 0], 3.0, atol=1e-6)
    assert drawn[:, 0].std() == pytest.approx(1.0, abs=0.08)


def test_thompson_needs_covariances():
    assert functions.get("ts").joint
    with pytest.raises(NumericalError, match="joint samples need"):
        rank("ts", [0.0], 1.0)


def test_samples_have_the_moments_of_the_mixture():
    covariances = np.array([[[2.0, -0.5], [-0.5, 1.0]], [[0.5, 0.2], [0.2, 0.3]]])
    means = np.array([[0.0, 1.0], [3.0, -1.0]])
    law = Posterior(means, np.array([[2.0, 1.0], [0.5, 0.3]]), np.zeros(2), covariances)
    drawn = law.sample(40_000, np.random.default_rng(8))
    np.testing.assert_allclose(drawn.mean(axis=0), law.mean, atol=0.05)
    np.testing.assert_allclose(drawn.var(axis=0), law.variance, rtol=0.05)


SHARES = np.array([0.9, 0.1])


def test_weights_equal_repeated_members():
    rng = np.random.default_rng(3)
    means = rng.normal(size=(2, 5))
    variances = rng.uniform(0.1, 2.0, (2, 5))
    best = np.array([0.3, -0.2])
    weighted = Posterior(means, variances, best, weights=SHARES)
    times = [0] * 9 + [1]
    repeated = Posterior(means[times], variances[times], best[times])
    for name in ("ei", "pi", "ucb"):
        ranks, expected = (functions.get(name).rank(law, rng) for law in (weighted, repeated))
        np.testing.assert_allclose(ranks, expected, rtol=1e-12)

    np.testing.assert_allclose(weighted.mean, repeated.mean)
    np.testing.assert_allclose(weighted.variance, repeated.variance)


def test_a_member_of_weight_zero_does_not_count():
    means = np.array([[0.0, 1.0], [9.0, -9.0]])
    law = Posterior(means, np.ones((2, 2)), np.zeros(2), weights=np.array([1.0, 0.0]))
    alone = posterior(means[0], 1.0)
    for name in ("ei", "pi", "ucb"):
        ranks, expected = (
            functions.get(name).rank(one, np.random.default_rng(0)) for one in (law, alone)
        )
        np.testing.assert_allclose(ranks, expected)


def test_members_are_drawn_by_their_shares():
    covariances = np.array([[[2.0, -0.5], [-0.5, 1.0]], [[0.5, 0.2], [0.2, 0.3]]])
    means = np.array([[0.0, 1.0], [3.0, -1.0]])
    law = Posterior(means, np.array([[2.0, 1.0], [0.5, 0.3]]), np.zeros(2), covariances, SHARES)
    drawn = law.sample(40_000, np.random.default_rng(8))
    np.testing.assert_allclose(drawn.mean(axis=0), [0.3, 0.8], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), law.covariance, atol=0.05)
    np.testing.assert_allclose(law.covariance.diagonal(), law.variance)
    apart = [
        functions.get("its").rank(law, rng)
        for rng in [np.random.default_rng(5)]
        for _ in range(3000)
    ]
    np.testing.assert_allclose(np.mean(apart, axis=0), [0.3, 0.8], atol=0.15)


def test_unknown_name():
    with pytest.raises(UnknownNameError, match="unknown acquisition 'eii'"):
        functions.get("eii")


def test_independent_thompson_draws_each_score_by_itself():
    law = posterior([0.0, 3.0], 2.0)
    rng = np.random.default_rng(5)
    drawn = np.array([functions.get("its").rank(law, rng) for _ in range(3000)])
    np.testing.assert_allclose(drawn.mean(axis=0), [0.0, 3.0], atol=0.15)
    np.testing.assert_allclose(drawn.std(axis=0), 2.0, rtol=0.06)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.06
    assert not functions.get("its").joint


def test_independent_thompson_draws_from_the_mixture():
    law = Posterior(np.array([[0.0, 10.0], [4.0, 20.0]]), np.full((2, 2), 0.25), np.zeros(2))
    rng = np.random.default_rng(5)
    drawn = np.array([functions.get("its").rank(law, rng) for _ in range(3000)])
    np.testing.assert_allclose(drawn.mean(axis=0), law.mean, atol=0.3)
    np.testing.assert_allclose(drawn.std(axis=0), law.std, rtol=0.05)


def test_settings_by_name():
    assert functions.get("ucb", kappa=0.5).kappa == 0.5
    assert functions.names() == ("ei", "its", "pi", "ts", "ucb")
