"""Known costs of networks, and constraints: bounds on quantities, as text `params<=0.3M`.

A known cost needs no training: the number of parameters, or a latency from a table. The caller of a
search passes it, because a layer beside the agents reads tables and builds networks: the command
line the costs of the study's task (`archive.trainer.tasks.known_costs`), a user of ask and tell any
functions.

| symbol | meaning                                                                                     |
|--------|---------------------------------------------------------------------------------------------|
| v, b   | value of the quantity, bound                                                                |
| g      | slack: b - v for an upper bound, v - b for a lower one; the constraint is met where g >= 0, |
|        | of `<` and `>` where g > 0                                                                  |
| d      | violation: max(0, -g) / abs(b), of a bound of 0 in the quantity's own unit; infinite where  |
|        | the value is unknown                                                                        |

| module                             | use                                                     |
|------------------------------------|---------------------------------------------------------|
| `archive.searches.request`         | the constraints that a search asks for, checked against |
|                                    | the task                                                |
| `archive.store.studies.creation`   | the same condition in Cypher                            |
| `archive.store.snapshots`          | violation of a result; order of results by it           |
| `archive.spaces.constrained`       | members of a space that meet bounds on known costs      |
| `archive.agents.constraints`       | slacks of a history, penalised scores, and probability  |
|                                    | of feasibility                                          |
| `archive.queue.successive_halving` | violations at rungs                                     |
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from archive.errors import UsageError
from archive.values import number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Operator = Literal["<=", "<", ">=", ">"]
OPERATORS = ("<=", "<", ">=", ">")

KnownCost = Callable[[Sequence[Any]], "NDArray[np.float64]"]
"""Function of m >= 1 networks that returns their costs, (m,) float64 or a list, NaN where a network
has none."""

KnownCosts = Mapping[str, KnownCost]
"""Known costs of the networks of a study, by the name that the results have."""

NO_COSTS: KnownCosts = MappingProxyType({})
"""No known cost: every quantity is learnt from results."""

_FORM = re.compile(r"\s*([^\s<>=]+)\s*(<=|>=|<|>)\s*([^\s<>=]+)\s*")
_WORDS = {"<=": "at-most", "<": "below", ">=": "at-least", ">": "above"}


@dataclass(frozen=True)
class Constraint:
    """A bound on one quantity.

    Attributes:
        name: Name of the metric or cost.
        operator: How the value must compare with the bound.
        bound: The bound, in the quantity's unit.
    """

    name: str
    operator: Operator
    bound: float

    def __str__(self) -> str:
        """Return it as the command line takes it, `params<=300000`."""
        return f"{self.name}{self.operator}{self.bound:.15g}"

    @property
    def label(self) -> str:
        """Words without signs of a shell, `params-at-most-300000`, for the name of a study."""
        return f"{self.name}-{_WORDS[self.operator]}-{self.bound:.15g}"

    @property
    def strict(self) -> bool:
        """Whether a value equal to the bound does not meet it."""
        return self.operator in ("<", ">")

    @property
    def sign(self) -> float:
        """-1 for an upper bound, 1 for a lower one: g is the sign times v - b."""
        return -1.0 if self.operator in ("<=", "<") else 1.0

    def violation(self, value: float | None) -> float:
        """Return d: 0 exactly where the constraint is met."""
        if value is None or math.isnan(value):
            return math.inf

        slack = self.sign * (value - self.bound)
        if slack > 0.0 or (slack == 0.0 and not self.strict):
            return 0.0

        # A value equal to a strict bound has slack 0, and does not meet it.
        return max(-slack / (abs(self.bound) or 1.0), sys.float_info.min)


def parse(text: str) -> Constraint:
    """Return the constraint that a text names.

    Args:
        text: `NAME<=NUMBER`, with `<=`, `<`, `>=` or `>`; the number may have a unit, `0.3M` or
            `2GiB`.

    Raises:
        UsageError: The text is no such comparison, or the bound is no finite number.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"a constraint is NAME<=NUMBER, with <=, <, >= or >, got {text!r}")

    bound = number(match[3])
    if bound is None or not math.isfinite(bound):
        raise UsageError(
            "the bound of a constraint is a number such as 1e6, "
            f"0.3M or 2GiB, got {match[3]!r} in {text!r}"
        )

    return Constraint(match[1], cast(Operator, match[2]), bound)


def check(constraints: Sequence[Constraint]) -> None:
    """Check that a study can have these constraints.

    Raises:
        UsageError: One quantity has two bounds of one kind, or a bound or an operator is invalid.
    """
    kinds = [(constraint.name, constraint.sign) for constraint in constraints]
    for constraint in constraints:
        if (
            not constraint.name
            or constraint.operator not in OPERATORS
            or not math.isfinite(constraint.bound)
        ):
            raise UsageError(
                f"a constraint is NAME<=NUMBER, with <=, <, >= or >, got {str(constraint)!r}"
            )

        if kinds.count((constraint.name, constraint.sign)) > 1:
            both = []
            for other, kind in zip(constraints, kinds, strict=True):
                if kind == (constraint.name, constraint.sign):
                    both.append(str(other))

            raise UsageError(
                f"a study needs one bound of each kind on {constraint.name}, got {', '.join(both)}"
            )


def violation(constraints: Sequence[Constraint], values: Mapping[str, float | None]) -> float:
    """Return the sum of the violations of values by name: 0 exactly where all are met."""
    return sum(constraint.violation(values.get(constraint.name)) for constraint in constraints)


def violations(
    quantities: Iterable[tuple[Constraint, NDArray[np.float64]]], count: int
) -> NDArray[np.float64]:
    """Return the sum of the violations of each network or result: (count,) float64.

    Args:
        quantities: Each constraint with the values of its quantity, (count,) float64.
        count: Number of networks or results.
    """
    # Imported here because the command line loads this module, and most commands compute no costs.
    import numpy as np

    total = np.zeros(count)
    for constraint, values in quantities:
        total += list(map(constraint.violation, values.tolist()))

    return total


def compute_cost(costs: KnownCosts, name: str, networks: Sequence[Any]) -> NDArray[np.float64]:
    """Return a known cost of m networks: (m,) float64, NaN where a network has none.

    Args:
        costs: The known costs.
        name: Name of one of them.
        networks: The networks; without any, the function is not called.

    Raises:
        UsageError: The function returned something else than one number for each network.
    """
    import numpy as np

    # Parameters beside a network have no part in its costs.
    plain = [getattr(network, "network", network) for network in networks]
    values: Any = costs[name](plain) if plain else []
    try:
        numbers: NDArray[np.float64] = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(())

    if numbers.shape != (len(networks),):
        raise UsageError(
            f"the known cost {name} is a function of several networks, "
            f"and must return one number for each: for {len(networks)} it returned {values!r:.80}"
        )

    return numbers
