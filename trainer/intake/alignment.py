"""Alignment of the programs of a model in evaluation mode and in training mode.

Nodes of the two programs are the same operation where both have the same settings, belong to the
same module and give tensors of the same shape, in the same order. Their inputs may differ.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any

import torch
from torch import fx

from archive.trainer.intake.programs import Program
from archive.trainer.intake.settings import arguments_of
from archive.trainer.intake.stand_ins import MODES, RECURRENT

Pairs = dict[fx.Node, fx.Node]
"""Node in training to the same node in evaluation."""

MODE_ARGUMENTS = {
    **MODES,
    **dict.fromkeys(RECURRENT, "train"),
    "scaled_dot_product_attention": "dropout_p",
}
"""Operation to the argument that differs with the mode."""


def align(evaluation: Program, training: Program) -> Pairs:
    """Return the nodes that both programs have."""
    pairs = _pair_tensors(evaluation, training)
    before = _calls(training)
    after = _calls(evaluation)
    matcher = SequenceMatcher(
        None, _labels(before, training), _labels(after, evaluation), autojunk=False
    )
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            node = before[block.a + offset]
            other = after[block.b + offset]
            if _fits(node, other, pairs):
                pairs[node] = other

    return pairs


def arguments(node: fx.Node, other: fx.Node) -> Iterator[tuple[fx.Node, fx.Node]]:
    """Yield the inputs of two nodes with the same label, in order."""
    yield from zip(_inputs(node), _inputs(other), strict=True)


def settings_of(node: fx.Node) -> dict[str, Any]:
    """Return all arguments of a node, with defaults, by the names of the parameters."""
    values = arguments_of(node)
    by_name = {}
    for argument in node.target._schema.arguments:  # type: ignore[union-attr]
        if argument.name in values or argument.has_default_value():
            by_name[argument.name] = values.get(argument.name, argument.default_value)

    return by_name


def _pair_tensors(evaluation: Program, training: Program) -> Pairs:
    """Return the pairs of inputs and of tensors.

    Constants have a number for a name, which may differ.
    """
    pairs = dict(zip(training.inputs, evaluation.inputs, strict=True))
    by_name = {tensor.name: node for node, tensor in evaluation.tensors.items()}
    for node, tensor in training.tensors.items():
        other = by_name.get(tensor.name)
        if other is not None and (
            tensor.name in training.names
            or _is_equal(evaluation.tensors[other].values, tensor.values)
        ):
            pairs[node] = other
            continue

        for candidate, values in evaluation.tensors.items():
            if values.name not in evaluation.names and _is_equal(values.values, tensor.values):
                pairs[node] = candidate
                break

    return pairs


def _is_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.is_meta or second.is_meta:
        return first is second

    return (
        first.dtype == second.dtype and first.shape == second.shape and torch.equal(first, second)
    )


def _calls(program: Program) -> list[fx.Node]:
    return [node for node in program.graph.nodes if node.op == "call_function"]


def _labels(nodes: list[fx.Node], program: Program) -> list[tuple[str, ...]]:
    return [_label(node, program) for node in nodes]


def _label(node: fx.Node, program: Program) -> tuple[str, ...]:
    if isinstance(node.target, torch._ops.OpOverload):
        name = node.target._schema.name.partition("::")[2]
        values = settings_of(node)
        values.pop(MODE_ARGUMENTS.get(name, ""), None)
    else:
        name = getattr(node.target, "__name__", str(node.target))
        values = {str(number): value for number, value in enumerate(node.args)}

    symbol = str(program.batch)
    settings = repr(fx.node.map_aggregate(values, _describe_value)).replace(symbol, "batch")
    return (
        str(node.target),
        settings,
        _module(node),
        _form(node.meta.get("val")).replace(symbol, "batch"),
    )


def _describe_value(value: Any) -> Any:
    if isinstance(value, fx.Node):
        size = value.meta.get("val")
        return str(size) if isinstance(size, (torch.SymInt, torch.SymFloat)) else "tensor"

    return str(value) if isinstance(value, (torch.SymInt, torch.SymFloat)) else value


def _module(node: fx.Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    return str(next(reversed(stack), ""))


def _form(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{tuple(value.shape)} {value.dtype}"

    return str(len(value)) if isinstance(value, (list, tuple)) else type(value).__name__


def _fits(node: fx.Node, other: fx.Node, pairs: Pairs) -> bool:
    """Return whether two nodes have the same inputs, or tensors between which a mode can choose."""
    for source, target in arguments(node, other):
        if pairs.get(source) is target or not isinstance(
            target.meta.get("val"), (torch.Tensor, list, tuple)
        ):
            continue

        if not is_choice(source, target):
            return False

    if node.target is not operator.getitem:
        return True

    return are_paired(arguments(node, other), pairs)


def are_paired(nodes: Iterable[tuple[fx.Node, fx.Node]], pairs: Pairs) -> bool:
    """Return whether each node in training is the same as its node in evaluation."""
    return all(pairs.get(source) is target for source, target in nodes)


def is_choice(source: fx.Node, target: fx.Node) -> bool:
    """Return whether two nodes give tensors of one shape and type."""
    first = source.meta.get("val")
    second = target.meta.get("val")
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return False

    return first.dtype == second.dtype and first.ndim == second.ndim


def _inputs(node: fx.Node) -> list[fx.Node]:
    listed: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), listed.append)
    if isinstance(node.target, torch._ops.OpOverload):
        listed = []
        fx.node.map_arg(settings_of(node), listed.append)

    return listed
