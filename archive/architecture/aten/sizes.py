"""Sizes that depend on the number of inputs in a batch, as texts: `64*batch`, `batch + 1`.

Grammar: whole numbers, `batch`, +, -, *, // and parentheses. Real numbers have decimals, / and **
as well: `1/batch`, `batch**0.5`. A text may come from anywhere, so it is never evaluated as Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import Any, TypeVar

from archive.errors import InvalidArchitectureError

BATCH = "batch"
NON_FINITE = ("inf", "-inf", "nan")
"""Texts of the numbers that JSON does not have."""

_MOST_TEXT = 200
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def _power(base: Any, exponent: Any) -> Any:
    # Of real numbers, whose powers have a bounded length.
    return float(base) ** float(exponent)


_REAL: dict[type, Callable[[Any, Any], Any]] = {
    **_OPERATORS,
    ast.Div: operator.truediv,
    ast.Pow: _power,
}

T = TypeVar("T")


def is_size(text: str) -> bool:
    """Return whether a text is such a size."""
    return _is_text(text, real=False)


def is_number_text(text: str) -> bool:
    """Return whether a text is a real number that depends on the batch."""
    return _is_text(text, real=True)


def _is_text(text: str, *, real: bool) -> bool:
    try:
        _tree(text, real)
    except InvalidArchitectureError:
        return False

    return True


def evaluate(
    text: str, batch: T, apply: Callable[[Callable[[Any, Any], Any], Any, Any], Any] | None = None
) -> T | int:
    """Return the value of a size, or of a real number.

    Args:
        text: The text.
        batch: Value of `batch`: a number, or a symbol.
        apply: Called with an operator and its operands where they are symbols; None computes with
            numbers.

    Raises:
        InvalidArchitectureError: The text is no size.
        ZeroDivisionError: The text divides by zero.
        OverflowError: A power is too large.
    """
    call = apply or (lambda function, left, right: function(left, right))

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=number):
                return number
            case ast.Name():
                return batch
            case ast.UnaryOp(operand=operand):
                return call(operator.mul, -1, value(operand))
            case ast.BinOp(left=left, op=symbol, right=right):
                return call(_REAL[type(symbol)], value(left), value(right))

        raise AssertionError(node)

    return value(_tree(text, True))  # type: ignore[no-any-return]


@lru_cache(maxsize=4096)
def _tree(text: str, real: bool) -> ast.expr:
    if len(text) <= _MOST_TEXT:
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            tree = None

        if tree is not None and all(_allowed(node, real) for node in ast.walk(tree)):
            return tree

    raise InvalidArchitectureError(
        f"a size is a whole number, or such as 64*{BATCH}, got {text!r:.60}"
    )


def _allowed(node: ast.AST, real: bool) -> bool:
    operators = _REAL if real else _OPERATORS
    match node:
        case ast.Constant(value=value):
            return (type(value) is int and abs(value) < 2**63) or (
                real and type(value) is float and isfinite(value)
            )
        case ast.Name(id=name):
            return name == BATCH
        case ast.UnaryOp(op=ast.USub()):
            return True
        case ast.BinOp(op=symbol):
            return type(symbol) in operators

    return isinstance(node, (ast.Load, ast.USub, *operators))
