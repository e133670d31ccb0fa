"""Operators of ONNX by name, as functions of PyTorch."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from archive.errors import UsageError
from archive.trainer.intake.onnx_graphs import elementwise, resizing, shapes, weighted
from archive.trainer.intake.onnx_graphs.values import Call

Function = Callable[[Call], Any]

FUNCTIONS: dict[str, Function] = {
    **elementwise.FUNCTIONS,
    **resizing.FUNCTIONS,
    **shapes.FUNCTIONS,
    **weighted.FUNCTIONS,
}
"""Operator to its function; what has constants alone is in `sizes` as well."""

ON_SIZES = ("Shape", "Range", "Constant")


def check(name: str) -> None:
    """Check that an operator is known.

    Raises:
        UsageError: It is not.
    """
    if name not in FUNCTIONS and name not in ON_SIZES:
        near = difflib.get_close_matches(name, FUNCTIONS, 3)
        hint = f"; known ones like it: {', '.join(near)}" if near else ""
        raise UsageError(
            f"the ONNX operator {name!r:.60} has no counterpart here{hint}: import the model "
            "from PyTorch, or write it "
            "with other operators"
        )


def get(call: Call) -> Function:
    """Return the function of an operator.

    Raises:
        UsageError: It works on constants and sizes alone, and has a tensor.
    """
    if call.op not in FUNCTIONS:
        raise call.fault("depends on values of a tensor")

    return FUNCTIONS[call.op]
