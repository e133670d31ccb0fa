"""Conversion of an exported program to an architecture of the space `torch`.

| program                                      | architecture                                                     |
|----------------------------------------------|------------------------------------------------------------------|
| operation                                    | layer; its settings are attributes, without defaults             |
| tensor input                                 | edge with the number of the input                                |
| weight that one layer uses                   | attribute of that layer: the shape                               |
| other parameter                              | layer `parameter`                                                |
| buffer or tensor that the model fixes        | layer `constant`, with its content                               |
| first of several outputs                     | the layer itself; `getitem` for the others                       |
| size that depends on the batch               | text, such as `64*batch`; -1 in a view                           |
| copies, checks, sizes, places of tensors     | nothing                                                          |
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from archive.architecture.aten import weights
from archive.architecture.aten.signature import OperationParameter, Signature, signatures
from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.spaces.aten import packed
from archive.trainer.intake.draft import Draft
from archive.trainer.intake.settings import AttributeConversion, arguments_of, name_of, place, simplify

MOST_CONTENT = 2**20
"""Largest constant of an architecture, in characters of its compressed text."""

Names = dict[tuple[int, str], str]
"""Name in the model of each tensor, by the position of its layer and its attribute (`shape` of a `parameter`)."""

# Copies: a tensor's place and layout in memory are no part of an architecture.
_COPIES = frozenset(["clone", "alias", "detach", "lift_fresh_copy", "contiguous"])


def converted(program: ExportedProgram, inputs: Sequence[Input]) -> tuple[Architecture, Names]:
    """Return the architecture of a program, and the model's name of each of its tensors.

    Raises:
        UsageError: The program has an operation, a size or a buffer that an architecture cannot have.
    """
    return _Conversion(program, inputs).result()


class _Conversion:
    """State of one conversion.

    Attributes:
        at: Node to the position of the layer whose output it is.
        tensors: Node of a weight or a buffer to the tensor's name, value, and whether it is trained.
        changed: Names of buffers that the model changes in evaluation mode, and on which its outputs depend.
    """

    def __init__(self, program: ExportedProgram, inputs: Sequence[Input]) -> None:
        self.program = program
        self.draft = Draft()
        self.tensors: dict[fx.Node, tuple[str, torch.Tensor, bool]] = {}
        nodes = program.graph.nodes
        self.uses = Counter(source for node in nodes if node.op != "output" for source in node.all_input_nodes)
        self.changed = self._changed_buffers()
        users = self._placeholders()
        self.at = dict(zip(users, self.draft.begin(inputs), strict=True))
        batch = users[0].meta["val"].shape[0]
        self.settings = AttributeConversion(None if isinstance(batch, int) else batch.node.expr)

    def result(self) -> tuple[Architecture, Names]:
        """Convert all nodes in order."""
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self._call(node)
        return self.draft.end(self._outputs()), self.draft.names

    def _changed_buffers(self) -> frozenset[str]:
        signature = self.program.graph_signature
        nodes = {node.name: node for node in self.program.graph.nodes}
        waiting, live = [nodes[name] for name in signature.user_outputs if name in nodes], set[str]()
        while waiting:
            node = waiting.pop()
            if node.name not in live:
                live.add(node.name)
                waiting += node.all_input_nodes
        used = {full for name, full in signature.inputs_to_buffers.items() if name in live}
        return frozenset(used & set(signature.buffers_to_mutate.values()))

    def _placeholders(self) -> list[fx.Node]:
        """Return the nodes of the user's inputs, and keep those of tensors."""
        users = []
        nodes = (node for node in self.program.graph.nodes if node.op == "placeholder")
        for node, spec in zip(nodes, self.program.graph_signature.input_specs, strict=True):
            if spec.kind is InputKind.USER_INPUT:
                users.append(node)
            elif spec.target is not None:
                known = {**self.program.state_dict, **self.program.constants}
                self.tensors[node] = (spec.target, known[spec.target], spec.kind is InputKind.PARAMETER)
        return users

    def _outputs(self) -> list[int]:
        (node,) = (node for node in self.program.graph.nodes if node.op == "output")
        pairs = zip(node.args[0], self.program.graph_signature.output_specs, strict=True)
        users = [value for value, spec in pairs if spec.kind is OutputKind.USER_OUTPUT]
        if not users or not all(isinstance(value, fx.Node) for value in users):
            raise UsageError(f"a model must return tensors, got {users!r:.60}")
        return [self._value(value) for value in users]

    def _call(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            self._item(node)
        elif isinstance(node.target, torch._ops.HigherOrderOperator):
            raise UsageError(f"an architecture has no control flow, got {node.target}{place(node)}")
        elif isinstance(node.meta.get("val"), (torch.Tensor, list, tuple)):
            self._operation(node)
        # The others compute sizes, or check them.

    def _item(self, node: fx.Node) -> None:
        source, item = node.args
        assert isinstance(source, fx.Node) and isinstance(item, int)
        position = self.at[source]
        listed = not signatures()[name_of(source)][0].outputs
        self.at[node] = self.draft.add("getitem", {"item": item}, {0: position}) if item or listed else position

    def _operation(self, node: fx.Node) -> None:
        op, by_parameter = name_of(node), arguments_of(node)
        if op in _COPIES or (op == "dropout" and not by_parameter["p"]) or _keeps_type(node, op):
            self.at[node] = self._value(next(iter(by_parameter.values())))
            return
        signature = _signature(node, op)
        attributes: dict[str, Any] = {}
        arguments: dict[int, int] = {}
        owned: dict[str, str] = {}
        for number, parameter in enumerate(signature.tensors):
            value = by_parameter.get(parameter.name)
            if parameter.listed:
                arguments.update({number + at: self._value(one) for at, one in enumerate(value or ()) if one})
            elif isinstance(value, fx.Node) and self._is_owned(op, parameter, value):
                owned[parameter.name], tensor, _ = self.tensors[value]
                attributes[parameter.name] = list(tensor.shape)
            elif isinstance(value, fx.Node):
                arguments[number] = self._value(value)
            elif value is not None:
                attributes[parameter.name] = value
        for parameter in signature.parameters:
            if parameter.kind not in ("", "tensor") and by_parameter.get(parameter.name) is not None:
                attributes[parameter.name] = self.settings.of(node, parameter, by_parameter[parameter.name])
        simplify(op, attributes)
        self.at[node] = at = self.draft.add(op, attributes, arguments)
        if attributes.get("momentum") == "nan" and "running_mean" in owned:
            # The number of batches in the statistics; a file of ONNX has none.
            count = f"{owned['running_mean'].removesuffix('running_mean')}num_batches_tracked"
            if count in self.program.state_dict:
                owned["num_batches_tracked"] = count
        self.draft.names.update({(at, name): full for name, full in owned.items()})

    def _is_owned(self, op: str, parameter: OperationParameter, node: fx.Node) -> bool:
        if node not in self.tensors or parameter.name not in weights.OWNED.get(op, ()):
            return False
        # Each layer of a shared batch normalisation has statistics of its own.
        return parameter.name in weights.BUFFERS or (self.tensors[node][2] and self.uses[node] == 1)

    def _value(self, node: Any) -> int:
        """Return the position of the layer whose output a node is; a tensor of the model becomes a layer."""
        assert isinstance(node, fx.Node)
        if node not in self.at:
            name, tensor, trained = self.tensors[node]
            if name in self.changed:
                raise UsageError(
                    f"the model changes its buffer {name} in evaluation mode, and an architecture has no state: change "
                    "it in training alone (if self.training), or leave it out of forward"
                )
            shape = list(tensor.shape)
            if trained:
                self.at[node] = self.draft.add("parameter", {"shape": shape}, {})
                self.draft.names[self.at[node], "shape"] = name
            else:
                dtype = str(tensor.dtype).removeprefix("torch.")
                attributes = {"shape": shape, "dtype": dtype, "content": _content(name, tensor)}
                self.at[node] = self.draft.add("constant", attributes, {})
        return self.at[node]


def _signature(node: fx.Node, op: str) -> Signature:
    assert isinstance(node.target, torch._ops.OpOverload)
    overload = node.target._overloadname.replace("default", "")
    for signature in signatures().get(op, ()):
        if signature.overload == overload:
            return signature
    raise UsageError(
        f"the operation {node.target} is not one of the space torch{place(node)}: "
        "write it with operations of the core set (archive spaces --json lists them)"
    )


def _keeps_type(node: fx.Node, op: str) -> bool:
    source = node.args[0] if node.args else None
    return op == "_to_copy" and isinstance(source, fx.Node) and source.meta["val"].dtype == node.meta["val"].dtype


def _content(name: str, tensor: torch.Tensor) -> str:
    if tensor.is_meta:
        raise UsageError(f"the buffer {name} has values that matter, and none on the device meta: build it without")
    raw = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8) if tensor.numel() else tensor.new_empty(0)
    text = packed(raw.numpy().tobytes())
    if len(text) > MOST_CONTENT:
        raise UsageError(
            f"the buffer {name} has {len(text)} bytes when compressed, and an architecture holds {MOST_CONTENT} at "
            "most: compute it in forward, or make it a parameter"
        )
    return text
