"""Traces of a model: `torch.export` in one mode, without regions, and with stand-ins."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx, nn
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind

from archive.architecture.aten.wiring import Input
from archive.trainer.intake import stand_ins
from archive.trainer.intake.merging import changes_unseen

# Not 1, which torch.export would take for a constant.
BATCH = 2

_CHANGED_IN_PLACE = (
    "dropout",
    "feature_dropout",
    "alpha_dropout",
    "feature_alpha_dropout",
    "rrelu",
)


def trace(model: nn.Module, examples: Sequence[torch.Tensor]) -> ExportedProgram:
    """Return the operations of a model in the mode that it has."""
    collection: Any = torch.export.ShapesCollection
    batch = Dim("batch", min=1)
    shapes = collection()
    for example in examples:
        # By tensor: a nested list would have to follow the signature of `forward`.
        shapes[example] = {0: batch}

    with torch.enable_grad(), _whole_recurrent_layers():
        program = torch.export.export(model, tuple(examples), dynamic_shapes=shapes, strict=False)

    _open_regions(program.graph_module)
    _replace_changes(program.graph)
    _recompile(program)
    return program


def examples_of(
    model: nn.Module, inputs: Sequence[Input], batch: int = BATCH
) -> tuple[torch.Tensor, ...]:
    """Return a batch of zeros for each input, on the device of the model."""
    device = device_of(model)
    examples: list[torch.Tensor] = []
    for spec in inputs:
        dtype = getattr(torch, spec.dtype)
        examples.append(torch.zeros((batch, *spec.shape), dtype=dtype, device=device))

    return tuple(examples)


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model's first tensor; the CPU for a model without tensors."""
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device

    return torch.device("cpu")


@contextmanager
def readers_of_mode() -> Iterator[set[nn.Module]]:
    """Collect the modules that have their mode read meanwhile."""
    readers: set[nn.Module] = set()

    def read(module: nn.Module) -> bool:
        readers.add(module)
        return bool(module.__dict__["training"])

    def write(module: nn.Module, mode: bool) -> None:
        module.__dict__["training"] = mode

    # A property of the class comes before the attribute of the object.
    nn.Module.training = property(read, write)  # type: ignore[assignment]
    try:
        yield readers
    finally:
        del nn.Module.training


@contextmanager
def own_gradients() -> Iterator[set[str]]:
    """Collect the names of custom autograd functions that run meanwhile."""
    names: set[str] = set()
    function: Any = torch.autograd.Function
    apply = function.__dict__["apply"]

    def apply_and_note(cls: Any, *inputs: Any, **settings: Any) -> Any:
        if not cls.__module__.startswith("torch."):
            names.add(cls.__name__)

        return apply.__get__(None, cls)(*inputs, **settings)

    function.apply = classmethod(apply_and_note)
    try:
        yield names
    finally:
        function.apply = apply


class _Recurrent:
    """Functions of recurrent layers: stand-ins, or PyTorch's functions for packed sequences."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._functions, name)
        if name not in stand_ins.RECURRENT:
            return function

        def call(*arguments: Any) -> Any:
            packed = not isinstance(arguments[3], bool)
            return function(*arguments) if packed else stand_ins.get(name)(*arguments)

        return call


@contextmanager
def _whole_recurrent_layers() -> Iterator[None]:
    """Trace recurrent layers as one operation: PyTorch would write out their steps, one by one."""
    module: Any = torch.nn.modules.rnn
    functions = module._VF
    module._VF = _Recurrent(functions)
    try:
        yield
    finally:
        module._VF = functions


def trained_values(program: ExportedProgram) -> set[fx.Node]:
    """Return the nodes through which a gradient reaches a parameter."""
    reached: set[fx.Node] = set()
    specs = iter(program.graph_signature.input_specs)
    for node in program.graph.nodes:
        if node.op == "placeholder":
            if next(specs).kind is InputKind.PARAMETER:
                reached.add(node)

            continue

        value = node.meta.get("val")
        is_tensor = isinstance(value, torch.Tensor)
        real = not is_tensor or value.is_floating_point() or value.is_complex()
        stops = node.target in (torch.ops.aten.detach.default, torch.ops.aten.detach_.default)
        if real and not stops and any(source in reached for source in node.all_input_nodes):
            reached.add(node)

    return reached


def _recompile(program: ExportedProgram) -> None:
    program.graph.lint()
    program.graph_module.recompile()


def _open_regions(module: fx.GraphModule) -> None:
    """Write the operations of regions without gradients into the graph, with detached outputs."""
    graph = module.graph
    wrapper = torch.ops.higher_order.wrap_with_set_grad_enabled
    for node in graph.find_nodes(op="call_function", target=wrapper):
        enabled, body, *arguments = node.args
        inner = getattr(module, body.target)
        _open_regions(inner)
        placeholders = inner.graph.find_nodes(op="placeholder")
        values = dict(zip(placeholders, arguments, strict=True))
        with graph.inserting_before(node):
            for inner_node in inner.graph.nodes:
                if inner_node.op == "get_attr":
                    name = f"{body.target}_{inner_node.target}".replace(".", "_")
                    setattr(module, name, getattr(inner, inner_node.target))
                    values[inner_node] = graph.get_attr(name)
                elif inner_node.op == "call_function":
                    values[inner_node] = graph.node_copy(inner_node, values.__getitem__)

            outputs = fx.node.map_arg(inner.graph.output_node().args[0], values.__getitem__)
            if not enabled:
                outputs = [_detach(graph, value) for value in outputs]

        for user in list(node.users):
            assert user.target is operator.getitem
            user.replace_all_uses_with(outputs[user.args[1]])
            graph.erase_node(user)

        graph.erase_node(node)
        if not body.users:
            graph.erase_node(body)


def _detach(graph: fx.Graph, value: Any) -> Any:
    if not isinstance(value, fx.Node) or not isinstance(value.meta.get("val"), torch.Tensor):
        return value

    node = graph.call_function(torch.ops.aten.detach.default, (value,))
    node.meta.update(value.meta)
    return node


def _replace_changes(graph: fx.Graph) -> None:
    """Replace operations that follow the mode and change their input.

    Their result is copied into the input if anything else reads the input.
    """
    for node in list(graph.nodes):
        for name in _CHANGED_IN_PLACE:
            changing = getattr(torch.ops.aten, f"{name}_").default
            if node.op != "call_function" or node.target is not changing:
                continue

            source = node.args[0]
            assert isinstance(source, fx.Node)
            unseen = changes_unseen(node)
            with graph.inserting_before(node):
                result = graph.call_function(
                    getattr(torch.ops.aten, name).default, node.args, node.kwargs
                )

            result.meta.update(node.meta)
            if unseen:
                node.replace_all_uses_with(result)
                graph.erase_node(node)
                continue

            with graph.inserting_before(node):
                copy = graph.call_function(torch.ops.aten.copy_.default, (source, result))

            copy.meta.update(node.meta)
            node.replace_all_uses_with(copy)
            graph.erase_node(node)
