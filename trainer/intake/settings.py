"""Arguments of an operation of an exported program as attributes of a layer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from archive.architecture.aten import recurrent
from archive.architecture.aten.signature import OperationParameter
from archive.architecture.aten.sizes import BATCH, is_number_text, is_size
from archive.errors import UsageError
from archive.trainer.intake import stand_ins

# The largest index, which stands for the end of a side.
_END = 2**63 - 1
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\w+)\s+(.*)')
# Longest name of a layer, as in the codec.
_MOST_NAME = 100


class AttributeConversion:
    """Conversion of arguments to attributes.

    Args:
        symbol: The symbol of the number of inputs in a batch; None if it is fixed.
    """

    def __init__(self, symbol: Any) -> None:
        """Keep the symbol."""
        self._symbol = symbol

    def of(self, node: fx.Node, parameter: OperationParameter, value: Any) -> Any:
        """Return the attribute of one argument.

        Raises:
            UsageError: It depends on a size that is not the batch, or is of a kind that no
                attribute has.
        """
        if name_of(node) == "view":
            # Not as it is written: -1 may be there for any side.
            value = node.meta["val"].shape

        if isinstance(value, (list, tuple)):
            return self._list(node, [self._convert(node, item) for item in value])

        return self._convert(node, value)

    def number(self, node: fx.Node, value: Any) -> Any:
        """Return the attribute of a number in place of a tensor: a number, or the text of a size.

        Raises:
            UsageError: It depends on a size that is not the batch.
        """
        return self._convert(node, value)

    def _list(self, node: fx.Node, values: list[Any]) -> list[Any]:
        # Lists of the database hold values of one kind.
        symbolic: list[int] = []
        for axis, value in enumerate(values):
            if isinstance(value, str):
                symbolic.append(axis)

        if symbolic and name_of(node) == "expand":
            for axis in range(len(values)):
                if _keeps_side(node, axis):
                    values[axis] = -1

            symbolic = [axis for axis in symbolic if values[axis] != -1]

        if not symbolic:
            return values

        if name_of(node) == "view" and len(symbolic) == 1:
            values[symbolic[0]] = -1
            return values

        return list(map(str, values))

    def _convert(self, node: fx.Node, value: Any) -> Any:
        if isinstance(value, fx.Node):
            value = value.meta["val"]

        if isinstance(value, torch.SymInt):
            return self._size(node, value.node.expr)

        if isinstance(value, torch.SymFloat):
            return self._real(node, value.node.expr)

        if isinstance(value, float) and not math.isfinite(value):
            return str(value)

        if isinstance(value, torch.dtype):
            return str(value).removeprefix("torch.")

        if isinstance(value, (bool, int, float, str)):
            return value

        raise UsageError(
            f"{name_of(node)} has an argument that no attribute can hold: "
            f"{value!r:.60}{place(node)}"
        )

    def _size(self, node: fx.Node, expression: Any) -> int | str:
        if expression.is_number:
            return int(expression)

        text = str(expression).replace(str(self._symbol), BATCH)
        if expression.free_symbols != {self._symbol} or not is_size(text):
            raise UsageError(
                f"{name_of(node)} has a size that depends on values of a tensor: "
                f"{text:.60}{place(node)}"
            )

        return text

    def _real(self, node: fx.Node, expression: Any) -> float | str:
        if expression.is_number:
            return float(expression)

        text = _write(expression, str(self._symbol))
        if expression.free_symbols != {self._symbol} or text is None or not is_number_text(text):
            raise UsageError(
                f"{name_of(node)} has a number that no attribute can hold: "
                f"{expression!s:.60}{place(node)}"
            )

        return text


def is_number(node: fx.Node) -> bool:
    """Return whether a node is a size, or computed from sizes, and no tensor."""
    return isinstance(
        node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool, int, float)
    )


def is_stand_in(node: fx.Node) -> bool:
    """Return whether a node is a stand-in (`archive.trainer.intake.stand_ins`)."""
    return (
        isinstance(node.target, torch._ops.OpOverload)
        and node.target.namespace == stand_ins.NAMESPACE
    )


def _write(expression: Any, symbol: str) -> str | None:
    """Return the text of a real number that depends on the batch.

    None if no text has its operations.
    """
    name = type(expression).__name__
    if not expression.args:
        text = str(expression).replace(symbol, BATCH)
        # A fraction binds less than a power or a further division.
        return f"({text})" if text.startswith("-") or "/" in text else text

    written: list[str] = []
    for part in expression.args:
        operand = _write(part, symbol)
        if operand is None:
            return None

        written.append(operand)

    if name in ("ToFloat", "Identity"):
        return written[0]

    signs = {
        "Add": " + ",
        "Mul": "*",
        "FloatTrueDiv": "/",
        "IntTrueDiv": "/",
        "FloatPow": "**",
        "Pow": "**",
        "PowByNatural": "**",
        "FloorDiv": "//",
    }
    return f"({signs[name].join(written)})" if name in signs else None


def simplify(op: str, attributes: dict[str, Any]) -> None:
    """Remove the bounds of a slice that are the ends of the side."""
    if op in ("slice", "slice_scatter"):
        if attributes.get("start") == 0:
            del attributes["start"]

        if isinstance(end := attributes.get("end"), int) and end >= _END:
            del attributes["end"]


def name_of(node: fx.Node) -> str:
    """Return the name of a node's operation, without its overload."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.partition("::")[2]

    return getattr(target, "__name__", str(target))


def arguments_of(node: fx.Node) -> dict[str, Any]:
    """Return the arguments of a node by the names of the operation's parameters."""
    assert isinstance(node.target, torch._ops.OpOverload)
    names = parameter_names(node.target)
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def parameter_names(operation: torch._ops.OpOverload) -> list[str]:
    """Return the names of an operation's parameters, in order."""
    return [argument.name for argument in operation._schema.arguments]


def place(node: fx.Node) -> str:
    """Return a node's line of the model's code, for messages; empty if it is unknown."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return ""

    file, line, function, code = frames[-1]
    return f" (at {file.rpartition('/')[2]}:{line} in {function}: {code:.80})"


def module_name(node: fx.Node) -> str:
    """Return the name of the innermost module of the model that a node comes from."""
    stack = node.meta.get("nn_module_stack") or {}
    path = ""
    for entry in stack.values():
        path = str(entry[0])

    return path.removeprefix("L['self'].")[:_MOST_NAME]


def default_text(value: Any) -> str:
    """Return a value as signatures write defaults."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(default_text, value)) + "]"

    return f'"{value}"' if isinstance(value, str) else repr(value)


def recurrent_attributes(op: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the operation and the attributes of a recurrent layer.

    Args:
        op: PyTorch's operation: `lstm`, `gru`, `rnn_tanh` or `rnn_relu`.
        arguments: Its arguments by name.
    """
    name = op.partition("_")[0]
    inputs, states = arguments["params"][:2]
    first = inputs.meta["val"].shape
    second = states.meta["val"].shape
    settings: dict[str, Any] = {
        "input_size": int(first[1]),
        "hidden_size": int(first[0]) // recurrent.GATES[name],
        "num_layers": arguments["num_layers"],
        "bias": arguments["has_biases"],
        "batch_first": arguments["batch_first"],
        # Between layers: there is none behind the last.
        "dropout": float(arguments["dropout"]) if arguments["num_layers"] > 1 else 0.0,
        "bidirectional": arguments["bidirectional"],
    }
    if name == "lstm" and int(second[1]) != settings["hidden_size"]:
        settings["proj_size"] = int(second[1])

    if name == "rnn":
        settings["nonlinearity"] = op.partition("_")[2]

    return name, settings


def recurrent_states(arguments: Mapping[str, Any]) -> list[fx.Node]:
    """Return the states at the beginning."""
    state = arguments["hx"]
    return list(state) if isinstance(state, (list, tuple)) else [state]


def _keeps_side(node: fx.Node, axis: int) -> bool:
    """Return whether an expansion leaves a side as it is, which -1 says as well."""
    source = node.args[0]
    assert isinstance(source, fx.Node)
    before = source.meta["val"].shape
    after = node.meta["val"].shape
    offset = len(after) - len(before)
    return axis >= offset and bool(before[axis - offset] == after[axis])
