"""Expected hypervolume improvement (EHVI) in closed form, for independent and for known objectives.

| symbol   | meaning                                                                           | shape  |
|----------|-----------------------------------------------------------------------------------|--------|
| M        | objectives, all maximised                                                         | scalar |
| m        | candidates                                                                        | scalar |
| l, u     | corners of the boxes that partition the free region (`objectives.decomposition`)  | (B, M) |
| y_j      | score of a candidate for objective j, random or known                             | (m,)   |
| mu, s, w | means and standard deviations of y_j by member of a mixture, and their weights    | (S, m) |
| EI_j(t)  | E[max(0, y_j - t)]: sum_s w_s s h((mu_s - t) / s); for a known y_j, max(0, y_j-t) | (m,)   |
| h        | h(z) = phi(z) + z Phi(z)                                                          | any    |

The region that y newly dominates intersects a box in a box, from l to min(u, y):

    HVI(y)  = sum_b prod_j (min(u_bj, y_j) - l_bj)_+
    EHVI    = sum_b prod_j (EI_j(l_bj) - EI_j(u_bj))                        EI_j(inf) = 0

since the y_j are independent, and (min(u, y) - l)_+ = (y - l)_+ - (y - u)_+. With one learnt
objective f and known costs c this is a sum over the levels t_i of the front, sum_i v_i(c)
EI_f(t_i), in which v_i(c) >= 0 is the volume of costs that a candidate of cost c newly reaches at
level t_i. With two learnt objectives it is the formula of Emmerich, Deutz and Klinkenberg (2011)
and, for any number, that of Couckuyt, Deschrijver and Dhaene (2014) and Daulton, Balandat and
Bakshy (2020, eq. 3), whose psi is EI.

Logarithms are summed, since far from the front all terms underflow (Ament et al., 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import logsumexp

from archive.agents.acquisition.functions import log_h
from archive.agents.surrogates.base import LEAST_STD, Array, Posterior

BLOCK = 2_000_000
"""Most entries of an array (candidates, boxes): 16 MB."""


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
        """Return log EHVI of m candidates: (m,) float64, -inf where no improvement is possible,
        never NaN.

        Args:
            scores: For each of the M objectives, the posterior in score units
                (`Posterior.in_scores`) if it is learnt, or (m,) float64 if it is known; a candidate
                of which a known score is NaN has -inf.
        """
        count = max(len(one.mean) if isinstance(one, Posterior) else len(one) for one in scores)
        size = max(BLOCK // max(len(self.lower), 1), 1)
        parts = [
            self._block([_part(one, at, at + size) for one in scores])
            for at in range(0, count, size)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def _block(self, scores: Sequence[Posterior | Array]) -> Array:
        total: Array | float = 0.0
        for at, one in enumerate(scores):
            levels, places = np.unique(
                np.concatenate([self.lower[:, at], self.upper[:, at]]), return_inverse=True
            )
            table = _log_learnt(one, levels) if isinstance(one, Posterior) else None
            below = places[: len(self.lower)]
            above = places[len(self.lower) :]
            with np.errstate(divide="ignore"):
                if table is None:
                    gain = np.log(_known(one, self.lower[:, at], self.upper[:, at]))
                else:
                    gain = _log_difference(table[:, below], table[:, above])

            total = total + gain

        with np.errstate(divide="ignore"):
            result: Array = logsumexp(total, axis=1)

        return result


def _part(one: Posterior | Array, begin: int, end: int) -> Posterior | Array:
    if not isinstance(one, Posterior):
        return one[begin:end]

    return Posterior(
        one.means[:, begin:end], one.variances[:, begin:end], one.best, None, one.weights
    )


def _known(scores: Array | Posterior, lower: Array, upper: Array) -> Array:
    """Return (min(u, y) - l)_+ for each candidate and box: (m, B) float64, 0 for NaN."""
    assert not isinstance(scores, Posterior)
    gained = np.minimum(upper, np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf)[:, None]) - lower
    positive: Array = np.maximum(gained, 0.0)
    return positive


def _log_learnt(posterior: Posterior, levels: Array) -> Array:
    """Return log EI at each level: (m, L) float64, -inf at infinity."""
    std = np.maximum(np.sqrt(posterior.variances), LEAST_STD)
    table = np.full((posterior.means.shape[1], len(levels)), -np.inf)
    for at, level in enumerate(levels):
        if level < np.inf:
            with np.errstate(over="ignore", divide="ignore"):
                logs = log_h(np.maximum((posterior.means - level) / std, -1e150)) + np.log(std)
                table[:, at] = posterior.log_average(logs)

    return table


def _log_difference(larger: Array, smaller: Array) -> Array:
    """Return log(exp(larger) - exp(smaller)) of any shape; -inf where both are equal, or cancel."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(np.isneginf(smaller), 0.0, np.exp(np.minimum(smaller - larger, 0.0)))
        difference: Array = larger + np.log1p(-ratio)

    return np.where(np.isnan(difference), -np.inf, difference)
