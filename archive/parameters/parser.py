"""The parser of conditions and constraints: a text becomes an expression, by recursive descent.

`archive.parameters.expressions` has the grammar and the meaning of unknown values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from archive.parameters.expressions import (
    UNKNOWN,
    ConstantComparison,
    Evaluate,
    Expression,
    ExpressionError,
    all_of,
    any_of,
    as_logical,
    distance_between,
    distance_of,
    distance_where_false,
    equal,
    member_of,
    negation_of,
    reduce_distances,
)
from archive.parameters.tokens import CONSTANTS, WORDS, ExpressionToken, read_tokens
from archive.values import brief, is_number

LONGEST_TEXT = 1000
"""Most characters of an expression."""

DEEPEST = 40
"""Most brackets and prefixes within each other."""

MOST_ITEMS = 1000
"""Most values of a list in an expression."""

Resolve = Callable[[str], str | None]
"""The parameter that a name in a text means, None for a name that means none."""


def parse(text: str, resolve: Resolve | None = None) -> Expression:
    """Return the condition or constraint of a text.

    Args:
        text: The text.
        resolve: Meaning of the names in it, where it is not the parameter of the same name:
            within a repeated group, `op` means the `op` of the same repetition.

    Raises:
        ExpressionError: The text does not follow the grammar, is a number, or names no parameter.
    """
    if not isinstance(text, str):
        raise ExpressionError(str(text), f"a condition must be a text, got {brief(text)}")

    if len(text) > LONGEST_TEXT:
        raise ExpressionError(text, f"a condition has at most {LONGEST_TEXT} characters")

    return _Parser(text, resolve or str).expression()


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SUMS: Mapping[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub}
_PRODUCTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def _power(base: float, exponent: float) -> float:
    # Whole numbers of Python have no limit: 9 ** 9 ** 9 would fill the memory.
    return math.pow(base, exponent)


_FUNCTIONS: Mapping[str, tuple[int, int, Callable[..., Any]]] = {
    "min": (1, MOST_ITEMS, min),
    "max": (1, MOST_ITEMS, max),
    "abs": (1, 1, abs),
    "log": (1, 1, math.log),
    "sqrt": (1, 1, math.sqrt),
    "floor": (1, 1, math.floor),
    "ceil": (1, 1, math.ceil),
}
"""Functions with the least and the greatest number of their arguments."""


class _Term(NamedTuple):
    """A part of an expression that has been read.

    Attributes:
        evaluate: Its value in a configuration.
        column: Where it begins, from 1.
        logical: Whether its value is true, false or unknown.
        distance: How far it is from true, where that is known better than by its value.
        name: Name of the parameter, if the part is nothing else.
        constant: The value in a tuple, if it depends on no parameter.
    """

    evaluate: Evaluate
    column: int
    logical: bool = False
    distance: Evaluate | None = None
    name: str | None = None
    constant: tuple[Any] | None = None


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, resolve: Resolve) -> None:
        self.text = text
        self.resolve = resolve
        self.names: dict[str, None] = {}
        self.comparisons: list[ConstantComparison] = []
        self._depth = 0
        self._tokens = read_tokens(text)
        self._next = 0

    def expression(self) -> Expression:
        """Read the whole text."""
        term = self._disjunction()
        if self._token.kind != "end":
            raise self._error(f"unexpected {self._token.text!r}")

        if not term.logical and term.name is None:
            raise ExpressionError(
                self.text, "a condition is a comparison, such as depth >= 4, and no number"
            )

        evaluate = as_logical(term.evaluate, self.text)
        return Expression(
            self.text, tuple(self.names), tuple(self.comparisons), evaluate, _distance(term)
        )

    @property
    def _token(self) -> ExpressionToken:
        return self._tokens[self._next]

    def _accept(self, *texts: str) -> ExpressionToken | None:
        """Return the next token and step over it, if it is one of these words or operators."""
        token = self._token
        if token.kind == "text" or token.text not in texts:
            return None

        self._next += 1
        return token

    def _expect(self, text: str) -> None:
        if self._accept(text) is None:
            shown = repr(self._token.text) if self._token.text else "the end"
            raise self._error(f"expected {text!r}, got {shown}")

    def _error(self, fault: str) -> ExpressionError:
        return ExpressionError(self.text, fault, self._token.column)

    def _disjunction(self) -> _Term:
        first = self._conjunction()
        terms = [first]
        while self._accept("or"):
            terms.append(self._conjunction())

        if len(terms) == 1:
            return first

        evaluate = any_of(self._logical(terms))
        distance = reduce_distances(min, list(map(_distance, terms)))
        return _Term(evaluate, first.column, logical=True, distance=distance)

    def _conjunction(self) -> _Term:
        first = self._negation()
        terms = [first]
        while self._accept("and"):
            terms.append(self._negation())

        if len(terms) == 1:
            return first

        evaluate = all_of(self._logical(terms))
        distance = reduce_distances(sum, list(map(_distance, terms)))
        return _Term(evaluate, first.column, logical=True, distance=distance)

    def _logical(self, terms: Sequence[_Term]) -> list[Evaluate]:
        """Return the terms of `and`, `or` and `not`, which must be true, false or a parameter."""
        evaluations = []
        for term in terms:
            if not term.logical and term.name is None:
                raise ExpressionError(
                    self.text, "and, or and not combine comparisons, and no numbers", term.column
                )

            evaluations.append(as_logical(term.evaluate, self.text))

        return evaluations

    def _negation(self) -> _Term:
        token = self._accept("not")
        if token is None:
            return self._comparison()

        self._enter()
        term = self._negation()
        self._depth -= 1
        (operand,) = self._logical([term])
        return _Term(negation_of(operand), token.column, logical=True)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"more than {DEEPEST} brackets within each other")

    def _comparison(self) -> _Term:
        left = self._sum()
        column = left.column
        parts: list[Evaluate] = []
        distances: list[Evaluate] = []
        while True:
            negated = self._token.text == "not" and self._tokens[self._next + 1].text == "in"
            if negated:
                self._next += 1

            token = self._accept("in", "==", "!=", *_COMPARISONS)
            if token is None:
                break

            right = self._list() if token.text == "in" else self._sum()
            self._note_comparison(token, left, right)
            part = self._compare(token, left, right, negated)
            parts.append(part)
            if token.text in _COMPARISONS:
                apart = distance_between(left.evaluate, right.evaluate)
                distances.append(distance_where_false(part, apart))
            else:
                distances.append(distance_of(part))

            left = right

        if not parts:
            return left

        evaluate = parts[0] if len(parts) == 1 else all_of(parts)
        return _Term(evaluate, column, logical=True, distance=reduce_distances(sum, distances))

    def _note_comparison(self, token: ExpressionToken, left: _Term, right: _Term) -> None:
        """Remember a comparison of one parameter with constants."""
        ordered = token.text in _COMPARISONS
        for term, other in ((left, right), (right, left)):
            if term.name is not None and other.constant is not None:
                (constant,) = other.constant
                values = tuple(constant) if token.text == "in" else (constant,)
                self.comparisons.append(
                    ConstantComparison(term.name, values, ordered, token.column)
                )

    def _compare(
        self, token: ExpressionToken, left: _Term, right: _Term, negated: bool
    ) -> Evaluate:
        if token.text == "in":
            member = member_of(left.evaluate, right.evaluate)
            return negation_of(member) if negated else member

        if token.text == "==":
            return equal(left.evaluate, right.evaluate)

        if token.text == "!=":
            return negation_of(equal(left.evaluate, right.evaluate))

        return self._calculate(_COMPARISONS[token.text], token, [left.evaluate, right.evaluate])

    def _sum(self) -> _Term:
        return self._left_to_right(_SUMS, self._product)

    def _product(self) -> _Term:
        return self._left_to_right(_PRODUCTS, self._sign)

    def _left_to_right(
        self, operations: Mapping[str, Callable[[Any, Any], Any]], operand: Callable[[], _Term]
    ) -> _Term:
        left = operand()
        while token := self._accept(*operations):
            right = operand()
            evaluate = self._calculate(
                operations[token.text], token, [left.evaluate, right.evaluate]
            )
            left = _Term(evaluate, left.column)

        return left

    def _sign(self) -> _Term:
        token = self._accept("-")
        if token is None:
            return self._exponent()

        self._enter()
        term = self._sign()
        self._depth -= 1
        if term.constant is not None and is_number(term.constant[0]):
            return _constant(-term.constant[0], token.column)

        return _Term(self._calculate(operator.neg, token, [term.evaluate]), token.column)

    def _exponent(self) -> _Term:
        base = self._value()
        token = self._accept("**")
        if token is None:
            return base

        self._enter()
        exponent = self._sign()
        self._depth -= 1
        evaluate = self._calculate(_power, token, [base.evaluate, exponent.evaluate])
        return _Term(evaluate, base.column)

    def _calculate(
        self, function: Callable[..., Any], token: ExpressionToken, operands: Sequence[Evaluate]
    ) -> Evaluate:
        """Return an operation on numbers, with a message for values that it is not defined for."""

        def evaluate(configuration: Mapping[str, Any]) -> Any:
            values = []
            for operand in operands:
                value = operand(configuration)
                if value is UNKNOWN:
                    return UNKNOWN

                if not is_number(value):
                    raise ExpressionError(
                        self.text, f"{token.text} needs numbers, got {value!r}", token.column
                    )

                values.append(value)

            try:
                return function(*values)
            except (ArithmeticError, ValueError):
                shown = ", ".join(map(repr, values))
                raise ExpressionError(
                    self.text, f"{token.text} of {shown} has no value", token.column
                ) from None

        return evaluate

    def _value(self) -> _Term:
        token = self._token
        self._next += 1
        if token.kind == "number":
            return _constant(_number(token.text), token.column)

        if token.kind == "text":
            return _constant(token.text[1:-1], token.column)

        if token.kind == "name" and token.text in CONSTANTS:
            return _constant(CONSTANTS[token.text], token.column)

        if token.kind == "name" and token.text not in WORDS:
            return self._call(token) if self._token.text == "(" else self._parameter(token)

        if token.text == "(":
            self._enter()
            term = self._disjunction()
            self._depth -= 1
            self._expect(")")
            return term

        self._next -= 1
        shown = repr(token.text) if token.text else "the end"
        raise self._error(f"expected a value, got {shown}")

    def _parameter(self, token: ExpressionToken) -> _Term:
        name = self.resolve(token.text)
        if name is None:
            raise ExpressionError(self.text, f"there is no parameter {token.text!r}", token.column)

        self.names.setdefault(name)
        return _Term(
            lambda configuration: configuration.get(name, UNKNOWN), token.column, name=name
        )

    def _call(self, token: ExpressionToken) -> _Term:
        if token.text not in _FUNCTIONS:
            raise ExpressionError(
                self.text,
                f"there is no function {token.text}: known are {', '.join(_FUNCTIONS)}",
                token.column,
            )

        self._enter()
        arguments = self._items("(", ")")
        self._depth -= 1
        fewest, most, function = _FUNCTIONS[token.text]
        if not fewest <= len(arguments) <= most:
            raise ExpressionError(
                self.text, f"{token.text} takes {fewest} value, got {len(arguments)}", token.column
            )

        operands = [argument.evaluate for argument in arguments]
        if len(operands) == 1 and function in (min, max):
            return _Term(operands[0], token.column)

        return _Term(self._calculate(function, token, operands), token.column)

    def _list(self) -> _Term:
        column = self._token.column
        if self._token.text != "[":
            raise self._error("in needs a list, such as [3, 5]")

        values = []
        for item in self._items("[", "]"):
            if item.constant is None:
                raise ExpressionError(self.text, "a list holds constants", item.column)

            values.append(item.constant[0])

        return _constant(tuple(values), column)

    def _items(self, opening: str, closing: str) -> list[_Term]:
        self._expect(opening)
        items = [self._sum()]
        while self._accept(","):
            items.append(self._sum())
            if len(items) > MOST_ITEMS:
                raise self._error(f"a list holds at most {MOST_ITEMS} values")

        self._expect(closing)
        return items


def _distance(term: _Term) -> Evaluate:
    return distance_of(term.evaluate) if term.distance is None else term.distance


def _constant(value: Any, column: int) -> _Term:
    logical = isinstance(value, bool)
    return _Term(lambda _: value, column, logical=logical, constant=(value,))


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)
