"""Decomposition of a traced model to the core set of ATen and the operations that are kept.

    nodes of a trace ──decompose──> operations of the core set and of `KEPT`

PyTorch decomposes a program by tracing the whole of it once more, which takes as long as the first
trace. A deep network repeats few calls: the same operation on the same shapes with the same
settings. Here each such call is traced once, alone, and its nodes are copied to the place of every
other. The result is the same, provided that nothing changes a tensor in place, since only then each
call stands alone. Other programs are decomposed by PyTorch.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses import functional_tensor
from torch.export import ExportedProgram, exported_program
from torch.export.graph_signature import OutputKind
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_map_only

from archive.trainer.intake.merging import changes_unseen
from archive.trainer.intake.programs import Program, read_program
from archive.trainer.intake.settings import is_stand_in
from archive.trainer.intake.signatures import DECOMPOSED, KEPT


def decompose(program: ExportedProgram) -> Program:
    """Return a program after its decomposition.

    `run_decompositions` overrides all composite operations of PyTorch meanwhile, which takes longer
    than the rest of the import of a small model. They decompose by themselves: only those that are
    kept need an override.
    """
    torch_export: Any = exported_program
    with torch.no_grad():
        try:
            kept, table = _overrides()
            targets = _functional_targets(program)
            if targets is not None:
                program_of_calls = _decompose_calls(program, targets, kept, table)
                if program_of_calls is not None:
                    return program_of_calls

            decomposed: ExportedProgram = torch_export._decompose_exported_program(
                program,
                cia_to_decomp=kept,
                python_decomp_table=dict(table),
                joint_loss_index=None,
                decompose_custom_triton_ops=False,
            )
        except (AttributeError, TypeError):
            # Private functions, which another release of PyTorch may lack or change.
            decomposed = program.run_decompositions(_table())

    return read_program(decomposed)


@cache
def _overrides() -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return the kept composite operations with their override, and the other decompositions."""
    torch_export: Any = exported_program
    composite, table = torch_export._split_decomp_table_to_cia_and_python_decomp(dict(_table()))
    keeps = torch_export._special_op_to_preserve_cia
    return {op: override for op, override in composite.items() if override is keeps}, table


def _table() -> Any:
    """Return the decompositions to the core set, without decompositions of kept operations."""
    table: Any = torch.export.default_decompositions()
    for name in set(KEPT) - {*DECOMPOSED}:
        base, _, overload = name.partition(".")
        table.pop(getattr(getattr(torch.ops.aten, base), overload or "default"), None)

    return table


def _functional_targets(program: ExportedProgram) -> dict[fx.Node, Any] | None:
    """Return the changes in place that nothing sees, with the operations that return their result.

    Returns:
        None if the calls of the program cannot be decomposed one by one.
    """
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            return None

    targets: dict[fx.Node, Any] = {}
    for node in program.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue

        if node.op != "call_function":
            return None

        if not isinstance(node.target, torch._ops.OpOverload):
            if node.target in _PLAIN:
                continue

            return None

        if node.target._schema.is_mutable and not is_stand_in(node):
            functional = _functional(node.target)
            if functional is None or not changes_unseen(node):
                return None

            targets[node] = functional

    return targets


_PLAIN = frozenset(
    [
        operator.getitem,
        operator.add,
        operator.sub,
        operator.mul,
        operator.floordiv,
        operator.neg,
        torch.sym_int,
    ]
)
"""Functions of numbers and of lists, which have no decomposition."""


def _functional(target: Any) -> Any:
    """Return the operation that returns what another one writes into its input; None without."""
    name = target._schema.name.partition("::")[2]
    if target.namespace != "aten" or not name.endswith("_") or name.startswith("__"):
        return None

    packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
    functional = getattr(packet, target._overloadname, None)
    if functional is None or functional._schema.is_mutable:
        return None

    mine = [argument.name for argument in target._schema.arguments]
    others = [argument.name for argument in functional._schema.arguments]
    return functional if mine == others else None


def _decompose_calls(
    program: ExportedProgram, targets: Mapping[fx.Node, Any], kept: Any, table: Any
) -> Program | None:
    """Return a program, call by call, in a new graph; None if a call needs tensors of its own."""
    torch_export: Any = exported_program
    graph = fx.Graph()
    values: dict[fx.Node, Any] = {}
    decompositions: dict[Hashable, fx.Graph] = {}
    fake_mode = torch_export._detect_fake_mode_from_gm(program.graph_module)
    with fake_mode, torch_export._override_composite_implicit_decomp(kept):
        for node in program.graph.nodes:
            if node.target is operator.getitem and not isinstance(values[node.args[0]], fx.Node):
                values[node] = values[node.args[0]][node.args[1]]
                continue

            if not isinstance(node.target, torch._ops.OpOverload) or is_stand_in(node):
                values[node] = graph.node_copy(node, values.__getitem__)
                continue

            call = _read_call(node, targets.get(node, node.target), values)
            if call.key not in decompositions:
                decompositions[call.key] = _trace_call(call, table)

            decomposition = decompositions[call.key]
            if decomposition.find_nodes(op="get_attr"):
                return None

            values[node] = _write(graph, node, call.sources, decomposition)

    graph.eliminate_dead_code()
    graph.lint()
    traced = read_program(program)
    outputs: Any = graph.output_node().args[0]
    return replace(
        traced,
        graph=graph,
        inputs=[values[node] for node in traced.inputs],
        tensors={values[node]: tensor for node, tensor in traced.tensors.items()},
        outputs=list(outputs),
    )


class _Place(NamedTuple):
    """A value in the arguments of a call, by its position among the sources."""

    position: int


class _OperationCall(NamedTuple):
    """A call of an operation.

    Attributes:
        target: The operation.
        arguments: Its arguments and its keywords, with a `_Place` for each source.
        sources: Nodes of the tensors and symbolic numbers among the arguments.
        key: Equal for calls with the same decomposition.
    """

    target: Any
    arguments: Any
    sources: list[fx.Node]
    key: Hashable


def _read_call(node: fx.Node, target: Any, values: Mapping[fx.Node, Any]) -> _OperationCall:
    sources: list[fx.Node] = []

    def place(source: fx.Node) -> Any:
        value = values[source]
        if value not in sources:
            sources.append(value)

        return _Place(sources.index(value))

    arguments = fx.node.map_arg((node.args, node.kwargs), place)
    forms = tuple(_describe_value(source.meta["val"]) for source in sources)
    return _OperationCall(target, arguments, sources, (target, repr(arguments), forms))


def _describe_value(value: Any) -> Hashable:
    if not isinstance(value, torch.Tensor):
        return str(value)

    layout = tuple(str(side) for side in (*value.shape, *value.stride()))
    return (layout, value.dtype, value.device, value.requires_grad)


def _trace_call(call: _OperationCall, table: Any) -> fx.Graph:
    def run(*values: Any) -> Any:
        arguments, keywords = tree_map_only(
            _Place,
            lambda place: values[place.position],
            call.arguments,
            is_leaf=lambda part: isinstance(part, _Place),
        )
        return call.target(*arguments, **keywords)

    # Nodes of one decomposition share their value, and the tracer tells inputs apart by it.
    inputs: list[Any] = []
    for source in call.sources:
        value = source.meta["val"]
        if isinstance(value, torch.Tensor):
            value = torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device=value.device
            )

        inputs.append(value)

    mode = functional_tensor.FunctionalTensorMode(export=True)
    functional = functional_tensor.dispatch_functionalize(run, mode)
    with enable_python_dispatcher():
        return make_fx(functional, decomposition_table=table)(*inputs).graph


def _write(
    graph: fx.Graph, node: fx.Node, sources: Sequence[fx.Node], decomposition: fx.Graph
) -> Any:
    """Append a decomposition in place of a call, and return the value of the call."""
    placeholders = decomposition.find_nodes(op="placeholder")
    copies: dict[fx.Node, Any] = dict(zip(placeholders, sources, strict=True))
    for part in decomposition.nodes:
        if part.op != "call_function":
            continue

        copy = graph.node_copy(part, copies.__getitem__)
        copy.meta = {**node.meta, "val": part.meta.get("val")}
        copies[part] = copy

    return fx.node.map_arg(decomposition.output_node().args[0], copies.__getitem__)
