"""The constraints of a study, and the slacks of a history for them.

| symbol | meaning                                                                       | shape  |
|--------|-------------------------------------------------------------------------------|--------|
| K      | constraints                                                                   | scalar |
| G      | slacks (`archive.constraints`), NaN where the quantity of a result is unknown | (n, K) |
| d      | violations: 0 exactly where all constraints are met, infinite where unknown   | (n,)   |

A quantity is known if it is a function of the network that needs no training. All networks of the
agents' space meet the constraints on known quantities (`archive.spaces.constrained`). Networks of a
history may violate them: those that a user has told, or those of warm-start sources. All other
quantities are measured: their values come with results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archive.constraints import Constraint, KnownCosts, compute_cost
from archive.store.records import sign

if TYPE_CHECKING:
    from archive.agents.base import Observation
    from archive.store.records import Evaluation

Array = NDArray[np.float64]


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
        return tuple(at for at, each in enumerate(self.constraints) if each.name not in self.known)

    def told(self, evaluation: Evaluation, objective: str, score: float) -> tuple[float, ...]:
        """Return the measured quantities of an evaluation, NaN where it has no such metric.

        Args:
            evaluation: The evaluation. A training that paused at a rung has the quantities at the
                rung, except for the objective, whose value is projected
                (`archive.agents.rungs.scores`): an accuracy that is too low after two epochs may
                meet its bound after the whole training.
            objective: Name of the metric that is its value.
            score: Its score on the scale of whole trainings.
        """
        metrics = {objective: evaluation.value, **evaluation.metrics}
        if evaluation.partial:
            metrics[objective] = sign(evaluation.direction) * score

        return tuple(metrics.get(self.constraints[at].name, float("nan")) for at in self.measured)

    def slacks(self, observations: Sequence[Observation]) -> Array:
        """Return G of observations: (n, K) float64."""
        return np.stack(
            [each.sign * (v - each.bound) for each, v in self._values(observations)], axis=1
        )

    def violations(self, observations: Sequence[Observation]) -> Array:
        """Return d of observations: (n,) float64."""
        total = np.zeros(len(observations))
        for each, values in self._values(observations):
            total += [each.violation(value) for value in values.tolist()]

        return total

    def met(self, observations: Sequence[Observation]) -> NDArray[np.bool_]:
        """Return whether observations meet all constraints: (n,)."""
        met: NDArray[np.bool_] = self.violations(observations) == 0.0
        return met

    def _values(self, observations: Sequence[Observation]) -> list[tuple[Constraint, Array]]:
        """Return each constraint with the values of its quantity, (n,) float64."""
        networks = [observation.architecture for observation in observations]
        measured = self.measured
        pairs: list[tuple[Constraint, Array]] = []
        for at, each in enumerate(self.constraints):
            if at in measured:
                place = measured.index(at)
                values = [
                    observation.measured[place] if observation.measured else np.nan
                    for observation in observations
                ]
                pairs.append((each, np.array(values, np.float64)))
            else:
                pairs.append((each, compute_cost(self.known, each.name, networks)))

        return pairs
