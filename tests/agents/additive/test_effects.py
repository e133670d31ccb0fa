"""Effects of decisions: scores of single replacements add up, and several share what they miss."""

from __future__ import annotations

import numpy as np
import pytest

from archive.agents.additive.effects import kernel, learn
from archive.agents.additive.vectors import choose_parent, replacements_of

PARENT = (0, 0, 0)
SINGLES = np.array([PARENT, (1, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 1)])
SCORES = np.array([-2.0, -2.3, -1.9, -2.05, -2.6])


def test_scores_of_replacements_add_up():
    effects = learn(SINGLES, SCORES, PARENT)
    several = np.array([(1, 1, 0), (2, 1, 1), (2, 0, 1), PARENT])
    expected = [-2.0 - 0.3 - 0.05, -2.0 + 0.1 - 0.05 - 0.6, -2.0 + 0.1 - 0.6, -2.0]
    np.testing.assert_allclose(effects.predict(several), expected, atol=1e-4)
    np.testing.assert_allclose(effects.variance(several), 0.0, atol=1e-4)


def test_a_choice_without_a_score_changes_as_much_as_the_others():
    effects = learn(SINGLES, SCORES, PARENT)
    unseen = np.array([(0, 3, 0)])
    assert -2.6 < effects.predict(unseen)[0] < -2.0
    assert effects.variance(unseen)[0] > 0.01
    known = effects.hallucinate(unseen)
    assert known.variance(unseen)[0] < 1e-4
    assert known.predict(unseen) == effects.predict(unseen)


def test_the_sum_of_single_scores_is_kept_beside_an_interaction():
    vectors = np.array([*SINGLES, (1, 1, 0)])
    effects = learn(vectors, np.array([*SCORES, -1.0]), PARENT)
    # The sum predicts -2.35 for the pair: least squares without weights would share 1.35 evenly.
    assert effects.predict(np.array([(1, 1, 0)]))[0] < -1.9
    np.testing.assert_allclose(effects.predict(SINGLES), SCORES, atol=0.13)


def test_effects_of_random_networks():
    rng = np.random.default_rng(0)
    vectors = rng.integers(0, 3, (60, 5))
    table = rng.normal(size=(5, 3))
    scores = table[np.arange(5), vectors].sum(axis=1) + 0.05 * rng.normal(size=60)
    effects = learn(vectors[:40], scores[:40], vectors[0])
    errors = effects.predict(vectors[40:]) - scores[40:]
    assert np.sqrt(np.mean(errors**2)) < 0.15


def test_covariance_agrees_with_the_variance():
    effects = learn(SINGLES, SCORES, PARENT)
    several = np.array([(1, 2, 0), (0, 2, 2), (3, 3, 3)])
    covariance = effects.covariance(several)
    np.testing.assert_allclose(np.diagonal(covariance), effects.variance(several), atol=1e-9)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


def test_the_scale_is_the_variance_of_one_part_of_an_effect():
    rng = np.random.default_rng(0)
    vectors = np.concatenate([np.zeros((1, 6), int), rng.integers(0, 6, (60, 6))])
    covariance = kernel(vectors, vectors, np.zeros(6, int))
    scales = []
    for _ in range(60):
        scores = rng.multivariate_normal(np.zeros(61), 0.25 * covariance, method="svd")
        scales.append(learn(vectors, scores, [0] * 6).scale)

    assert np.mean(scales) == pytest.approx(0.25, rel=0.3)


def test_effects_of_a_source():
    source = learn(SINGLES, SCORES, PARENT)
    vectors = np.array([PARENT, (1, 0, 0)])
    effects = learn(vectors, np.array([10.0, 9.4]), PARENT, prior=source)
    # Twice the source's effect with a prior slope of 1 and one result: 1.5.
    assert effects.prior.slope == pytest.approx(1.5, rel=1e-3)
    assert effects.predict(np.array([(0, 0, 1)]))[0] < 9.5
    np.testing.assert_allclose(effects.predict(vectors), [10.0, 9.4], atol=1e-3)


def test_the_parent_has_the_most_replacements():
    assert (replacements_of(SINGLES)[0] == [0, 1, 1, 1, 1]).all()
    assert choose_parent(SINGLES, SCORES) == 0
    # Networks without neighbours: the best.
    assert (
        choose_parent(np.array([(0, 0, 0), (1, 1, 1), (2, 2, 2)]), np.array([0.1, 0.9, 0.3])) == 1
    )


def test_an_outlier_does_not_count_as_much():
    scores = SCORES.copy()
    scores[1] = -1e9
    effects = learn(SINGLES, scores, PARENT)
    assert effects.predict(np.array([(1, 0, 0)]))[0] > -100
