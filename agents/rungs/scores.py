"""Projection of partial training scores to full length, by a regression from each rung to the next.

    rung      a      b      c      d          a, b, c, d: scores of four networks, larger is better
    2       0.80   0.70   0.60   0.75         regression from 2 to 6, of the networks trained to both: a and d
    6       0.90     .      .    0.79         regression from 6 to 18: a
    18      0.93     .      .      .
    scores  0.93   predictions of b, c, d     with a variance each; that of a is 0

In a study with rungs (`archive.queue.successive_halving`), agents learn from every network, on the
scale of the whole training. A network trained to the end has its score. The score of a network that
paused at a rung is predicted from its score there by the regression to the next rung, and so on up
to the end (`archive.agents.rungs.regression`). Surrogates learn the variance of the prediction,
too, and weight the score by it. Promotion does not bias a regression. It biases a mean gain: the
promoted networks are the best of a rung, and the others may gain more.

The projection is never below the score at the rung, because the best score of a training can only
grow with its length. It is never above the best score measured at any later rung, so that the
incumbent's score is a measured one. A rung that no network has reached changes no projection.

The score of a training at an earlier rung is read from its curve, because the steps up to that rung
are the same. Warm-start sources that were trained to the end therefore enter the regressions,
although none of them was promoted. Each task and protocol has separate regressions. A partial score
without a length is NaN: the network counts as known, and no surrogate is fitted to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from archive.agents.rungs.regression import Floats, Prediction, RungRegression
from archive.queue.successive_halving import Rungs
from archive.store.records import Evaluation, Study

WHOLE = math.inf
"""Level of trainings to the end, above all numbers of epochs."""


class ProjectedScore(NamedTuple):
    """A score on the scale of whole trainings, and its variance: 0 where it was measured."""

    score: float
    variance: float


def projected(evaluations: Sequence[Evaluation], objective: str) -> list[ProjectedScore]:
    """Return the scores of evaluations as agents see them, in the order of the evaluations.

    Args:
        evaluations: Evaluations of any lengths, tasks and protocols.
        objective: Name of the objective among the metrics of the curves.
    """
    if not any(evaluation.partial for evaluation in evaluations):
        return [ProjectedScore(evaluation.score, 0.0) for evaluation in evaluations]

    groups: dict[tuple[str, str], list[Evaluation]] = {}
    for evaluation in evaluations:
        groups.setdefault((evaluation.task, evaluation.protocol), []).append(evaluation)

    scales = {place: RungScale(group, objective) for place, group in groups.items()}
    return [
        scales[evaluation.task, evaluation.protocol].score(evaluation) for evaluation in evaluations
    ]


def as_of(
    evaluation: Evaluation, epochs: int, objective: str, study: Study | None = None
) -> Evaluation:
    """Return an evaluation as it was when its training paused after `epochs` epochs.

    Constrained metrics are those at the rung; all other metrics are the present ones.

    Args:
        evaluation: The evaluation as it is now.
        epochs: Number of epochs.
        objective: Name of the objective among the metrics of the curve.
        study: The study of the evaluation; None for one without constraints.
    """
    score = score_after(evaluation, epochs, objective)
    value = math.nan if score is None else score if evaluation.direction == "maximise" else -score
    curve = {name: values[:epochs] for name, values in evaluation.curve.items()}
    metrics = {
        **evaluation.metrics,
        **({} if study is None else _constrained_after(evaluation, epochs, study)),
    }
    return replace(
        evaluation, value=value, epochs=epochs, partial=True, curve=curve, metrics=metrics
    )


def _constrained_after(evaluation: Evaluation, epochs: int, study: Study) -> dict[str, float]:
    """Return the constrained quantities at the rung of so many epochs; empty where none are on
    record.
    """
    rungs = Rungs.of(study.config)
    names = [each.name for each in study.constraints]
    if rungs is None or epochs not in rungs.epochs:
        return {}

    begin = rungs.epochs.index(epochs) * len(names)
    return dict(zip(names, evaluation.rung_constrained[begin : begin + len(names)], strict=False))


def score_after(evaluation: Evaluation, level: float, objective: str) -> float | None:
    """Return the best score within `level` epochs, or of the whole training;

    None where the training was shorter.
    """
    length = evaluation.epochs
    if not evaluation.partial and (level == WHOLE or (length is not None and level >= length)):
        return evaluation.score  # complete: a longer limit would not change it

    if evaluation.partial and level == (length or 0):
        return evaluation.score

    curve = evaluation.curve.get(objective, ())
    if level > len(curve):
        return None

    sign = 1.0 if evaluation.direction == "maximise" else -1.0
    return max(
        (sign * value for value in curve[: int(level)] if math.isfinite(value)), default=None
    )


class RungScale:
    """The lengths of the trainings of one protocol, with the regression from each to the next.

    Args:
        evaluations: The trainings.
        objective: Name of the metric in their curves.
    """

    def __init__(self, evaluations: Sequence[Evaluation], objective: str) -> None:
        levels = [
            *sorted(
                {
                    float(evaluation.epochs)
                    for evaluation in evaluations
                    if evaluation.partial and evaluation.epochs
                }
            ),
            WHOLE,
        ]
        self.regressions: dict[float, RungRegression] = {}
        self.best: dict[float, float] = {}
        self.above = dict(pairwise(levels))
        columns = {level: _column(evaluations, level, objective) for level in levels}
        for level, upper in self.above.items():
            early = columns[level]
            late = columns[upper]
            both = np.isfinite(early) & np.isfinite(late)
            if both.any():
                self.regressions[level] = RungRegression.fit(
                    early[np.isfinite(early)], early[both], late[both]
                )

        best = -math.inf
        for level in reversed(levels):
            measured = columns[level][np.isfinite(columns[level])]
            best = max(best, float(measured.max(initial=-math.inf)))
            self.best[level] = best

    def score(self, evaluation: Evaluation) -> ProjectedScore:
        """Return the score of a training, projected to full length."""
        if not evaluation.partial:
            return ProjectedScore(evaluation.score, 0.0)

        if not evaluation.epochs or not math.isfinite(evaluation.score):
            return ProjectedScore(evaluation.score if evaluation.epochs else math.nan, 0.0)

        now = Prediction(evaluation.score, 0.0)
        level = float(evaluation.epochs)
        while level in self.regressions:
            now = self.regressions[level].predict(*now)
            level = self.above[level]
            now = now._replace(mean=max(evaluation.score, min(now.mean, self.best[level])))

        return ProjectedScore(*now)


def _column(evaluations: Sequence[Evaluation], level: float, objective: str) -> Floats:
    """Return the scores at a level, (n,) float64, NaN where the training was shorter."""
    scores = [score_after(evaluation, level, objective) for evaluation in evaluations]
    return np.array([math.nan if score is None else score for score in scores], np.float64)
