"""A multiple-choice knapsack, solved exactly, with its solutions from the best on.

    maximise    sum over groups i of v_i(c_i)
    subject to  sum over groups i of w_ki(c_i) <= b_k     for each limit k
                one choice c_i in each group

| symbol | meaning                                             | shape       |
|--------|-----------------------------------------------------|-------------|
| v_i    | values of the choices of group i                    | (m_i,)      |
| w_ki   | weights of the choices of group i in the limit k    | (m_i,)      |
| z      | whether a choice is taken, all groups in a row      | (sum m_i,)  |

Each solution is cut off before the next one is sought: of G groups, at most G - 1 may have its
choices. HiGHS solves the integer program (`scipy.optimize.milp`) to a gap of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archive.errors import NumericalError

Array = NDArray[np.float64]

_OPTIMAL = 0
_INFEASIBLE = 2


@dataclass
class Limit:
    """An upper bound of a sum of weights.

    Attributes:
        weights: (m_i,) float64 of each group; infinite for a choice that is never taken.
        bound: The bound, which a caller may lower between two solutions.
    """

    weights: Sequence[Array]
    bound: float


class ChoiceProgram:
    """The program; each call of `solve` returns its next solution.

    Args:
        values: (m_i,) float64 of each group, with one choice at least.
        limits: The limits.
    """

    def __init__(self, values: Sequence[Array], limits: Sequence[Limit] = ()) -> None:
        self._values = list(values)
        self.limits = list(limits)
        self._starts = np.cumsum([0, *map(len, values)])
        self._cuts: list[Array] = []

    def solve(self) -> tuple[int, ...] | None:
        """Return the choices of the best solution that is left; None if there is none.

        Raises:
            NumericalError: The solver failed.
        """
        # Imported here because agents that solve nothing load this package.
        from scipy.optimize import Bounds, LinearConstraint, milp

        if not self._values:
            return None

        size = int(self._starts[-1])
        objective = np.concatenate(self._values)
        scale = float(np.abs(objective).max()) or 1.0
        groups = np.zeros((len(self._values), size))
        for group, start in enumerate(self._starts[:-1]):
            groups[group, start : self._starts[group + 1]] = 1.0

        rows = [LinearConstraint(groups, 1.0, 1.0)]
        allowed = np.ones(size)
        for limit in self.limits:
            weights = np.concatenate(list(limit.weights))
            allowed[~np.isfinite(weights)] = 0.0
            finite = np.where(np.isfinite(weights), weights, 0.0)
            unit = max(float(np.abs(finite).max()), abs(limit.bound)) or 1.0
            rows.append(LinearConstraint(finite / unit, -np.inf, limit.bound / unit))

        if self._cuts:
            most = len(self._values) - 1.0
            rows.append(LinearConstraint(np.array(self._cuts), -np.inf, most))

        solved = milp(
            -objective / scale,
            integrality=np.ones(size),
            bounds=Bounds(0.0, allowed),
            constraints=rows,
            options={"mip_rel_gap": 0.0},
        )
        if solved.status == _INFEASIBLE:
            return None

        if solved.status != _OPTIMAL:
            raise NumericalError(f"the program of the best sums was not solved: {solved.message}")

        return self._cut_off(solved.x)

    def _cut_off(self, solution: Array) -> tuple[int, ...]:
        taken = np.zeros_like(solution)
        choices = []
        for start, end in zip(self._starts[:-1], self._starts[1:], strict=True):
            choice = int(np.argmax(solution[start:end]))
            taken[start + choice] = 1.0
            choices.append(choice)

        self._cuts.append(taken)
        return tuple(choices)
