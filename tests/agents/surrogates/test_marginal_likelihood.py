"""Maximum a posteriori hyperparameters: maxima, agreement with scikit-learn's, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern, WhiteKernel

from archive.agents.surrogates.gp.likelihood import Bounds, FixedHyperparameters, Likelihood
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.agents.surrogates.gp.replicates import Replicates
from archive.errors import NumericalError, UsageError
from archive.kernels.covariance.base import BoundCovariance, Covariance, Exponential, exponential
from tests.support.gp_points import Differences, points, smooth


def likelihood_of(count, covariance=None, noise=(1e-3, 1.0), coordinates=3, scores=None):
    networks = points(count, coordinates=coordinates)
    scores = smooth(networks) if scores is None else scores
    replicates = Replicates.of(
        [point.key for point in networks], (scores - scores.mean()) / (scores.std() or 1.0)
    )
    covariance = covariance or exponential(coordinates)
    return Likelihood(covariance, Differences().distances(networks).stack, replicates, noise)


class GivenDistances(Kernel):
    """Our covariance as a kernel of scikit-learn, whose points are row numbers."""

    def __init__(self, covariance, stack, log_parameters):
        self.covariance = covariance
        self.stack = stack
        self.log_parameters = log_parameters

    @property
    def theta(self):
        return self.log_parameters

    @theta.setter
    def theta(self, value):
        self.log_parameters = value

    @property
    def bounds(self):
        return self.covariance.bounds(self.stack)

    def clone_with_theta(self, theta):
        return GivenDistances(self.covariance, self.stack, theta)

    def __call__(self, first, second=None, eval_gradient=False):
        second = first if second is None else second
        at = np.ix_(range(len(self.stack)), first[:, 0].astype(int), second[:, 0].astype(int))
        value, gradient = self.covariance.value_and_gradient(self.stack[at], self.log_parameters)
        return (value, gradient.transpose(1, 2, 0)) if eval_gradient else value

    def diag(self, first):
        return np.full(len(first), self.covariance.variance(self.log_parameters))

    def is_stationary(self):
        return False


def test_likelihood_and_gradient_agree_with_scikit_learn():
    likelihood = likelihood_of(40)
    theta = np.array([0.3, -0.5, -1.5, -2.0, -3.0])
    kernel = GivenDistances(likelihood.covariance, likelihood.stack, theta[:-1]) + WhiteKernel(
        np.exp(theta[-1])
    )
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
    theirs.fit(np.arange(40.0)[:, None], likelihood.replicates.values)
    value, gradient = theirs.log_marginal_likelihood(theta, eval_gradient=True)
    ours, slopes = likelihood.value_and_gradient(theta)
    assert ours == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(slopes, gradient, atol=1e-6)


def test_maximum_agrees_with_scikit_learn():
    networks = points(60, coordinates=1)
    likelihood = likelihood_of(60, coordinates=1)
    bounds = likelihood.bounds
    kernel = ConstantKernel(1.0, np.exp([bounds.lower[0], bounds.upper[0]])) * Matern(
        1.0, np.exp([-bounds.upper[1], -bounds.lower[1]]), nu=0.5
    ) + WhiteKernel(0.1, (1e-3, 1.0))
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, n_restarts_optimizer=4, random_state=0)
    theirs.fit(np.array([point.place for point in networks]), likelihood.replicates.values)
    (theta,) = MarginalLikelihood(prior=None).thetas(likelihood, np.random.default_rng(0))
    assert likelihood.value(theta) == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-2)
    expected = theirs.kernel_.theta * [1, -1, 1]
    np.testing.assert_allclose(theta, expected, atol=0.1)


@pytest.mark.parametrize("prior", [None, 0.5])
def test_nothing_nearby_is_better(prior):
    likelihood = likelihood_of(50)
    method = MarginalLikelihood(prior=prior)
    (theta,) = method.thetas(likelihood, np.random.default_rng(1))
    bounds = likelihood.bounds

    def density(x):
        return likelihood.value(x) - method._penalty(bounds, x)[0]

    rng = np.random.default_rng(2)
    for scale in (0.01, 0.1, 0.5, 2.0):
        for _ in range(20):
            near = np.clip(theta + scale * rng.standard_normal(5), bounds.lower, bounds.upper)
            assert density(near) <= density(theta) + 1e-2

    np.testing.assert_allclose(
        method._penalty(bounds, theta)[1],
        approx_fprime(theta, lambda x: method._penalty(bounds, x)[0], 1e-7),
        atol=1e-5,
    )


def test_relevance_is_found():
    (theta,) = MarginalLikelihood().thetas(likelihood_of(150), np.random.default_rng(3))
    _, strong, weak, none, noise = theta
    assert strong > weak > none
    # 0.1 of noise on scores with a standard deviation of about 0.7.
    # A Laplacian covariance takes some of it for signal.
    assert 0.003 < np.exp(noise) < 0.04


def test_starts_on_a_subset_find_the_optimum_of_all():
    likelihood = likelihood_of(80)
    (quick,) = MarginalLikelihood(subset_size=30).thetas(likelihood, np.random.default_rng(4))
    (full,) = MarginalLikelihood().thetas(likelihood, np.random.default_rng(4))
    assert likelihood.value(quick) == pytest.approx(likelihood.value(full), abs=0.05)


def test_a_start_in_the_wrong_valley_is_left():
    """Two maxima, the lower one at the centre of the bounds: more starts find the higher one."""

    class Valleys(Covariance):
        names = ("alpha",)

        def bounds(self, stack):
            return np.array([[-4.0, 4.0]])

        def variance(self, theta):
            return 0.0

        def bind(self, stack):
            return BoundValleys()

    class BoundValleys(BoundCovariance):
        # log p of one value z = 1 at variance v is greatest at v = 1; v dips to 1 at -3 and only to
        # 1.5 at 0.
        def value(self, theta):
            return self.value_and_layers(theta)[0]

        def value_and_layers(self, theta):
            x = float(theta[0])
            variance = 2.5 - np.exp(-(x**2)) - 1.5 * np.exp(-((x + 3.0) ** 2))
            slope = 2.0 * x * np.exp(-(x**2)) + 3.0 * (x + 3.0) * np.exp(-((x + 3.0) ** 2))
            return np.full((1, 1), variance), iter([np.full((1, 1), slope)])

    likelihood = Likelihood(
        Valleys(), np.zeros((1, 1, 1)), Replicates.of("a", np.ones(1)), (1e-9, 1e-9)
    )
    one, many = (
        MarginalLikelihood(starts, prior=None).thetas(likelihood, np.random.default_rng(0))[0, 0]
        for starts in (1, 12)
    )
    assert one == pytest.approx(0.0, abs=0.1)
    assert many == pytest.approx(-3.0, abs=0.1)


def test_fixed_noise_stays():
    (theta,) = MarginalLikelihood().thetas(
        likelihood_of(20, noise=(0.05, 0.05)), np.random.default_rng(5)
    )
    assert theta[-1] == pytest.approx(np.log(0.05))
    assert len(theta) == 5


@pytest.mark.parametrize("scores", [np.array([0.4]), np.zeros(7), np.array([0.0, 0.0, 1e-300])])
def test_scores_that_say_nothing_leave_the_prior(scores):
    likelihood = likelihood_of(len(scores), scores=scores)
    (theta,) = MarginalLikelihood().thetas(likelihood, np.random.default_rng(6))
    assert np.isfinite(theta).all()
    assert ((theta >= likelihood.bounds.lower) & (theta <= likelihood.bounds.upper)).all()


def test_one_seed_gives_one_answer():
    likelihood = likelihood_of(30)
    one, two = (
        MarginalLikelihood(subset_size=10, observations=20).thetas(
            likelihood, np.random.default_rng(7)
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


def test_indefinite_distances_are_climbed_where_they_can_be():
    # The shortest paths of a star: exp(-beta d^2) is no covariance for small beta.
    stack = np.where(np.eye(25, dtype=bool), 0.0, 2.0)
    stack[0, 1:] = stack[1:, 0] = 1.0
    replicates = Replicates.of(
        [str(at) for at in range(25)], np.random.default_rng(8).standard_normal(25)
    )
    likelihood = Likelihood(Exponential([0], 2.0), stack[None], replicates, (1e-6, 1e-6))
    assert likelihood.value(np.array([0.0, np.log(0.05)])) == -np.inf
    (theta,) = MarginalLikelihood(prior=None).thetas(likelihood, np.random.default_rng(8))
    assert np.isfinite(likelihood.value(theta[:-1]))


def test_distances_that_are_no_numbers():
    stack = np.full((1, 3, 3), 1.0)
    stack[0, 0, 1] = stack[0, 1, 0] = np.nan
    likelihood = Likelihood(exponential(1), stack, Replicates.of("abc", np.ones(3)), (1e-3, 1.0))
    with pytest.raises(NumericalError, match="no finite likelihood"):
        MarginalLikelihood().thetas(likelihood, np.random.default_rng(9))


def test_given_hyperparameters():
    likelihood = likelihood_of(5)
    theta = np.arange(5.0)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(FixedHyperparameters(theta).thetas(likelihood, rng), theta[None])
    assert FixedHyperparameters(np.zeros((3, 5))).thetas(likelihood, rng).shape == (3, 5)
    with pytest.raises(UsageError, match=r"theta must hold 5 parameters, got shape \(2, 4\)"):
        FixedHyperparameters(np.zeros((2, 4))).thetas(likelihood, rng)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"starts": 0}, "starts must be >= 1, got 0"),
        ({"subset_size": 0}, "subset_size must be >= 1"),
        ({"observations": -1}, "observations must be >= 1, got -1"),
        ({"prior": 0.0}, "prior must be > 0 or None, got 0.0"),
    ],
)
def test_bad_settings(settings, reason):
    with pytest.raises(UsageError, match=reason):
        MarginalLikelihood(**settings)


def test_the_prior_is_centred_in_the_box():
    bounds = Bounds(np.array([-2.0, 0.0]), np.array([2.0, 8.0]))
    assert MarginalLikelihood(prior=0.5)._penalty(bounds, np.array([0.0, 4.0]))[0] == 0.0
    # On a wall, two standard deviations from the centre.
    assert MarginalLikelihood(prior=0.5)._penalty(bounds, np.array([2.0, 4.0]))[0] == pytest.approx(
        2.0
    )


def test_the_prior_of_the_noise_is_that_of_the_others_unless_it_has_its_own():
    bounds = Bounds(np.array([-2.0, 0.0]), np.array([2.0, 8.0]))
    wide = MarginalLikelihood(prior=0.5, noise_prior=1.0)
    # Two standard deviations of 0.5 half widths, or one of a half width.
    assert wide._penalty(bounds, np.array([0.0, 8.0]))[0] == pytest.approx(0.5)
    assert wide._penalty(bounds, np.array([0.0, 8.0]), learns_noise=False)[0] == pytest.approx(2.0)
    with pytest.raises(UsageError, match="noise_prior must be > 0"):
        MarginalLikelihood(noise_prior=0.0)
