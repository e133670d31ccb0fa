"""The constraints of a study: slacks of a history, and penalised scores for other agents.

| symbol | meaning                                                                       | shape  |
|--------|-------------------------------------------------------------------------------|--------|
| K      | constraints                                                                   | scalar |
| G      | slacks (`archive.constraints`), NaN where the quantity of a result is unknown | (n, K) |
| d      | violations: 0 exactly where all constraints are met, infinite where unknown   | (n,)   |
| Y      | scores, larger is better                                                      | (n, M) |
| p      | penalised scores: Y where d = 0; elsewhere w - R (STEP + d / (1 + d)), with   | (n, M) |
|        | the worst score w and the range R of each objective over the results with     |        |
|        | d = 0; without such results, 0 and 1                                          |        |

A quantity is known if it is a function of the network that needs no training. All networks of the
agents' space meet the constraints on known quantities (`archive.spaces.constrained`). Networks of a
history may violate them: they come from a user or from warm-start sources. All other quantities are
measured: their values come with results.

Agents that do not use constraints see penalised scores. Results that meet the constraints keep
their order and exceed all others, which are ordered by their violation: the rule of Deb (An
efficient constraint handling method for genetic algorithms, 2000), with a bounded penalty so that a
model of the scores is not fitted to outliers. With several objectives this is the constrained
domination of NSGA-II (Deb et al., 2002, section VI).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archive.agents.observations import is_score
from archive.architecture.networks import architectures_of
from archive.constraints import Constraint, KnownCosts, compute_cost, violations
from archive.objectives import sign

if TYPE_CHECKING:
    from archive.agents.base import Agent, History, Observation
    from archive.store.records import Evaluation

Array = NDArray[np.float64]

STEP = 0.1
"""Distance of the penalised scores from the worst one that meets the constraints, as a share of the
range."""


@dataclass(frozen=True)
class StudyConstraints:
    """The constraints of a study.

    Attributes:
        constraints: K constraints, at least one.
        known: Functions of the known quantities, by name.
    """

    constraints: tuple[Constraint, ...]
    known: KnownCosts = field(default_factory=dict)

    @property
    def measured(self) -> tuple[int, ...]:
        """Positions of the constraints on quantities that are known from results only."""
        positions = []
        for position, constraint in enumerate(self.constraints):
            if constraint.name not in self.known:
                positions.append(position)

        return tuple(positions)

    def told(self, evaluation: Evaluation, objective: str, score: float) -> tuple[float, ...]:
        """Return the measured quantities of an evaluation, NaN where it has no such metric.

        Args:
            evaluation: The evaluation. A training that paused at a rung has the quantities at the
                rung, except for the objective: its value is projected
                (`archive.agents.rungs`): an accuracy that is too low after two epochs may
                meet its bound after the whole training.
            objective: Name of the metric that is its value.
            score: Its score on the scale of whole trainings.
        """
        metrics = {objective: evaluation.value, **evaluation.metrics}
        if evaluation.partial:
            metrics[objective] = sign(evaluation.direction) * score

        names = [self.constraints[position].name for position in self.measured]
        return tuple(metrics.get(name, float("nan")) for name in names)

    def slacks(self, observations: Sequence[Observation]) -> Array:
        """Return G of observations: (n, K) float64."""
        columns = []
        for constraint, values in self._values(observations):
            columns.append(constraint.sign * (values - constraint.bound))

        return np.stack(columns, axis=1)

    def violations(self, observations: Sequence[Observation]) -> Array:
        """Return d of observations: (n,) float64."""
        return violations(self._values(observations), len(observations))

    def met(self, observations: Sequence[Observation]) -> NDArray[np.bool_]:
        """Return whether observations meet all constraints: (n,)."""
        met: NDArray[np.bool_] = self.violations(observations) == 0.0
        return met

    def _values(self, observations: Sequence[Observation]) -> list[tuple[Constraint, Array]]:
        """Return each constraint with the values of its quantity, (n,) float64."""
        networks = architectures_of(observations)
        measured = self.measured
        pairs: list[tuple[Constraint, Array]] = []
        for position, constraint in enumerate(self.constraints):
            if position not in measured:
                pairs.append((constraint, compute_cost(self.known, constraint.name, networks)))
                continue

            column = measured.index(position)
            values = np.full(len(observations), np.nan)
            for row, observation in enumerate(observations):
                if observation.measured:
                    values[row] = observation.measured[column]

            pairs.append((constraint, values))

        return pairs


def adapt(agent: Agent, history: History) -> History:
    """Return a history with penalised scores for an agent that does not use constraints."""
    return history if agent.uses_constraints else with_penalties(history)


def with_penalties(history: History) -> History:
    """Return a history with penalised scores; the history itself without constraints."""
    if history.constraints is None:
        return history

    violations_of = history.constraints.violations(history.usable)
    penalised = iter(penalise(history.scores[:, None], violations_of)[:, 0].tolist())
    observations = []
    for observation in history.observations:
        # Failures keep their scores, which models cannot use.
        if is_score(observation.score):
            observation = replace(observation, score=next(penalised))

        observations.append(observation)

    return replace(history, observations=tuple(observations))


def penalise(scores: Array, violations: Array) -> Array:
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
