"""Comparisons of a parameter with values that it never has: a slip of the pen, which is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from archive.errors import UsageError
from archive.parameters.domains import Choice, Domain, Value
from archive.parameters.expressions import Expression, ExpressionError
from archive.parameters.leaves import Parameter
from archive.parameters.ranges import Integer, Real
from archive.values import brief, is_number


def check_comparisons(
    parameters: Mapping[str, Parameter], constraints: Iterable[Expression]
) -> None:
    """Check the comparisons with constants in all conditions and constraints.

    Args:
        parameters: The parameters by name.
        constraints: The constraints.

    Raises:
        ExpressionError: A parameter never has a value that it is compared with, or its values have
            no order.
    """
    conditions = chain.from_iterable(parameter.conditions for parameter in parameters.values())
    for expression in chain(conditions, constraints):
        for comparison in expression.comparisons:
            domain = parameters[comparison.name].domain
            for value in comparison.values:
                fault = _fault_of_comparison(domain, value, comparison.ordered)
                if fault:
                    raise ExpressionError(
                        expression.text, f"{comparison.name} {fault}", comparison.column
                    )


def _fault_of_comparison(domain: Domain, value: Value, ordered: bool) -> str:
    """Return why a comparison with a value makes no sense; empty where it does."""
    if isinstance(domain, Integer | Real):
        return "" if is_number(value) else f"is a number, and never {brief(value)}"

    if isinstance(domain, Choice) and ordered:
        numbers = all(map(is_number, domain.options))
        return "" if numbers and is_number(value) else "has options without an order"

    try:
        domain.check(value)
    except UsageError as error:
        return str(error)

    return ""
