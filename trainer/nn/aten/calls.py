"""Calls of operations: arguments from the attributes of a layer and from earlier layers."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from archive.architecture.aten.signature import OperationParameter, Signature
from archive.architecture.aten.sizes import NON_FINITE, evaluate
from archive.architecture.graph import Layer


class OperationArguments:
    """Arguments of operations in a graph.

    Args:
        graph: The graph.
        first: Node of the first input.
    """

    def __init__(self, graph: fx.Graph, first: fx.Node) -> None:
        """Keep the graph; sizes are computed where they are used first."""
        self._graph = graph
        self._first = first
        self._shared: dict[Any, fx.Node] = {}

    def arguments(
        self, layer: Layer, signature: Signature, inputs: Mapping[int, fx.Node]
    ) -> dict[str, Any]:
        """Return the arguments of a layer by name, without tensors that the layer owns.

        Args:
            layer: The layer.
            signature: Its signature.
            inputs: Node of each numbered input.
        """
        by_name: dict[str, Any] = {}
        for number, parameter in enumerate(signature.tensors):
            value = layer.attributes.get(parameter.name)
            if parameter.listed:
                by_name[parameter.name] = _read_list(inputs, number)
            elif number in inputs:
                by_name[parameter.name] = inputs[number]
            elif isinstance(value, str):
                by_name[parameter.name] = self._read_value(parameter, value)
            elif not isinstance(value, tuple) and (value is not None or parameter.optional):
                by_name[parameter.name] = value

        for parameter in signature.parameters:
            if parameter.kind == "tensor":
                continue

            value = self._read_setting(layer, parameter)
            if value is not None or (parameter.optional and not parameter.default):
                by_name[parameter.name] = value

        in_order: dict[str, Any] = {}
        for parameter in signature.parameters:
            if parameter.name in by_name:
                in_order[parameter.name] = by_name[parameter.name]

        return in_order

    def _read_setting(self, layer: Layer, parameter: OperationParameter) -> Any:
        """Return one setting; None leaves it to PyTorch."""
        if parameter.name == "device":
            return self._share_node(
                "device", lambda: self._graph.call_function(getattr, (self._first, "device"))
            )

        if not parameter.kind:
            return None

        value: Any = layer.attributes.get(parameter.name)
        if value is None and parameter.name == "stride":
            value = layer.stride

        if value is None and parameter.name != "dtype" and parameter.default not in ("", "[]"):
            value = ast.literal_eval(parameter.default)

        if value is None:
            return None

        return (
            self._read_values(parameter, value)
            if parameter.listed
            else self._read_value(parameter, value)
        )

    def _read_values(self, parameter: OperationParameter, value: Any) -> list[Any]:
        if isinstance(value, (tuple, list)):
            return [self._read_value(parameter, item) for item in value]

        return [self._read_value(parameter, value)] * max(parameter.length, 1)

    def _read_value(self, parameter: OperationParameter, value: Any) -> Any:
        if not isinstance(value, str):
            return value

        if parameter.name == "dtype":
            return getattr(torch, value)

        if parameter.kind == "text":
            return value

        if value in NON_FINITE:
            return float(value)

        batch = self._share_node(
            "batch",
            lambda: self._graph.call_function(torch.ops.aten.sym_size.int, (self._first, 0)),
        )
        return self._share_node(value, lambda: evaluate(value, batch, self._compute))

    def _compute(self, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        if isinstance(left, fx.Node) or isinstance(right, fx.Node):
            return self._graph.call_function(function, (left, right))

        return function(left, right)

    def _share_node(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._shared:
            self._shared[key] = make()

        return self._shared[key]


def _read_list(inputs: Mapping[int, fx.Node], start: int) -> list[fx.Node | None]:
    """Return the nodes of the inputs from a number on; None for a number without an input."""
    end = start
    for number in inputs:
        end = max(end, number + 1)

    return [inputs.get(number) for number in range(start, end)]


def function_of(signature: Signature) -> Callable[..., Any]:
    """Return the function that a signature calls."""
    if signature.operation == "getitem":
        return operator.getitem

    special = _SPECIAL.get(signature.operation)
    if special is not None:
        return special

    packet = getattr(torch.ops.aten, signature.operation)
    function: Callable[..., Any] = getattr(packet, signature.overload or "default")
    return function


def _view(self: torch.Tensor, size: list[int]) -> torch.Tensor:
    """Return a tensor in another shape: a view where its layout allows one, else a copy."""
    return self.reshape(size)


def _view_memory(
    self: torch.Tensor, size: list[int], stride: list[int], storage_offset: int = 0
) -> torch.Tensor:
    """Return a window on a tensor's memory, in the order that it has in the exported model."""
    return self.contiguous().as_strided(size, stride, storage_offset)


def _detach(self: torch.Tensor) -> torch.Tensor:
    """Return the same values without their gradient."""
    return self.detach()


def _copy(self: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    """Return values in the shape and the type of a tensor; PyTorch's operation has no gradient."""
    return src.to(self.dtype).expand_as(self)


_SPECIAL: Mapping[str, Callable[..., Any]] = {
    "view": _view,
    "as_strided": _view_memory,
    "detach": _detach,
    "copy": _copy,
}
