"""Importance near the best results; and that both importances agree with Optuna's on the same data."""

from __future__ import annotations

import warnings

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator

from archive.plots.anova import forest, ped_anova
from archive.plots.anova.measures import CodeMeasure

MEASURES = (CodeMeasure(), CodeMeasure(), CodeMeasure(levels=6), CodeMeasure(options=3))
NAMES = ("slope", "hill", "steps", "kind")


def data(count):
    """Return codes and scores of a function with one important number and one important choice."""
    rng = np.random.default_rng(3)
    codes = np.column_stack(
        [
            rng.random(count), rng.random(count), rng.integers(6, size=count) / 5,
            rng.integers(3, size=count),
        ]
    )  # fmt: skip
    scores = 2 * codes[:, 0] - 4 * np.square(codes[:, 1] - 0.4) + 0.2 * codes[:, 2]
    return codes, scores + 0.8 * (codes[:, 3] == 2)


@pytest.fixture(scope="module")
def peer():
    """The same results as a study of Optuna."""
    codes, scores = data(200)
    distributions = {
        "slope": FloatDistribution(0, 1),
        "hill": FloatDistribution(0, 1),
        "steps": IntDistribution(0, 5),
        "kind": CategoricalDistribution(["a", "b", "c"]),
    }
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize")
    for row, score in zip(codes.tolist(), scores.tolist(), strict=True):
        slope, hill, steps, kind = row
        values = {"slope": slope, "hill": hill, "steps": round(5 * steps), "kind": "abc"[int(kind)]}
        study.add_trial(
            optuna.trial.create_trial(params=values, distributions=distributions, value=score)
        )

    return study


def test_fanova_agrees_with_optuna(peer):
    codes, scores = data(200)
    theirs = FanovaImportanceEvaluator(seed=0).evaluate(peer)
    grown = forest.grow(codes, scores, MEASURES)
    # Theirs are shares of the main effects, which are nearly everything here.
    ours = np.array([grown.main(column).share for column in range(4)])
    expected = np.array([theirs[name] for name in NAMES])
    assert ours / ours.sum() == pytest.approx(expected / expected.sum(), abs=0.06)


def test_ped_anova_agrees_with_optuna(peer):
    codes, scores = data(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = PedAnovaImportanceEvaluator().evaluate(peer)

    ours, _ = ped_anova.importances(codes, scores, MEASURES, np.random.default_rng(0))
    for name, own in zip(NAMES[:3], ours[:3].tolist(), strict=True):
        assert own == pytest.approx(theirs[name], rel=0.03)

    # Theirs smooths options: it takes two sevenths of each for the two others.
    assert ours[3] * (4 / 7) ** 2 == pytest.approx(theirs["kind"], rel=0.1)


def test_columns_that_tell_nothing_have_little():
    rng = np.random.default_rng(0)
    codes = rng.random((300, 3))
    measures = (CodeMeasure(), CodeMeasure(), CodeMeasure())
    ours, repeated = ped_anova.importances(codes, codes[:, 1], measures, rng)
    assert ours[1] > 10 * max(ours[0], ours[2])
    assert repeated.shape == (ped_anova.REPEATS, 3)
    assert np.median(repeated[:, 1]) == pytest.approx(ours[1], rel=0.3)


def test_the_density_of_all_results_against_itself_is_nothing():
    codes = np.random.default_rng(0).random((5, 1))
    ours, _ = ped_anova.importances(codes, codes[:, 0], (CodeMeasure(),), np.random.default_rng(0))
    assert ours == pytest.approx(0.0, abs=1e-9)
