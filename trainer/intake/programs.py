"""A traced model as a graph: its inputs, tensors, outputs, and the buffers that it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind


class ModelTensor(NamedTuple):
    """A tensor of a model.

    Attributes:
        name: Its name in the model.
        values: The tensor.
        trained: Whether it is a parameter.
    """

    name: str
    values: torch.Tensor
    trained: bool


@dataclass(frozen=True)
class Program:
    """A traced model.

    Attributes:
        graph: Its nodes.
        inputs: Nodes of the user's inputs.
        tensors: Node of a weight or a buffer to the tensor.
        outputs: Values that the model returns.
        changes: Name of each buffer that the model changes to the node of its new values.
        names: Names of all tensors of the model's state.
    """

    graph: fx.Graph
    inputs: list[fx.Node]
    tensors: dict[fx.Node, ModelTensor]
    outputs: list[Any]
    changes: dict[str, fx.Node]
    names: frozenset[str]

    @property
    def batch(self) -> Any:
        """The number of inputs in a batch: a symbol, or a number where it is fixed."""
        side = self.inputs[0].meta["val"].shape[0]
        return side if isinstance(side, int) else side.node.expr

    @property
    def output_nodes(self) -> list[fx.Node]:
        """The outputs that are computed; the model may return constants, too."""
        return [value for value in self.outputs if isinstance(value, fx.Node)]


def read_program(program: ExportedProgram) -> Program:
    """Return the graph of an exported program, which it shares."""
    inputs: list[fx.Node] = []
    tensors: dict[fx.Node, ModelTensor] = {}
    by_name = {**program.state_dict, **program.constants}
    nodes = {node.name: node for node in program.graph.nodes}
    placeholders = program.graph.find_nodes(op="placeholder")
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if spec.kind is InputKind.USER_INPUT:
            inputs.append(node)
        elif spec.target is not None:
            trained = spec.kind is InputKind.PARAMETER
            tensors[node] = ModelTensor(spec.target, by_name[spec.target], trained)

    outputs = []
    values: Any = program.graph.output_node().args[0]
    for value, spec in zip(values, program.graph_signature.output_specs, strict=True):
        if spec.kind is OutputKind.USER_OUTPUT:
            outputs.append(value)

    changes = {
        target: nodes[name] for name, target in program.graph_signature.buffers_to_mutate.items()
    }
    return Program(program.graph, inputs, tensors, outputs, changes, frozenset(program.state_dict))
