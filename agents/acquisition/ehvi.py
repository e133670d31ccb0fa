"""Expected hypervolume improvement (EHVI) in closed form, for independent and for known objectives.

| symbol   | meaning                                                                        | shape  |
|----------|--------------------------------------------------------------------------------|--------|
| M        | objectives, all maximised                                                      | scalar |
| m        | candidates                                                                     | scalar |
| Y        | scores of the points                                                           | (n, M) |
| r        | reference point                                                                | (M,)   |
| l, u     | lower and upper corners of the boxes that partition the free region; u may be  | (B, M) |
|          | infinite                                                                       |        |
| y_j      | score of a candidate for objective j, random or known                          | (m,)   |
| mu, s, w | means and standard deviations of y_j by member of a mixture, and their weights | (S, m) |
| EI_j(t)  | E[max(0, y_j - t)]: sum_i w_i s_i h((mu_i - t) / s_i) over the members i; for  | (m,)   |
|          | a known y_j, max(0, y_j - t)                                                   |        |
| h        | h(z) = phi(z) + z Phi(z)                                                       | any    |

The boxes [l, u) partition the points above r that no row of Y dominates. The last objective cuts
the region into slabs between the levels of the points; within a slab, only the points at or above
it dominate, and the rest is the problem with one objective less (hypervolume by slicing objectives:
While et al., 2006). Two objectives have k + 1 boxes for k points on the front, and each further one
multiplies them by up to k.

The region that y newly dominates intersects a box in a box, from l to min(u, y):

    HVI(y)  = sum_b prod_j (min(u_bj, y_j) - l_bj)_+
    EHVI    = sum_b prod_j (EI_j(l_bj) - EI_j(u_bj))                        EI_j(inf) = 0

since the y_j are independent, and (min(u, y) - l)_+ = (y - l)_+ - (y - u)_+. With one learnt
objective f and known costs c this is a sum over the levels t_i of the front, sum_i v_i(c)
EI_f(t_i), in which v_i(c) >= 0 is the volume of costs that a candidate of cost c newly reaches at
level t_i. For two learnt objectives the formula is known from Emmerich, Deutz and Klinkenberg
(2011), for any number from Couckuyt, Deschrijver and Dhaene (2014) and from Daulton, Balandat and
Bakshy (2020, eq. 3, with psi for EI).

Logarithms are summed, since far from the front all terms underflow (Ament et al., 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import numpy as np
from scipy.special import logsumexp

from archive.agents.acquisition.functions import log_h
from archive.agents.surrogates.base import LEAST_STD, Array, Posterior
from archive.objectives.pareto import nondominated

BLOCK = 2_000_000
"""Most entries of an array (candidates, boxes): 16 MB."""


def free_boxes(points: Array, reference: Array) -> tuple[Array, Array]:
    """Return l and u.

    Args:
        points: (n, M) float64: Y; dominated rows change nothing, rows that do not exceed the
            reference point neither.
        reference: (M,) float64: r.
    """
    above = points[(points > reference).all(axis=1)]
    boxes = _boxes(above[nondominated(above)], reference.tolist())
    corners = np.array(boxes, np.float64).reshape(len(boxes), 2, len(reference))
    return corners[:, 0], corners[:, 1]


def _boxes(points: Array, reference: list[float]) -> list[tuple[list[float], list[float]]]:
    if len(reference) == 1:
        return [([float(points.max(initial=reference[0]))], [np.inf])]

    levels = [np.inf, *np.unique(points[:, -1])[::-1].tolist(), reference[-1]]
    boxes: list[tuple[list[float], list[float]]] = []
    # Adjacent slabs with the same points on their front are one: a dominated point adds a level,
    # and no box.
    upper = levels[0]
    open_front = np.empty((0, len(reference) - 1))
    for level, lower in pairwise(levels):
        front = _maximal(points[points[:, -1] >= level, :-1])
        if level != np.inf and not np.array_equal(front, open_front):
            boxes += _slab(open_front, reference[:-1], level, upper)
            upper = level
            open_front = front

        if lower == reference[-1]:
            boxes += _slab(open_front, reference[:-1], lower, upper)
            break

    return boxes


def _slab(
    front: Array, reference: list[float], lower: float, upper: float
) -> list[tuple[list[float], list[float]]]:
    """Return the boxes above a front of the other objectives, between two levels of the last."""
    return [([*low, lower], [*high, upper]) for low, high in _boxes(front, reference)]


def _maximal(points: Array) -> Array:
    """Return the distinct rows that no other dominates, in lexicographic order."""
    distinct = np.unique(points, axis=0)
    if distinct.shape[1] == 1:
        return distinct[-1:]

    return distinct[nondominated(distinct)]


@final
@dataclass(frozen=True, eq=False)
class LogEhvi:
    """The logarithm of EHVI over a front.

    Attributes:
        lower: (B, M) float64: l.
        upper: (B, M) float64: u.
    """

    lower: Array
    upper: Array

    def __call__(self, scores: Sequence[Posterior | Array]) -> Array:
        """Return log EHVI of m candidates: (m,) float64, -inf without improvement, never NaN.

        Args:
            scores: For each of the M objectives, the posterior in score units
                (`Posterior.in_scores`) if it is learnt, or (m,) float64 if it is known; a candidate
                of which a known score is NaN has -inf.
        """
        count = max(map(_count, scores))
        size = max(BLOCK // max(len(self.lower), 1), 1)
        blocks = []
        for begin in range(0, count, size):
            blocks.append(self._block([_part(score, begin, begin + size) for score in scores]))

        return np.concatenate(blocks) if blocks else np.empty(0)

    def _block(self, scores: Sequence[Posterior | Array]) -> Array:
        total: Array | float = 0.0
        for score, lower, upper in zip(scores, self.lower.T, self.upper.T, strict=True):
            with np.errstate(divide="ignore"):
                if isinstance(score, Posterior):
                    gain = _log_gain(score, lower, upper)
                else:
                    gain = np.log(_gain(score, lower, upper))

            total = total + gain

        with np.errstate(divide="ignore"):
            result: Array = logsumexp(total, axis=1)

        return result


def _count(score: Posterior | Array) -> int:
    return len(score.mean) if isinstance(score, Posterior) else len(score)


def _part(score: Posterior | Array, begin: int, end: int) -> Posterior | Array:
    if not isinstance(score, Posterior):
        return score[begin:end]

    means = score.means[:, begin:end]
    return Posterior(means, score.variances[:, begin:end], score.best, None, score.weights)


def _gain(scores: Array, lower: Array, upper: Array) -> Array:
    """Return (min(u, y) - l)_+ for each candidate and box: (m, B) float64, 0 for NaN."""
    gained = np.minimum(upper, np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf)[:, None]) - lower
    positive: Array = np.maximum(gained, 0.0)
    return positive


def _log_gain(posterior: Posterior, lower: Array, upper: Array) -> Array:
    """Return log(EI(l) - EI(u)) for each candidate and box: (m, B) float64."""
    levels, places = np.unique(np.concatenate([lower, upper]), return_inverse=True)
    table = _log_improvement(posterior, levels)
    return _log_difference(table[:, places[: len(lower)]], table[:, places[len(lower) :]])


def _log_improvement(posterior: Posterior, levels: Array) -> Array:
    """Return log EI at each level: (m, L) float64, -inf at infinity."""
    std = np.maximum(np.sqrt(posterior.variances), LEAST_STD)
    table = np.full((posterior.means.shape[1], len(levels)), -np.inf)
    for column, level in enumerate(levels):
        if level < np.inf:
            with np.errstate(over="ignore", divide="ignore"):
                logs = log_h(np.maximum((posterior.means - level) / std, -1e150)) + np.log(std)
                table[:, column] = posterior.log_average(logs)

    return table


def _log_difference(larger: Array, smaller: Array) -> Array:
    """Return log(exp(larger) - exp(smaller)) of any shape; -inf where both are equal, or cancel."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(np.isneginf(smaller), 0.0, np.exp(np.minimum(smaller - larger, 0.0)))
        difference: Array = larger + np.log1p(-ratio)

    return np.where(np.isnan(difference), -np.inf, difference)
