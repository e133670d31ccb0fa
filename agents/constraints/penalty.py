"""Penalised scores, for agents that do not use constraints.

| symbol | meaning                                                                                        | shape  |
|--------|------------------------------------------------------------------------------------------------|--------|
| Y      | scores, larger is better                                                                       | (n, M) |
| d      | violations (`archive.agents.constraints.slacks`)                                               | (n,)   |
| p      | penalised scores: Y where d = 0; elsewhere w - R (STEP + d / (1 + d)), with the worst score w  | (n, M) |
|        | and the range R of each objective over the results with d = 0; without such, 0 and 1           |        |

Results that meet the constraints keep their order and exceed all others, which are ordered by their
violation: the rule of Deb (An efficient constraint handling method for genetic algorithms, 2000),
with a bounded penalty so that a model of the scores is not fitted to outliers. Of several
objectives this is the constrained domination of NSGA-II (Deb et al., 2002, section VI).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archive.agents.base import Agent, History
from archive.agents.observations import is_score
from archive.agents.surrogates.base import Array

STEP = 0.1
"""Distance of the penalised scores from the worst one that meets the constraints, as a share of the
range."""


def adapted(agent: Agent, history: History) -> History:
    """Return a history for an agent: with penalised scores where it does not use constraints
    itself.
    """
    constraints = history.constraints
    if constraints is None or agent.uses_constraints:
        return history

    usable = history.usable
    scores = np.array([observation.score for observation in usable], np.float64).reshape(
        len(usable), 1
    )
    changed = iter(penalised(scores, constraints.violations(usable))[:, 0].tolist())
    return replace(
        history,
        # Failures keep their scores, which models cannot use.
        observations=tuple(
            replace(observation, score=next(changed))
            if is_score(observation.score)
            else observation
            for observation in history.observations
        ),
    )


def penalised(scores: Array, violations: Array) -> Array:
    """Return p: (n, M) float64."""
    met = violations == 0.0
    if met.all():
        return scores

    worst = np.zeros(scores.shape[1])
    spread = np.ones(scores.shape[1])
    if met.any():
        worst = scores[met].min(axis=0)
        best = scores[met].max(axis=0)
        spread = np.where(best > worst, best - worst, 1.0)

    share = 1.0 - 1.0 / (1.0 + violations)
    lowered: Array = worst - spread * (STEP + share[:, None])
    return np.where(met[:, None], scores, lowered)
