r"""What to train next, to find the design with the least loss at a given scale.

| symbol | meaning                                                                        | shape    |
|--------|--------------------------------------------------------------------------------|----------|
| t, a   | targets: the designs at the scale of the question; trainings that may be next  | (T,), (A,)|
| m      | expected log L of the targets                                                  | (T,)     |
| s      | change of m by the result of a, for one standard deviation of it:              | (T, A)   |
|        | cov(t, a) / sqrt(var(a) + noise^2)                                             |          |
| c      | operations of a                                                                | (A,)     |

    KG(a) = min_t m_t - E min_t (m_t + s_ta Z),   Z ~ N(0, 1)

is the knowledge gradient (Frazier, Powell and Dayanik, 2009): by how much log L of the best target
falls on average through the result of a. The training with the greatest KG(a) / c(a) is next: a small
one as long as it says enough about large ones. Covariances are of joint draws; the expectation is a
sum over Gauss-Hermite nodes.
"""

from __future__ import annotations

import numpy as np

from archive.agents.surrogates.base import Array

NODES = 24


def knowledge_gradients(targets: Array, candidates: Array, noise: float) -> Array:
    """Return KG of candidates: (A,) float64, at least 0.

    Args:
        targets: (S, T) joint draws of log L of the targets.
        candidates: (S, A) joint draws of the candidates, with the same rows.
        noise: Standard deviation of log L of a training beside the draws.
    """
    means = targets.mean(axis=0)
    deviations = candidates - candidates.mean(axis=0)
    covariances = (targets - means).T @ deviations / len(targets)
    slopes = covariances / np.sqrt(np.square(deviations).mean(axis=0) + noise**2 + 1e-12)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    least = np.zeros((NODES, candidates.shape[1]))
    for row, node in zip(least, nodes.tolist(), strict=True):
        row[:] = (means[:, None] + node * slopes).min(axis=0)

    expected = (weights / weights.sum()) @ least
    gains: Array = np.maximum(means.min() - expected, 0.0)
    return gains


def flip_probability(first: Array, second: Array, first_later: Array, second_later: Array) -> float:
    """Return the probability that the order of two designs differs between two scales.

    Args:
        first: (S,) joint draws of log L of a design.
        second: (S,) of another design.
        first_later: (S,) of the first design at another scale.
        second_later: (S,) of the second design there.
    """
    return float(np.mean((first < second) != (first_later < second_later)))
