"""The surrogate on distances of points: repeats, known noise, updates, transforms, sizes and scales
of scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from archive.agents.surrogates.gp.distance import DistanceGP, FixedNoise, LearnedNoise
from archive.agents.surrogates.gp.fitted import check_variances
from archive.agents.surrogates.gp.likelihood import FixedHyperparameters
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.agents.surrogates.gp.slice_sampling import SamplingSchedule, SliceSampling
from archive.agents.surrogates.outcome_transforms import LogRegret
from archive.errors import NumericalError, UnknownNameError, UsageError
from archive.kernels.covariance.base import exponential
from tests.support.gp_points import Differences, Point, points, smooth

THETA = np.array([0.2, -1.0, -0.5, 0.0, -3.0])
QUICK = SliceSampling(SamplingSchedule(3, 3, 1), observations=40)


def surrogate(inference=None, **settings):
    return DistanceGP(Differences(), exponential(3), inference or MarginalLikelihood(), **settings)


def fit(networks, scores, inference=None, variances=None, **settings):
    return surrogate(inference, **settings).fit(
        networks, np.asarray(scores), np.random.default_rng(0), variances
    )


def same(one, two, **tolerance):
    for name in ("means", "variances", "best"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), **tolerance)


def test_agrees_with_scikit_learn():
    networks = points(30, coordinates=1)
    others = points(9, 1, coordinates=1)
    scores = smooth(networks)
    theta = np.log([1.0, 0.8, 0.02])
    ours = DistanceGP(Differences(), exponential(1), FixedHyperparameters(theta)).fit(
        networks, scores, np.random.default_rng(0)
    )
    theirs = GaussianProcessRegressor(
        Matern(1 / 0.8, nu=0.5), alpha=0.02, optimizer=None, normalize_y=True
    )
    theirs.fit(np.array([point.place for point in networks]), scores)
    mean, covariance = theirs.predict(np.array([point.place for point in others]), return_cov=True)
    joint = ours.posterior(others, joint=True)
    np.testing.assert_allclose(joint.mean, mean, atol=1e-6)
    np.testing.assert_allclose(joint.covariances[0], covariance, atol=1e-6)
    np.testing.assert_allclose(ours.posterior(others).std, np.sqrt(np.diag(covariance)), atol=1e-6)
    assert ours.log_likelihoods[0] == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-6)


def test_many_networks_are_predicted_in_parts(monkeypatch):
    networks = points(20)
    others = points(31, 1)
    fitted = fit(networks, smooth(networks))
    whole = fitted.posterior(others)
    monkeypatch.setattr("archive.agents.surrogates.gp.fitted.MOST_DISTANCES", 7 * 20 * len(THETA))
    same(fitted.posterior(others), whole, rtol=1e-9)
    monkeypatch.setattr("archive.agents.surrogates.gp.fitted.MOST_DISTANCES", 1)
    same(fitted.posterior(others), whole, rtol=1e-9)


def test_repeats_are_one_row_and_one_incumbent():
    networks = points(10)
    often = [*networks, networks[2], networks[2], networks[5]]
    scores = smooth(often)
    scores[2] = 9.0
    fitted = fit(often, scores, FixedHyperparameters(THETA))
    assert len(fitted.architectures) == 10
    # The same evaluations under names that differ are a row each.
    apart = [Point(f"{at}", point.place) for at, point in enumerate(often)]
    naive = fit(apart, scores, FixedHyperparameters(THETA))
    assert len(naive.architectures) == 13
    one, two = (each.posterior(points(6, 1), joint=True) for each in (fitted, naive))
    np.testing.assert_allclose(one.means, two.means, atol=1e-9)
    np.testing.assert_allclose(one.covariances, two.covariances, atol=1e-9)
    np.testing.assert_allclose(fitted.log_likelihoods, naive.log_likelihoods)
    # The lucky run of network 2 is no incumbent, its mean is.
    assert two.best[0] == 9.0
    assert one.best[0] == pytest.approx(
        max(scores[[2, 10, 11]].mean(), scores[[5, 12]].mean(), *scores[6:10])
    )


def test_repeats_are_learnt_from_as_rows_of_their_own():
    networks = [*points(15), *points(15)]
    scores = smooth(networks, noise=0.3)
    merged = fit(networks, scores, MarginalLikelihood(prior=None))
    apart = fit(
        [Point(str(at), p.place) for at, p in enumerate(networks)],
        scores,
        MarginalLikelihood(prior=None),
    )
    np.testing.assert_allclose(merged.log_likelihoods, apart.log_likelihoods, atol=1e-2)


@pytest.mark.parametrize(
    "inference",
    [FixedHyperparameters(THETA), FixedHyperparameters(np.stack([THETA, THETA - 1.0])), QUICK],
)
def test_observing_equals_fitting_with_these_hyperparameters(inference):
    networks = points(12)
    others = points(5, 1)
    # Three more: a new one, one that is known, and a repeat among the three.
    more = [others[0], networks[3], others[0]]
    scores = smooth([*networks, *more])
    variances = np.linspace(0.0, 0.2, 15)
    before = fit(networks, scores[:12], inference, variances[:12], transform="none")
    after = before.observe(more, scores[12:], variances[12:])
    refitted = fit(
        [*networks, *more], scores, FixedHyperparameters(before.thetas), variances, transform="none"
    )
    assert after.thetas is before.thetas
    same(after.posterior(others), refitted.posterior(others), atol=1e-8)
    one, two = (each.posterior(others, joint=True).covariances for each in (after, refitted))
    np.testing.assert_allclose(one, two, atol=1e-8)


def test_one_observation_at_a_time():
    networks = points(20)
    others = points(4, 1)
    scores = smooth(networks)
    grown = fit(networks[:1], scores[:1], FixedHyperparameters(THETA), transform="none")
    for at in range(1, 20):
        grown = grown.observe(networks[at : at + 1], scores[at : at + 1])

    whole = fit(networks, scores, FixedHyperparameters(THETA), transform="none")
    same(grown.posterior(others), whole.posterior(others), atol=1e-9)


def test_fantasies_remain_after_an_observation():
    networks = points(10)
    pending = points(2, 1)
    scores = smooth(networks)
    fitted = fit(networks, scores, FixedHyperparameters(THETA)).hallucinate(pending)
    after = fitted.observe(points(1, 2), np.array([-5.0]))
    assert after.best >= fitted.best_fantasy
    assert (
        after.posterior(pending).variances
        < fit(networks, scores, FixedHyperparameters(THETA)).posterior(pending).variances
    ).all()


def test_known_variances_are_in_squared_score_units():
    networks = points(12)
    others = points(5, 1)
    scores = smooth(networks)
    variances = np.full(12, 0.04)
    spread = scores.std()
    known = fit(networks, scores, FixedHyperparameters(THETA), variances)
    louder = THETA.copy()
    louder[-1] = np.log(np.exp(THETA[-1]) + 0.04 / spread**2)
    same(
        known.posterior(others),
        fit(networks, scores, FixedHyperparameters(louder)).posterior(others),
        rtol=1e-9,
    )


def test_known_variances_after_a_nonlinear_transform():
    """In units of g: the worse of two scores of one variance is known better, where g compresses
    bad scores."""
    scale = LogRegret().learn(np.array([0.0, 0.5, 0.8, 0.9]))
    scores = np.array([0.1, 0.85])
    deviation = 0.05
    ends = [scale.standardise(scores + sign * deviation) for sign in (1.0, -1.0)]
    told = check_variances(scores, scale, np.full(2, deviation**2))
    np.testing.assert_allclose(told, (0.5 * (ends[0] - ends[1])) ** 2, rtol=1e-12)
    assert told[0] < 0.5 * told[1]


def test_fixed_noise_in_either_unit():
    networks = points(12)
    scores = 100.0 * smooth(networks)
    relative = fit(networks, scores, noise=FixedNoise(0.01))
    absolute = fit(networks, scores, noise=FixedNoise(0.01 * scores.var(), relative=False))
    assert relative.thetas[0, -1] == pytest.approx(np.log(0.01))
    np.testing.assert_allclose(absolute.thetas, relative.thetas, rtol=1e-6)
    sampled = fit(networks, scores, QUICK, noise=FixedNoise(0.01))
    np.testing.assert_allclose(sampled.thetas[:, -1], np.log(0.01))


def test_almost_no_noise_interpolates():
    networks = points(10)
    scores = smooth(networks)
    posterior = fit(networks, scores, noise=FixedNoise(1e-8)).posterior(networks)
    np.testing.assert_allclose(posterior.mean, scores, atol=1e-5)
    assert (posterior.std < 1e-3).all()


def test_networks_that_differ_at_distance_0():
    """Networks at distance 0 have a singular covariance, which is semi-definite."""
    place = (1.0, 2.0, 0.5)
    networks = [*points(8), *(Point(f"twin-{at}", place) for at in range(4))]
    fitted = fit(networks, smooth(networks), noise=FixedNoise(1e-6))
    assert fitted.repaired == 0.0
    posterior = fitted.posterior(networks[8:])
    np.testing.assert_allclose(
        posterior.means, np.broadcast_to(posterior.means[:, :1], posterior.means.shape), atol=1e-6
    )


@pytest.mark.parametrize("inference", [MarginalLikelihood(), QUICK], ids=["likelihood", "slice"])
@pytest.mark.parametrize("unit", [1e-12, 1e-100, 1e12, 1e100])
def test_huge_and_tiny_scores(inference, unit):
    networks = points(15)
    others = points(4, 1)
    one = fit(networks, smooth(networks), inference).posterior(others)
    other = fit(networks, unit * smooth(networks), inference).posterior(others)
    np.testing.assert_allclose(other.means / unit, one.means, rtol=1e-4)
    np.testing.assert_allclose(other.std / unit, one.std, rtol=1e-4)


@pytest.mark.parametrize("inference", [MarginalLikelihood(), QUICK], ids=["likelihood", "slice"])
@pytest.mark.parametrize("scores", [[0.7], [0.7, 0.7, 0.7], [0.0, 0.0], [-1e-200, 1e-200]])
def test_scores_without_a_spread(inference, scores):
    posterior = fit(points(len(scores)), scores, inference).posterior(points(4, 1), joint=True)
    np.testing.assert_allclose(posterior.mean, scores[0], atol=1e-9)
    assert np.isfinite(posterior.std).all()
    assert np.isfinite(posterior.sample(2, np.random.default_rng(0))).all()


@pytest.mark.parametrize("inference", [MarginalLikelihood(), QUICK], ids=["likelihood", "slice"])
def test_one_network_many_times(inference):
    networks = points(1) * 9
    fitted = fit(networks, np.linspace(0.0, 1.0, 9), inference)
    assert len(fitted.architectures) == 1
    posterior = fitted.posterior(points(1))
    assert posterior.mean == pytest.approx(0.5, abs=0.01)
    assert posterior.best == pytest.approx(0.5)


def test_no_candidates_have_an_empty_posterior():
    posterior = fit(points(5), smooth(points(5))).posterior([], joint=True)
    assert posterior.means.shape == (1, 0)
    assert posterior.covariances.shape == (1, 0, 0)


@pytest.mark.parametrize(
    ("call", "error", "reason"),
    [
        (lambda: fit([], []), NumericalError, "at least one observation, got none"),
        (
            lambda: fit(points(2), [0.0, np.nan]),
            NumericalError,
            r"must be finite, got nan "
            r"\(observation 1\)",
        ),
        (lambda: fit(points(2), [0.0, 1e200]), NumericalError, r"within 1e\+150 of 0, got 1e\+200"),
        (
            lambda: fit(points(2), [0.0, 1.0], variances=np.ones(3)),
            NumericalError,
            r"as many variances, got shape \(3,\)",
        ),
        (
            lambda: fit(points(2), [0.0, 1.0], variances=np.array([0.0, -1.0])),
            NumericalError,
            r"finite and >= 0, got -1.0 \(observation 1\)",
        ),
        (
            lambda: fit(points(2), [0.0, 1.0], transform="standardize"),
            UnknownNameError,
            "standardise",
        ),
        (lambda: FixedNoise(0.0), UsageError, "must be > 0, got 0.0"),
        (lambda: LearnedNoise(1.0, 0.5), UsageError, "0 < lower < upper, got 1.0 and 0.5"),
    ],
)
def test_bad_input(call, error, reason):
    with pytest.raises(error, match=reason):
        call()
