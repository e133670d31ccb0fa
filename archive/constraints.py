"""Constraints: bounds on quantities of networks, as text `params<=0.3M`.

| symbol | meaning                                                                                     |
|--------|---------------------------------------------------------------------------------------------|
| v, b   | value of the quantity, bound                                                                |
| g      | slack: b - v for an upper bound, v - b for a lower one; the constraint is met where g >= 0, |
|        | of `<` and `>` where g > 0                                                                  |
| d      | violation: max(0, -g) / abs(b), of a bound of 0 in the quantity's own unit; infinite where  |
|        | the value is unknown                                                                        |
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from archive.errors import UsageError
from archive.quantities import number

Operator = Literal["<=", "<", ">=", ">"]
OPERATORS = ("<=", "<", ">=", ">")

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
            "the bound of a constraint is a number such as 1e6, 0.3M or 2GiB, got "
            f"{match[3]!r} "
            f"in {text!r}"
        )

    return Constraint(match[1], cast(Operator, match[2]), bound)


def violation(constraints: Sequence[Constraint], values: Mapping[str, float | None]) -> float:
    """Return the sum of the violations of values by name:

    0 exactly where all constraints are met.
    """
    return sum(each.violation(values.get(each.name)) for each in constraints)
