"""Projection of partial training scores to full length, by a regression from each rung to the next.

In a study with rungs (`archive.queue.successive_halving`), agents learn from every network, on the
scale of the whole training:

    rung      a      b      c      d          scores of four networks, larger is better
    2       0.80   0.70   0.60   0.75         regression from 2 to 6, of the networks trained to
                                              both: a and d
    6       0.90     .      .    0.79         regression from 6 to 18: a
    18      0.93     .      .      .
    scores  0.93   predictions of b, c, d     with a variance each; the variance of a is 0

A network trained to the end has its score. The score of a network that paused at a rung is
predicted from its score there by the regression to the next rung, and so on up to the end.
Surrogates learn the variance of the prediction, too, and weight the score by it. Promotion does not
bias a regression. It biases a mean gain: the promoted networks are the best of a rung, and the
others may gain more.

The projection is never below the score at the rung, because the best score of a training can only
grow with its length. It is never above the best score measured at any later rung, so that the
incumbent's score is a measured one. A rung that no network has reached changes no projection.

The score of a training at an earlier rung is read from its curve, because the steps up to that rung
are the same. Warm-start sources that were trained to the end therefore enter the regressions,
although none of them was promoted. Each task and protocol has separate regressions. A partial score
without a length is NaN: the network counts as known, and no surrogate is fitted to it.

The regression of scores at one rung on scores at the rung below:

| symbol | meaning                                                                       | shape  |
|--------|-------------------------------------------------------------------------------|--------|
| x      | scores at the lower rung: of all n networks there, and of the p promoted ones | (n,)   |
| y      | scores of these p at the upper rung; pairs with an outlier are left out       | (p,)   |
| c, s   | mean and standard deviation of the n scores x without outliers, the unit of z | scalar |
| z, w   | (x - c) / s of a network; (y - c) / s                                         | scalar |
| a, b   | intercept and slope                                                           | scalar |
| sigma2 | variance of the noise                                                         | scalar |
| t      | how far z lies below the lowest z of the p networks, at least 0               | scalar |

    w = a + b z + noise,    noise ~ N(0, sigma2),    b >= 0
    a ~ N(0, sigma2 / INTERCEPT),  b ~ N(SLOPE, sigma2 / PRECISION)
    sigma2 ~ inverse gamma(SHAPE, SHAPE SPREAD)

Only the best networks of a rung are promoted. The choice depends on x alone, and the regression is
conditioned on x, so that a and b are not biased. The mean gain y - x of the promoted networks is
biased: they were lucky at the lower rung, or have less left to gain. (Rubin, Inference and missing
data, 1976: missingness that depends on observed values is ignorable. With a chain of rungs the
pattern is monotone, and the likelihood factors into one regression a step: Little and Rubin,
Statistical analysis with missing data, 2002, section 7.4.)

The posterior is the conjugate one (normal inverse gamma), its prediction a Student t of which mean
and variance are returned. Networks that are never promoted are below the ones that the line is
fitted to, where its slope may differ: the standard deviation TURN t s is added there. The constants
were chosen on NAS-Bench-101 and NAS-Bench-201 (`docs/benchmarks-log.md`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.observations import fences, usual
from archive.objectives import sign
from archive.rungs import Rungs
from archive.store.records import Evaluation, Study

Floats = NDArray[np.float64]

WHOLE = math.inf
"""Level of trainings to the end, above all numbers of epochs."""

SLOPE = 0.5
PRECISION = 1.0
"""Prior mean of the slope, and pseudo-pairs of its precision: worse networks catch up."""

INTERCEPT = 0.01
"""Pseudo-pairs of the precision of the intercept: one pair decides it."""

SHAPE = 1.5
SPREAD = 0.1
"""Shape of the prior of the noise variance, and its scale in squared standard deviations of the
lower rung."""

TURN = 0.3
"""Standard deviation of the change of the slope below the promoted networks."""


class ProjectedScore(NamedTuple):
    """A score on the scale of whole trainings, and its variance: 0 where it was measured."""

    score: float
    variance: float


def project_scores(evaluations: Sequence[Evaluation], objective: str) -> list[ProjectedScore]:
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

    scales = {group: RungScale(members, objective) for group, members in groups.items()}
    projected = []
    for evaluation in evaluations:
        scale = scales[evaluation.task, evaluation.protocol]
        projected.append(scale.score(evaluation))

    return projected


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
    if score is None:
        score = math.nan

    value = sign(evaluation.direction) * score
    curve = {name: values[:epochs] for name, values in evaluation.curve.items()}
    metrics = dict(evaluation.metrics)
    if study is not None:
        metrics |= _read_metrics(evaluation, epochs, study)

    return replace(
        evaluation, value=value, epochs=epochs, partial=True, curve=curve, metrics=metrics
    )


def _read_metrics(evaluation: Evaluation, epochs: int, study: Study) -> dict[str, float]:
    """Return the constrained quantities at the rung of so many epochs, as far as recorded."""
    rungs = Rungs.of(study.config)
    names = [constraint.name for constraint in study.constraints]
    if rungs is None or epochs not in rungs.epochs:
        return {}

    begin = rungs.epochs.index(epochs) * len(names)
    return dict(zip(names, evaluation.rung_constrained[begin : begin + len(names)], strict=False))


def score_after(evaluation: Evaluation, level: float, objective: str) -> float | None:
    """Return the best score within `level` epochs, or of the whole training.

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

    better = sign(evaluation.direction)
    finite = filter(math.isfinite, curve[: int(level)])
    return max((better * value for value in finite), default=None)


class RungScale:
    """The lengths of the trainings of one protocol, with the regression from each to the next.

    Args:
        evaluations: The trainings.
        objective: Name of the metric in their curves.
    """

    def __init__(self, evaluations: Sequence[Evaluation], objective: str) -> None:
        lengths: set[float] = set()
        for evaluation in evaluations:
            if evaluation.partial and evaluation.epochs:
                lengths.add(float(evaluation.epochs))

        levels = [*sorted(lengths), WHOLE]
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
    column = np.full(len(evaluations), math.nan)
    for row, evaluation in enumerate(evaluations):
        score = score_after(evaluation, level, objective)
        if score is not None:
            column[row] = score

    return column


class Prediction(NamedTuple):
    """Mean and variance of a score at the upper rung."""

    mean: float
    variance: float


@dataclass(frozen=True)
class RungRegression:
    """A fitted regression from one rung to the next; immutable.

    Attributes:
        centre: c.
        spread: s, positive.
        slope: b, at least 0.
        intercept: a.
        covariance: (2, 2) float64: posterior covariance of (a, b) in units of sigma2.
        noise: E[sigma2].
        lowest: The lowest z of the promoted networks.
    """

    centre: float
    spread: float
    intercept: float
    slope: float
    covariance: Floats
    noise: float
    lowest: float

    @classmethod
    def fit(cls, lower: Floats, early: Floats, late: Floats) -> RungRegression:
        """Fit the regression.

        Args:
            lower: (n,) float64: x of all networks at the lower rung, finite, at least one.
            early: (p,) float64: x of the networks with a result at both rungs, finite, at least
                one.
            late: (p,) float64: y of these, finite.
        """
        # A failed training must not change the unit of the prior or the slope of the line.
        pairs = (early >= fences(lower)) & usual(late)
        if pairs.any():
            early = early[pairs]
            late = late[pairs]

        lower = lower[usual(lower)]
        centre = float(lower.mean())
        spread = _spread(lower, late)
        z = (early - centre) / spread
        w = (late - centre) / spread
        free = np.column_stack([np.ones_like(z), z])
        fitted = _posterior(free, w, np.array([0.0, SLOPE]), np.array([INTERCEPT, PRECISION]))
        if fitted.mean[1] < 0.0:
            # Under the constraint b >= 0 the density is greatest at b = 0.
            flat = _posterior(free[:, :1], w, np.zeros(1), np.array([INTERCEPT]))
            covariance = np.diag([flat.covariance[0, 0], 0.0])
            fitted = _Posterior(np.array([flat.mean[0], 0.0]), covariance, flat.noise)

        intercept = float(fitted.mean[0])
        slope = float(fitted.mean[1])
        return cls(
            centre, spread, intercept, slope, fitted.covariance, fitted.noise, float(z.min())
        )

    def predict(self, score: float, variance: float = 0.0) -> Prediction:
        """Predict the score of a network at the upper rung.

        Args:
            score: Its score at the lower rung.
            variance: Variance of this score, where it is a prediction itself.
        """
        z = (score - self.centre) / self.spread
        inputs = np.array([1.0, z])
        of_line = self.noise * (1.0 + float(inputs @ self.covariance @ inputs))
        unscaled = of_line + (TURN * max(self.lowest - z, 0.0)) ** 2
        mean = self.centre + self.spread * (self.intercept + self.slope * z)
        return Prediction(mean, self.spread**2 * unscaled + self.slope**2 * variance)


class _Posterior(NamedTuple):
    mean: Floats
    covariance: Floats
    noise: float


def _posterior(inputs: Floats, values: Floats, mean: Floats, precision: Floats) -> _Posterior:
    """Return the conjugate posterior of the coefficients, and the variance of the Student t."""
    matrix = np.diag(precision) + inputs.T @ inputs
    posterior = np.linalg.solve(matrix, precision * mean + inputs.T @ values)
    gaps = values - inputs @ posterior
    moved = posterior - mean
    scale = SHAPE * SPREAD + 0.5 * (float(gaps @ gaps) + float(precision @ moved**2))
    # Of a Student t with 2 a degrees of freedom and scale b / a the variance is b / (a - 1).
    covariance: Floats = np.linalg.inv(matrix).astype(np.float64)
    return _Posterior(
        posterior.astype(np.float64), covariance, scale / (SHAPE + 0.5 * len(values) - 1.0)
    )


def _spread(lower: Floats, late: Floats) -> float:
    """Return the standard deviation of the scores at the lower rung.

    Of equal scores, the deviation at the upper rung, or the gain, or 1.
    """
    for spread, scores in (
        (lower.std(), lower),
        (late.std(), late),
        (abs(late.mean() - lower.mean()), late),
    ):
        if spread > 1e-9 * max(1e-300, float(np.abs(scores).max())):
            return float(spread)

    return 1.0
