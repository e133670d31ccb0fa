"""Goals: the objectives of a study with several, and the values of a history for them.

| symbol | meaning                                                                     | shape  |
|--------|-----------------------------------------------------------------------------|--------|
| M      | objectives                                                                  | scalar |
| Y      | scores: values of the objectives with their sign such that larger is better | (n, M) |

The first objective is the score of an observation, the others are its `further` scores. An
objective is known if it is a function of the network that needs no training: it is then computed
for every candidate, and no surrogate is fitted to it. Recorded values of a known objective are not
used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.observations import LARGEST
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of, take
from archive.constraints import KnownCosts, compute_cost
from archive.objectives import sign
from archive.store.records import Objective

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from archive.agents.base import History, Observation
    from archive.store.records import Evaluation

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class Goals:
    """The objectives of a study with several.

    Attributes:
        objectives: M objectives, the first of which is the score.
        known: Functions of the known objectives, by name; they return values, and `objectives` has
            their directions.
    """

    objectives: tuple[Objective, ...]
    known: KnownCosts = field(default_factory=dict)

    @property
    def learnt(self) -> tuple[int, ...]:
        """Positions of the first objective, which is always learnt, and of unknown ones."""
        positions = []
        for position, objective in enumerate(self.objectives):
            if not position or objective.name not in self.known:
                positions.append(position)

        return tuple(positions)

    def further_scores(self, evaluation: Evaluation) -> tuple[float, ...]:
        """Return the scores of an evaluation beside the first, NaN where it has no such metric."""
        scores = []
        for objective in self.objectives[1:]:
            value = evaluation.metrics.get(objective.name, float("nan"))
            scores.append(sign(objective.direction) * value)

        return tuple(scores)

    def known_scores(self, architectures: Sequence[Architecture]) -> Array:
        """Return the scores of networks for the known objectives: (m, M) float64.

        Columns of other objectives, and networks of unknown cost, have NaN.
        """
        scores = np.full((len(architectures), len(self.objectives)), np.nan)
        for position, objective in enumerate(self.objectives):
            if position not in self.learnt:
                costs = compute_cost(self.known, objective.name, architectures)
                scores[:, position] = sign(objective.direction) * costs

        return scores

    def scores(self, observations: Sequence[Observation]) -> Array:
        """Return the scores: (n, M) float64, NaN where unknown or beyond `LARGEST`."""
        scores = self.known_scores(architectures_of(observations))
        for row, observation in enumerate(observations):
            for position in self.learnt:
                if not position:
                    scores[row, position] = observation.score
                elif observation.further:
                    scores[row, position] = observation.further[position - 1]
                else:
                    scores[row, position] = np.nan

        return np.where(np.abs(scores) <= LARGEST, scores, np.nan)


def points(history: History) -> tuple[list[Observation], Array]:
    """Return the observations of which all objectives are known, and their scores: (n, M) float64.

    Without goals, the score is the only objective.
    """
    observations = list(history.usable)
    if history.goals is None:
        return observations, history.scores[:, None]

    scores = history.goals.scores(observations)
    whole: NDArray[np.bool_] = np.all(np.isfinite(scores), axis=1)
    return take(observations, np.flatnonzero(whole)), scores[whole]
