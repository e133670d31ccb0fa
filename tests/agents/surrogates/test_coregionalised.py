"""Transfer from another task, against the Gaussian process of both tasks' evaluations together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from archive.agents.surrogates.gp.coregionalised import (
    CORRELATIONS,
    NOISES,
    OFFSET_STD,
    SCALE_EVALUATIONS,
    CoregionalisedGP,
)
from tests.support.gp_points import Differences, points, smooth
from tests.support.source_models import source_model


def learnt(model, own, scores):
    return CoregionalisedGP(model, "standardise").fit(own, scores, np.random.default_rng(0))


def test_it_is_the_process_of_both_tasks_together():
    own = points(9, seed=1)
    asked = points(6, seed=2)
    model = source_model()
    fitted = learnt(model, own, smooth(own, noise=0.05))
    # The joint covariance of two tasks, rho between them and 1 within, and the origin of the second
    # one.
    rho = fitted.rho
    output_scale = fitted.output_scale
    noise = fitted.process.noise
    source = model.fitted
    everything = [*source.architectures, *own, *asked]
    second = np.arange(len(everything)) >= len(source.architectures)
    plain = source.covariance.value(
        Differences().distances(everything).stack, source.thetas[0][:-1]
    )
    joint = np.where(second[:, None] == second[None], 1.0, rho) * plain + OFFSET_STD**2 * np.outer(
        second, second
    )
    seen = len(source.architectures) + len(own)
    eta = np.where(second[:seen], noise, np.exp(source.thetas[0][-1]))
    values = np.concatenate(
        [
            source.observations.values,
            fitted.scale.standardise(smooth(own, noise=0.05)) / output_scale,
        ]
    )
    weights = np.linalg.solve(joint[:seen, :seen] + np.diag(eta), joint[:seen, seen:])
    mean = output_scale * weights.T @ values
    covariance = output_scale**2 * (joint[seen:, seen:] - joint[seen:, :seen] @ weights)
    spread = fitted.scale.spread
    centre = fitted.scale.centre
    for posterior in (fitted.posterior(asked), fitted.posterior(asked, joint=True)):
        assert posterior.mean == pytest.approx(centre + spread * mean, abs=1e-5)
        assert posterior.variance == pytest.approx(spread**2 * covariance.diagonal(), abs=1e-5)

    assert fitted.posterior(asked, joint=True).covariance == pytest.approx(
        spread**2 * covariance, abs=1e-5
    )


def test_the_cache_of_a_space_changes_nothing():
    own = points(9, seed=1)
    asked = points(30, seed=2)
    scores = smooth(own)
    plain, remembered = (
        learnt(source_model(everywhere=some), own, scores) for some in ((), [*asked, *own])
    )
    for some in (asked, asked[3:9], [asked[4], asked[1]], [*asked[:2], *own[:2]]):
        assert remembered.posterior(some).mean == pytest.approx(
            plain.posterior(some).mean, abs=1e-4
        )
        assert remembered.posterior(some).variance == pytest.approx(
            plain.posterior(some).variance, abs=1e-4
        )


def test_covariances_from_the_cache_are_symmetric():
    # The cache is of single precision, and its products are symmetric on some processors only.
    space = points(100, seed=2)
    fitted = learnt(source_model(everywhere=space), points(9, seed=1), smooth(points(9, seed=1)))
    for some in (space[:60], space[::-1][:60]):
        covariance = fitted.posterior(some, joint=True).covariance
        assert np.abs(covariance - covariance.T).max() <= 1e-12


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_similar_or_reversed_task_improves_predictions(sign):
    own = points(8, seed=1)
    asked = points(200, seed=2)
    fitted = learnt(source_model(sign=sign), own, 50.0 + 3.0 * smooth(own, noise=0.02))
    assert sign * fitted.rho >= 0.8
    assert np.corrcoef(fitted.posterior(asked).mean, smooth(asked, noise=0.0))[0, 1] > 0.9


def test_an_unrelated_task_gets_no_correlation():
    own = points(40, seed=1)
    places = np.array([one.place for one in own])
    fitted = learnt(source_model(), own, np.sin(3.0 * places[:, 2]))
    assert abs(fitted.rho) <= 0.5


def test_the_output_scale_is_the_most_probable_one():
    own = points(12, seed=1)
    model = source_model()
    fitted = learnt(model, own, smooth(own))
    y = fitted.observations.values
    source = model.posterior(own, own)
    noisy = source.covariance(fitted.rho) + fitted.process.noise * np.eye(12)

    def height(output_scale):
        gap = y / output_scale - fitted.rho * source.means
        # One evaluation more that found a output_scale of 1, as the module says.
        return (
            -0.5 * gap @ np.linalg.solve(noisy, gap)
            - 13 * np.log(output_scale)
            - 0.5 / output_scale**2
        )

    for factor in (0.97, 1.03):
        assert height(fitted.output_scale) > height(factor * fitted.output_scale)


def repeated(networks, counts, noise, seed=3):
    """Several evaluations of each network, in a mixed order, and their scores."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.repeat(np.arange(len(networks)), counts))
    clean = smooth(networks, noise=0.0)[rows]
    return [networks[at] for at in rows], clean + noise * rng.standard_normal(len(rows))


def density_of_all(fitted, model, everything, rho, noise, output_scale):
    """The logarithm of the probability of every evaluation by itself, a dense covariance and the
    priors included."""
    source = model.posterior(everything, everything)
    covariance = source.covariance(rho) + noise * np.eye(len(everything))
    values = fitted.observations.values
    law = multivariate_normal(
        output_scale * rho * source.means, output_scale**2 * covariance, allow_singular=True
    )
    prior = (
        np.log(CORRELATIONS[rho])
        + np.log(NOISES[noise])
        - 0.5 * SCALE_EVALUATIONS / output_scale**2
        - SCALE_EVALUATIONS * np.log(output_scale)
    )
    return law.logpdf(values) + prior


@pytest.mark.parametrize(
    ("noise", "counts"), [(0.02, [1, 2, 3, 1, 4, 2, 1]), (0.3, [5] * 7), (0.3, [1] * 7)]
)
def test_the_choice_is_the_most_probable_one_of_all_evaluations(noise, counts):
    """Against the dense likelihood, in which every evaluation is a row."""
    model = source_model()
    everything, scores = repeated(points(7, seed=1), counts, noise)
    fitted = learnt(model, everything, scores)
    # `observations` has the evaluations in their order.
    assert fitted.observations.values == pytest.approx(fitted.scale.standardise(scores))

    def least(rho, eta):
        return minimize_scalar(
            lambda t: -density_of_all(fitted, model, everything, rho, eta, np.exp(t)),
            bounds=(-4, 4),
            method="bounded",
        )

    heights = {(rho, eta): least(rho, eta) for rho in CORRELATIONS for eta in NOISES}
    best = min(heights, key=lambda pair: heights[pair].fun)
    assert (fitted.rho, fitted.process.noise) == best
    assert fitted.output_scale == pytest.approx(np.exp(heights[best].x), rel=1e-3)

    none = np.logaddexp.reduce([-heights[0.0, eta].fun for eta in NOISES]) - np.log(
        CORRELATIONS[0.0]
    )
    some = np.logaddexp.reduce([-found.fun for (rho, _), found in heights.items() if rho != 0.0])
    negative = np.logaddexp.reduce([-found.fun for (rho, _), found in heights.items() if rho < 0.0])
    found = CoregionalisedGP(model, "standardise").log_likelihoods(everything, scores)
    assert found.correlated - found.uncorrelated == pytest.approx(
        some - np.log(1.0 - CORRELATIONS[0.0]) - none, abs=1e-4
    )
    assert found.reversed - found.correlated == pytest.approx(negative - some, abs=1e-4)


def test_the_noise_that_repeats_show_is_found():
    """Eight networks, twenty evaluations of each, whose noise has a tenth of the variance of the
    networks."""
    everything, scores = repeated(points(8, seed=1), [20] * 8, np.sqrt(0.1))
    fitted = learnt(source_model(), everything, scores)
    assert fitted.process.noise == 0.1


def test_fantasies_keep_the_mean_and_shrink_the_variance():
    own = points(9, seed=1)
    asked = points(5, seed=2)
    before = learnt(source_model(), own, smooth(own))
    after = before.hallucinate(asked[:2])
    assert after.posterior(asked).mean == pytest.approx(before.posterior(asked).mean, abs=1e-6)
    assert (after.posterior(asked[:2]).variance < before.posterior(asked[:2]).variance).all()
    assert after.posterior(asked).best[0] == max(
        before.posterior(asked).best[0], before.posterior(asked[:2]).mean.max()
    )
    assert before.hallucinate([]) is before


def test_loo_densities_are_those_of_each_value_given_the_others():
    own = points(10, seed=1)
    fitted = learnt(source_model(), own, smooth(own))
    source = fitted.source_model.posterior(own, own)
    y = fitted.observations.values
    noisy = source.covariance(fitted.rho) + fitted.process.noise * np.eye(10)
    for at in range(10):
        rest = np.delete(np.arange(10), at)
        gaps = y[rest] / fitted.output_scale - fitted.rho * source.means[rest]
        weights = np.linalg.solve(noisy[np.ix_(rest, rest)], noisy[rest, at])
        mean = fitted.output_scale * (fitted.rho * source.means[at] + weights @ gaps)
        variance = fitted.output_scale**2 * (noisy[at, at] - weights @ noisy[rest, at])
        expected = -0.5 * ((y[at] - mean) ** 2 / variance + np.log(2 * np.pi * variance))
        assert fitted.loo_log_densities()[at] == pytest.approx(expected, abs=1e-5)


def test_densities_of_replicates_are_those_of_their_mean():
    """Given every evaluation of the other networks, each a row of a dense covariance."""
    own = points(6, seed=1)
    everything, scores = repeated(own, [1, 3, 2, 4, 1, 2], 0.3)
    fitted = learnt(source_model(), everything, scores)
    rho = fitted.rho
    output_scale = fitted.output_scale
    y = fitted.observations.values
    source = fitted.source_model.posterior(everything, everything)
    noisy = output_scale**2 * (source.covariance(rho) + fitted.process.noise * np.eye(len(y)))
    means = output_scale * rho * source.means
    for row, key in enumerate(fitted.observations.keys):
        one = np.array([network.key == key for network in everything])
        average = np.vstack([one / one.sum(), np.eye(len(y))[~one]])
        law = multivariate_normal(average @ means, average @ noisy @ average.T)
        rest = multivariate_normal(means[~one], noisy[np.ix_(~one, ~one)])
        expected = law.logpdf(average @ y) - rest.logpdf(y[~one])
        assert fitted.loo_log_densities()[row] == pytest.approx(expected, abs=1e-5)


def test_prior_probabilities_add_up():
    assert sum(CORRELATIONS.values()) == pytest.approx(1.0)
