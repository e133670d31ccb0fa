"""Conditions and constraints on parameters, as text: `depth >= 4`, `width * depth <= 512`.

A text is data: it is read by `archive.parameters.parser`, and never by Python.

    expression   "a or b", "a and b", "not a"
    comparison   == != < <= > >=, in [...], not in [...]; chains as in 1 <= depth < 4
    arithmetic   + - * / // % **, min(...), max(...), abs(x), log(x), sqrt(x), floor(x), ceil(x)
    value        number, 'text' or "text", true, false, null, name of a parameter, [list]

A parameter that does not exist in a configuration makes its arithmetic and its comparisons
unknown. Unknown values follow Kleene's logic: `unknown or true` is true, `unknown and false` is
false, and every other combination is unknown. An unknown condition does not hold; an unknown
constraint refuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from archive.errors import SettingsError
from archive.values import brief


class Unknown:
    """The value of an expression over a parameter that does not exist."""

    def __repr__(self) -> str:
        """Name the value in messages."""
        return "unknown"


UNKNOWN = Unknown()

Evaluate = Callable[[Mapping[str, Any]], Any]
"""Value of an expression in a configuration."""


class ExpressionError(SettingsError):
    """A text that is no expression, or an expression without a value.

    Attributes:
        text: The expression.
        fault: What is wrong with it.
        column: Position of the fault in the text, from 1; None where the whole text is meant.
    """

    def __init__(self, text: str, fault: str, column: int | None = None) -> None:
        """Compose the message."""
        self.text = text
        self.fault = fault
        self.column = column
        location = "" if column is None else f" at column {column}"
        super().__init__(f"{brief(text)}: {fault}{location}")


class ConstantComparison(NamedTuple):
    """A comparison of a parameter with values that the text gives.

    Attributes:
        name: Name of the parameter.
        values: The values.
        ordered: Whether the comparison asks for an order.
        column: Position in the text, from 1.
    """

    name: str
    values: tuple[Any, ...]
    ordered: bool
    column: int


@dataclass(frozen=True, eq=False)
class Expression:
    """A condition or a constraint.

    Two expressions are equal if their texts and the parameters that they read are.

    Attributes:
        text: The text, as the user wrote it.
        names: The parameters that it reads, each once, in their order in the text.
        comparisons: Comparisons of one parameter with constants, which a space checks against the
            parameter's values.
    """

    text: str
    names: tuple[str, ...]
    comparisons: tuple[ConstantComparison, ...]
    _evaluate: Evaluate
    _distance: Evaluate

    def __eq__(self, other: object) -> bool:
        """Compare the texts and the parameters."""
        return (
            isinstance(other, Expression) and self.text == other.text and self.names == other.names
        )

    def __hash__(self) -> int:
        """Hash the text."""
        return hash(self.text)

    def value(self, configuration: Mapping[str, Any]) -> Any:
        """Return the value in a configuration, `UNKNOWN` where a parameter is missing.

        Raises:
            ExpressionError: An operation is not defined for its values, as in `'relu' < 3`.
        """
        return self._evaluate(configuration)

    def holds(self, configuration: Mapping[str, Any]) -> bool:
        """Return whether a condition is true; an unknown one is not.

        Raises:
            ExpressionError: As for `value`.
        """
        return self._evaluate(configuration) is True

    def forbids(self, configuration: Mapping[str, Any]) -> bool:
        """Return whether a constraint is false; an unknown one is not.

        Raises:
            ExpressionError: As for `value`.
        """
        return self._evaluate(configuration) is False

    def distance(self, configuration: Mapping[str, Any]) -> float:
        """Return how far a configuration is from meeting a constraint; 0 where it does.

        An inequality is as far from true as its sides differ, every other comparison 1; `and` adds
        distances, `or` takes the least.

        Raises:
            ExpressionError: As for `value`.
        """
        return float(self._distance(configuration)) if self.forbids(configuration) else 0.0


def same_value(first: Any, second: Any) -> bool:
    """Return whether two values are the same: 1 and 1.0 are, 1 and true are not."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second

    return bool(first == second)


def as_logical(evaluate: Evaluate, text: str) -> Evaluate:
    """Return an operand of the logic, which must be true, false or unknown."""

    def logical(configuration: Mapping[str, Any]) -> Any:
        value = evaluate(configuration)
        if value is UNKNOWN or isinstance(value, bool):
            return value

        raise ExpressionError(text, f"a condition must be true or false, got {value!r}")

    return logical


def all_of(operands: Sequence[Evaluate]) -> Evaluate:
    """Return the value of `and`."""

    def evaluate(configuration: Mapping[str, Any]) -> Any:
        result: Any = True
        for operand in operands:
            value = operand(configuration)
            if value is False:
                return False

            if value is UNKNOWN:
                result = UNKNOWN

        return result

    return evaluate


def any_of(operands: Sequence[Evaluate]) -> Evaluate:
    """Return the value of `or`."""

    def evaluate(configuration: Mapping[str, Any]) -> Any:
        result: Any = False
        for operand in operands:
            value = operand(configuration)
            if value is True:
                return True

            if value is UNKNOWN:
                result = UNKNOWN

        return result

    return evaluate


def distance_of(evaluate: Evaluate) -> Evaluate:
    """Return the distance of a term that is true or false alone."""

    def distance(configuration: Mapping[str, Any]) -> float:
        return 1.0 if evaluate(configuration) is False else 0.0

    return distance


def distance_between(left: Evaluate, right: Evaluate) -> Evaluate:
    """Return the distance of an inequality: how far its sides are apart."""

    def distance(configuration: Mapping[str, Any]) -> float:
        first = left(configuration)
        second = right(configuration)
        if first is UNKNOWN or second is UNKNOWN:
            return 0.0

        # Equal sides of < are apart, too.
        return max(abs(float(first) - float(second)), 1e-9)

    return distance


def reduce_distances(
    function: Callable[[list[float]], float], parts: Sequence[Evaluate]
) -> Evaluate:
    """Return the sum or the least of distances."""

    def distance(configuration: Mapping[str, Any]) -> float:
        return function([part(configuration) for part in parts])

    return distance


def distance_where_false(evaluate: Evaluate, distance: Evaluate) -> Evaluate:
    """Return a distance where a term is false, else 0."""

    def distance_if_false(configuration: Mapping[str, Any]) -> float:
        return float(distance(configuration)) if evaluate(configuration) is False else 0.0

    return distance_if_false


def negation_of(operand: Evaluate) -> Evaluate:
    """Return the value of `not`."""

    def evaluate(configuration: Mapping[str, Any]) -> Any:
        value = operand(configuration)
        return UNKNOWN if value is UNKNOWN else not value

    return evaluate


def equal(left: Evaluate, right: Evaluate) -> Evaluate:
    """Return the value of `==`."""

    def evaluate(configuration: Mapping[str, Any]) -> Any:
        first = left(configuration)
        second = right(configuration)
        if first is UNKNOWN or second is UNKNOWN:
            return UNKNOWN

        return same_value(first, second)

    return evaluate


def member_of(left: Evaluate, right: Evaluate) -> Evaluate:
    """Return the value of `in`; the right side is a tuple."""

    def evaluate(configuration: Mapping[str, Any]) -> Any:
        value = left(configuration)
        if value is UNKNOWN:
            return UNKNOWN

        return any(same_value(value, item) for item in right(configuration))

    return evaluate
