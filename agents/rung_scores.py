"""Projection of partial training scores to full length, by median gains from rung to rung.

    rung      a      b      c      d          a, b, c, d: scores of four networks, larger is better
    2       0.80   0.70   0.60   0.75
    6       0.90     .      .    0.79         median gain from 2 to 6: 0.07
    18      0.93     .      .      .          gain from 6 to 18: 0.03
    scores  0.93   0.80   0.70   0.82

In a study with rungs (`archive.queue.successive_halving`), agents learn from every network, on the scale of the whole
training. A network trained to the end has its score. A network that paused at a rung has its score there plus the
median gain from that rung to the next, over the networks trained to both, and so on up to the end. The projection never
exceeds the best score measured at the next rung, so that the incumbent's score is a measured one. A rung that no
network has reached adds nothing: all scores are then those of the rung below.

The score of a training at an earlier rung is read from its curve: with the protocol's schedule, it takes the same
steps. Sources of a warm start that were trained to the end therefore contribute gains, too. Another task or protocol
has gains of its own. A partial score without a length is NaN: the network counts as known, and no surrogate is fitted
to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from archive.store.records import Evaluation

WHOLE = math.inf
"""Level of trainings to the end, above all numbers of epochs."""


def scores(evaluations: Sequence[Evaluation], objective: str) -> list[float]:
    """Return the scores of evaluations as agents see them, in the order of the evaluations.

    Args:
        evaluations: Evaluations of any lengths, tasks and protocols.
        objective: Name of the objective among the metrics of the curves.
    """
    if not any(seen.partial for seen in evaluations):
        return [seen.score for seen in evaluations]
    groups: dict[tuple[str, str], list[Evaluation]] = {}
    for seen in evaluations:
        groups.setdefault((seen.task, seen.protocol), []).append(seen)
    scales = {place: RungScale(group, objective) for place, group in groups.items()}
    return [scales[seen.task, seen.protocol].score(seen) for seen in evaluations]


def as_of(seen: Evaluation, epochs: int, objective: str) -> Evaluation:
    """Return an evaluation as of the pause of its training after `epochs` epochs."""
    score = score_after(seen, epochs, objective)
    value = math.nan if score is None else score if seen.direction == "maximise" else -score
    curve = {name: values[:epochs] for name, values in seen.curve.items()}
    return replace(seen, value=value, epochs=epochs, partial=True, curve=curve)


def score_after(seen: Evaluation, level: float, objective: str) -> float | None:
    """Return the best score within `level` epochs, or of the whole training; None where the training was shorter."""
    length = seen.epochs or 0
    if not seen.partial and (level == WHOLE or level >= length):
        return seen.score  # complete: a longer limit would not change it
    if seen.partial and level == length:
        return seen.score
    curve = seen.curve.get(objective, ())
    if level > len(curve):
        return None
    sign = 1.0 if seen.direction == "maximise" else -1.0
    return max((sign * value for value in curve[: int(level)] if math.isfinite(value)), default=None)


class RungScale:
    """The lengths of the trainings of one protocol, with the median gain from each to the next.

    Args:
        evaluations: The trainings.
        objective: Name of the metric in their curves.
    """

    def __init__(self, evaluations: Sequence[Evaluation], objective: str) -> None:
        levels = [*sorted({float(seen.epochs) for seen in evaluations if seen.partial and seen.epochs}), WHOLE]
        self.gains: dict[float, float] = {}
        self.best: dict[float, float] = {}
        self.above = dict(pairwise(levels))
        for level, upper in self.above.items():
            lower_scores, upper_scores = (
                [score_after(seen, at, objective) for seen in evaluations] for at in (level, upper)
            )
            gains = [b - a for a, b in zip(lower_scores, upper_scores, strict=True) if a is not None and b is not None]
            if usable := [gain for gain in gains if math.isfinite(gain)]:
                self.gains[level] = median(usable)
            if measured := [score for score in upper_scores if score is not None and math.isfinite(score)]:
                self.best[upper] = max(measured)

    def score(self, seen: Evaluation) -> float:
        """Return the score of a training, projected to full length."""
        if not seen.partial:
            return seen.score
        if not seen.epochs:
            return math.nan
        score, level = seen.score, float(seen.epochs)
        while (upper := self.above.get(level)) is not None:
            if upper in self.best:
                score = max(score, min(score + self.gains.get(level, 0.0), self.best[upper]))
            level = upper
        return score
