"""The surrogate over architectures: units, hallucination, updates, degenerate observations."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel

from archive import spaces
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.exact import GaussianProcess
from archive.agents.surrogates.gp.slice_sampling import SamplingSchedule, SliceSampling
from archive.agents.surrogates.outcome_transforms import Scale
from archive.errors import NumericalError
from archive.kernels.covariance.base import nasbot_covariance
from archive.kernels.distances.otmann import OTMANN
from archive.kernels.gram import Gram
from tests.support.histories import grown


@pytest.fixture(scope="module")
def history():
    return grown(spaces.get("cnn"), 30)


@pytest.fixture(scope="module")
def gram():
    return Gram(OTMANN())


@pytest.fixture
def surrogate(gram):
    return DistanceGP(gram, nasbot_covariance(), SliceSampling(SamplingSchedule(4, 5, 1)))


def split(history, at):
    networks = [seen.architecture for seen in history.observations]
    scores = np.array([seen.score for seen in history.observations])
    return networks[:at], scores[:at], networks[at:]


class Given(Kernel):
    """A scikit-learn kernel whose points are row numbers of a given Gram matrix."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __call__(self, first, second=None, eval_gradient=False):
        second = first if second is None else second
        return self.matrix[np.ix_(first[:, 0].astype(int), second[:, 0].astype(int))]

    def diag(self, points):
        return np.diag(self.matrix)[points[:, 0].astype(int)]

    def is_stationary(self):
        return False


def test_agrees_with_scikit_learn_on_the_same_gram_matrix(history, gram):
    networks, scores, others = split(history, 20)
    covariance = nasbot_covariance()
    stack = gram.distances([*networks, *others]).stack
    bounds = DistanceGP(gram, covariance).bounds(stack)
    # Strangers at the median distance: at the upper end of the bounds this covariance is positive
    # definite.
    theta = bounds.centre + 0.3 * bounds.widths
    matrix = covariance.value(stack, theta[:-1])
    noise = 0.02
    theirs = GaussianProcessRegressor(Given(matrix), alpha=noise, optimizer=None)
    theirs.fit(np.arange(20.0)[:, None], scores)
    mean, expected = theirs.predict(np.arange(20.0, 30.0)[:, None], return_cov=True)
    ours = GaussianProcess.condition_repaired(matrix[:20, :20], scores, noise)
    assert ours.repaired == 0.0
    our_mean, our_covariance = ours.predict_jointly(matrix[:20, 20:], matrix[20:, 20:])
    np.testing.assert_allclose(our_mean, mean, atol=1e-6)
    np.testing.assert_allclose(our_covariance, expected, atol=1e-6)
    assert ours.log_likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)


def test_eleven_hyperparameters_inside_their_bounds(history, surrogate, gram):
    networks, scores, _ = split(history, 20)
    fitted = surrogate.fit(networks, scores, np.random.default_rng(0))
    bounds = surrogate.bounds(gram.distances(networks).stack)
    assert fitted.thetas.shape == (4, 11)
    assert ((fitted.thetas >= bounds.lower) & (fitted.thetas <= bounds.upper)).all()
    assert (bounds.lower[-1], bounds.upper[-1]) == tuple(np.log([1e-3, 1.0]))


def test_learns_what_depends_on_the_architecture():
    history = grown(spaces.get("mlp"), 60, seed=4)
    networks, scores, others = split(history, 40)
    fitted = DistanceGP(Gram(OTMANN()), nasbot_covariance()).fit(
        networks, scores, np.random.default_rng(1)
    )
    truth = np.array([1.0 / (1.0 + len(network.layers)) for network in others])
    error = np.abs(fitted.posterior(others).mean - truth)
    assert error.mean() < 0.7 * np.abs(scores.mean() - truth).mean()


def test_scale_and_shift_of_scores_pass_through(history, surrogate):
    networks, scores, others = split(history, 20)
    one = surrogate.fit(networks, scores, np.random.default_rng(2)).posterior(others)
    two = surrogate.fit(networks, 1e3 * scores - 7.0, np.random.default_rng(2)).posterior(others)
    np.testing.assert_allclose(two.means, 1e3 * one.means - 7.0, rtol=1e-6)
    np.testing.assert_allclose(two.variances, 1e6 * one.variances, rtol=1e-6)
    np.testing.assert_allclose(two.best, 1e3 * one.best - 7.0, rtol=1e-6)


def test_joint_and_marginal_posteriors_agree(history, surrogate):
    networks, scores, others = split(history, 20)
    fitted = surrogate.fit(networks, scores, np.random.default_rng(3))
    marginal = fitted.posterior(others)
    joint = fitted.posterior(others, joint=True)
    np.testing.assert_allclose(joint.means, marginal.means)
    np.testing.assert_allclose(joint.variances, marginal.variances, atol=1e-12)
    assert joint.sample(5, np.random.default_rng(0)).shape == (5, 10)


def test_hallucination_keeps_the_mean_and_marks_the_place(history, surrogate):
    networks, scores, others = split(history, 20)
    fitted = surrogate.fit(networks, scores, np.random.default_rng(4))
    before = fitted.posterior(others)
    after = fitted.hallucinate(others[:3]).posterior(others)
    np.testing.assert_allclose(after.means, before.means, atol=1e-8)
    assert (after.variances <= before.variances + 1e-12).all()
    assert (after.variances[:, :3] < before.variances[:, :3]).all()
    assert (after.best >= before.best).all()
    assert fitted.hallucinate([]) is fitted


def test_an_update_equals_conditioning_on_everything(history, surrogate):
    networks, scores, others = split(history, 20)
    fitted = surrogate.fit(networks[:19], scores[:19], np.random.default_rng(5))
    updated = fitted.observe(networks[19:], scores[19:])
    stack = surrogate.pairwise.distances(networks).stack
    for theta, process in zip(updated.thetas, updated.processes, strict=True):
        if updated.repaired == 0.0:
            whole = GaussianProcess.condition(
                surrogate.covariance.value(stack, theta[:-1]),
                fitted.scale.standardise(scores),
                float(np.exp(theta[-1])),
            )
            np.testing.assert_allclose(process.weights, whole.weights, rtol=1e-6)

    assert updated.posterior(others).means.shape == (4, len(others))


def test_repeats_narrow_the_belief(history, surrogate):
    networks, scores, _ = split(history, 12)
    once = surrogate.fit(networks, scores, np.random.default_rng(6))
    often = once.observe([networks[0]] * 5, np.full(5, scores[0]))
    assert (often.posterior(networks[:1]).variances < once.posterior(networks[:1]).variances).all()


@pytest.mark.parametrize("scores", [[0.5], [0.3, 0.3, 0.3], [0.1 + 0.2, 0.3, 0.3]])
def test_scores_without_a_spread(history, surrogate, scores):
    networks, _, others = split(history, len(scores))
    posterior = surrogate.fit(networks, np.array(scores), np.random.default_rng(7)).posterior(
        others
    )
    np.testing.assert_allclose(posterior.mean, scores[0], atol=1e-9)
    assert np.isfinite(posterior.std).all()
    assert Scale.of(np.array(scores)).spread == 1.0


def test_more_observations_than_the_sampler_looks_at(gram):
    surrogate = DistanceGP(
        gram, nasbot_covariance(), SliceSampling(SamplingSchedule(4, 5, 1), observations=8)
    )
    networks, scores, others = split(grown(spaces.get("cnn"), 30), 25)
    fitted = surrogate.fit(networks, scores, np.random.default_rng(8))
    assert len(fitted.architectures) == 25
    assert np.isfinite(fitted.posterior(others).means).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers(history, surrogate, bad):
    networks, scores, _ = split(history, 3)
    scores[1] = bad
    with pytest.raises(NumericalError, match=r"must be finite, got (nan|inf) \(observation 1\)"):
        surrogate.fit(networks, scores, np.random.default_rng(9))

    with pytest.raises(NumericalError, match="at least one observation"):
        surrogate.fit([], np.empty(0), np.random.default_rng(9))
