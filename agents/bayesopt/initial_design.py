"""The first networks of a search, so chosen that little of the space stays unknown.

| symbol | meaning                                                                              | shape  |
|--------|--------------------------------------------------------------------------------------|--------|
| R      | networks that stand for the space: its members or draws from it                      | (r,)   |
| C      | covariance of their scores, given those of the networks known                        | (r, r) |
| e      | noise of an evaluation                                                               | scalar |

    the next of R = argmax_i  sum_j C_ij^2 / (C_ii + e),   then C <- C - C_i C_i^T / (C_ii + e)

That is what evaluating network i takes off the variance of all of R together (Cohn, Ghahramani, Jordan: Active learning
with statistical models, 1996). Variances do not depend on scores, so a design needs none. A design that asks for the
greatest distance instead takes the oddest networks of the space, of which the others say little.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.exact import GaussianProcess
from archive.agents.surrogates.gp.fitted import Pairwise
from archive.architecture.graph import Architecture
from archive.kernels.covariance.base import Covariance

# Share of the prior variance.
NOISE = 0.01


def most_telling(
    reference: Sequence[Architecture],
    known: Sequence[Architecture],
    count: int,
    pairwise: Pairwise,
    covariance: Covariance,
) -> list[int]:
    """Return which networks to evaluate first.

    Args:
        reference: R, at least one network.
        known: Networks whose scores are known or on their way.
        count: How many to return.
        pairwise: Gives the distances.
        covariance: Of them; its parameters are those at the centre of their box.

    Returns:
        At most `count` positions in R, the most telling first; fewer where there are no more.
    """
    left = _left(reference, known, pairwise, covariance)
    noise = NOISE * float(left.diagonal().mean()) or NOISE
    free = np.ones(len(reference), bool)
    chosen: list[int] = []
    while len(chosen) < min(count, len(reference)):
        gains = np.square(left).sum(axis=0) / (np.maximum(left.diagonal(), 0.0) + noise)
        best = int(np.argmax(np.where(free, gains, -np.inf)))
        chosen.append(best)
        free[best] = False
        column = left[:, best].copy()
        left = left - np.outer(column, column) / (max(column[best], 0.0) + noise)
    return chosen


def _left(
    reference: Sequence[Architecture], known: Sequence[Architecture], pairwise: Pairwise, covariance: Covariance
) -> Array:
    inner = pairwise.distances(reference).stack
    theta = covariance.bounds(inner).mean(axis=1)
    prior: Array = covariance.value(inner, theta)
    if not known:
        return prior
    gram = covariance.value(pairwise.distances(known).stack, theta)
    process = GaussianProcess.condition_repaired(gram, np.zeros(len(known)), NOISE * float(gram.diagonal().mean()))
    cross = covariance.value(pairwise.distances(known, reference).stack, theta)
    return process.predict_jointly(cross, prior)[1]
