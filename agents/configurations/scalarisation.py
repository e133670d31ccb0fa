"""Several objectives as one score, with random weights for each proposal: ParEGO.

| symbol | meaning                                                              | shape  |
|--------|----------------------------------------------------------------------|--------|
| Y      | scores of the objectives, larger is better; penalised where a        | (n, M) |
|        | constraint is violated (`archive.agents.constraints.slacks`)         |        |
| C      | costs, (max Y - Y) / (max Y - min Y) for each objective, in [0, 1]   | (n, M) |
| w      | weights, uniform on the simplex                                      | (M,)   |
| s      | score, -(max_j w_j C_j + rho sum_j w_j C_j), rho = .05               | (n,)   |

J. Knowles, ParEGO: a hybrid algorithm with on-line landscape approximation for expensive
multiobjective optimization problems, IEEE Transactions on Evolutionary Computation 10(1), 2006,
equations 2 and 3. The paper draws the weights from a lattice; here they are uniform.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archive.agents.base import History
from archive.agents.constraints.slacks import penalise
from archive.agents.objectives.goals import points
from archive.agents.surrogates.base import Array

RHO = 0.05
"""Weight of the sum beside the maximum."""


def scalarise(history: History, rng: np.random.Generator) -> History:
    """Return a history with one objective, by new weights.

    Observations that lack an objective stay, without a usable score.

    Args:
        history: A history with goals.
        rng: Source of the weights.
    """
    whole, scores = points(history)
    if history.constraints is not None:
        scores = penalise(scores, history.constraints.violations(whole))

    weights = rng.dirichlet(np.ones(scores.shape[1]))
    combined = combine(scores, weights) if len(whole) else np.empty(0)
    score_of = dict(zip(map(id, whole), combined.tolist(), strict=True))
    observations = []
    for observation in history.observations:
        score = score_of.get(id(observation), float("nan"))
        observations.append(replace(observation, score=score, further=()))

    return replace(history, observations=tuple(observations), goals=None, constraints=None)


def combine(scores: Array, weights: Array) -> Array:
    """Return s of n points: (n,) float64, at most 0.

    Args:
        scores: Y, at least one point.
        weights: w.
    """
    best = scores.max(axis=0)
    spread = best - scores.min(axis=0)
    weighted = weights * (best - scores) / np.where(spread > 0.0, spread, 1.0)
    combined: Array = -(weighted.max(axis=1) + RHO * weighted.sum(axis=1))
    return combined
