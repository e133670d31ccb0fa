"""Conversion of an exported program to an architecture of the space `torch`.

| program                                  | architecture                                         |
|------------------------------------------|------------------------------------------------------|
| operation                                | layer; its settings are attributes, without defaults |
| tensor input                             | edge with the number of the input                    |
| weight that one layer uses               | attribute of that layer: the shape                   |
| other parameter                          | layer `parameter`                                    |
| buffer or tensor that the model fixes    | layer `constant`, with its content                   |
| first of several outputs                 | the layer itself; `getitem` for the others           |
| size that depends on the batch           | text, such as `64*batch`; -1 in a view               |
| recurrent layer with unshared weights    | layer `lstm`, `gru` or `rnn`                         |
| copies, checks, sizes, places of tensors | nothing                                              |
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from archive.architecture.aten import recurrent, weights
from archive.architecture.aten.signature import OperationParameter, Signature, signatures
from archive.architecture.aten.vocabulary import COMMUTATIVE, NAME
from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer import Attributes
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import UsageError
from archive.spaces.aten import MOST_BYTES, pack_content
from archive.trainer.intake import stand_ins
from archive.trainer.intake.programs import ModelTensor, Program
from archive.trainer.intake.settings import (
    AttributeConversion,
    arguments_of,
    default_text,
    is_number,
    is_stand_in,
    module_name,
    name_of,
    place,
    recurrent_attributes,
    recurrent_states,
    simplify,
)
from archive.trainer.intake.weightless import AbsentValuesError

MOST_CONTENT = 2**20
"""Largest constant of an architecture, in characters of its compressed text."""

Names = dict[tuple[int, str], str]
"""Name in the model of each tensor, by the position of its layer and its attribute (`shape` of a
`parameter`)."""

# Copies: a tensor's place and layout in memory are no part of an architecture.
_COPIES = frozenset(["clone", "alias", "detach", "lift_fresh_copy", "contiguous"])
_DROPOUTS = frozenset(
    ["dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "rrelu"]
)


def convert(program: Program, inputs: Sequence[Input]) -> tuple[Architecture, Names]:
    """Return the architecture of a program, and the model's name of each of its tensors.

    Raises:
        UsageError: The program has an operation, a size or a buffer that an architecture cannot
            have.
    """
    return _Conversion(program, inputs).result()


class _Conversion:
    """State of one conversion.

    Attributes:
        positions: Node to the position of the layer with that output.
        tensors: Node of a weight or a buffer to the tensor's name, value, and whether it is
            trained.
        changed: Names of buffers that the model changes in evaluation mode, and on which its
            outputs depend.
    """

    def __init__(self, program: Program, inputs: Sequence[Input]) -> None:
        self.program = program
        self.draft = NetworkDraft()
        self.tensors: dict[fx.Node, ModelTensor] = program.tensors
        nodes = program.graph.nodes
        self.uses: Counter[fx.Node] = Counter()
        for node in nodes:
            if node.op != "output":
                self.uses.update(node.all_input_nodes)

        self.changed = self._changed_buffers()
        self.positions = dict(zip(program.inputs, self.draft.begin(inputs), strict=True))
        self.settings = AttributeConversion(
            None if isinstance(program.batch, int) else program.batch
        )

    def result(self) -> tuple[Architecture, Names]:
        """Convert all nodes in order."""
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self.draft.module = module_name(node)
                self._call(node)

        return self.draft.end(self._outputs()), self.draft.names

    def _changed_buffers(self) -> frozenset[str]:
        waiting = self.program.output_nodes
        live: set[fx.Node] = set()
        while waiting:
            node = waiting.pop()
            if node not in live:
                live.add(node)
                waiting += node.all_input_nodes

        used: set[str] = set()
        for node, tensor in self.tensors.items():
            if node in live and not tensor.trained:
                used.add(tensor.name)

        return frozenset(used & self.program.changes.keys())

    def _outputs(self) -> list[int]:
        outputs = self.program.outputs
        if not outputs or not all(map(_is_tensor, outputs)):
            raise UsageError(f"a model must return tensors, got {outputs!r:.60}")

        return list(map(self._value, outputs))

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
        position = self.positions[source]
        listed = not signatures()[self.draft.layers[position].op][0].outputs
        if item or listed:
            position = self.draft.add("getitem", {"item": item}, {0: position})

        self.positions[node] = position

    def _operation(self, node: fx.Node) -> None:
        op = name_of(node)
        by_parameter = arguments_of(node)
        is_copy = op in _COPIES and not is_stand_in(node)
        if is_copy or _keeps_type(node, op) or _keeps_layout(node, op):
            self.positions[node] = self._value(next(iter(by_parameter.values())))
            return

        if op in stand_ins.RECURRENT and is_stand_in(node):
            self._add_recurrent(node, op)
            return

        if op == "copy" and self._is_whole_copy(node):
            self.positions[node] = self._value(node.args[1])
            return

        if op == "empty_permuted":
            # The order of the sides in memory is no part of an architecture.
            op = "empty"
            by_parameter.pop("physical_layout")
            signature = signatures()[op][0]
        else:
            signature = _signature(node, op)

        attributes: dict[str, Any] = {}
        arguments: dict[int, int] = {}
        owned: dict[str, str] = {}
        for number, parameter in enumerate(signature.tensors):
            value = by_parameter.get(parameter.name)
            if parameter.listed:
                for offset, tensor in enumerate(value or ()):
                    if tensor:
                        arguments[number + offset] = self._value(tensor)

            elif isinstance(value, fx.Node) and self._is_owned(op, parameter, value):
                owned[parameter.name] = self.tensors[value].name
                attributes[parameter.name] = list(self.tensors[value].values.shape)
            elif isinstance(value, fx.Node) and not is_number(value):
                arguments[number] = self._value(value)
            elif value is not None:
                attributes[parameter.name] = self.settings.number(node, value)

        for parameter in signature.parameters:
            value = by_parameter.get(parameter.name)
            if parameter.kind not in ("", "tensor") and value is not None:
                attributes[parameter.name] = self.settings.of(node, parameter, value)

        if op == "scaled_dot_product_attention" and is_stand_in(node):
            attributes["training_dropout_p"] = attributes.pop("dropout_p")

        simplify(op, attributes)
        position = self.draft.add(op, attributes, arguments)
        self.positions[node] = position
        if attributes.get("momentum") == "nan" and "running_mean" in owned:
            # The number of batches in the statistics; a file of ONNX has none.
            count = f"{owned['running_mean'].removesuffix('running_mean')}num_batches_tracked"
            if count in self.program.names:
                owned["num_batches_tracked"] = count

        for name, full_name in owned.items():
            self.draft.names[position, name] = full_name

    def _add_recurrent(self, node: fx.Node, op: str) -> None:
        """Add a whole recurrent layer, with its weights."""
        arguments = arguments_of(node)
        name, attributes = recurrent_attributes(op, arguments)
        states: dict[int, int] = {}
        for number, state in enumerate(recurrent_states(arguments), start=1):
            if not self._is_zero(state):
                states[number] = self._value(state)

        inputs = {0: self._value(arguments["input"]), **states}
        position = self.draft.add(name, attributes, inputs)
        self.positions[node] = position
        names = recurrent.shapes(name, attributes)
        for weight, source in zip(names, arguments["params"], strict=True):
            self.draft.names[position, weight] = self.tensors[source].name

    def _is_zero(self, node: fx.Node) -> bool:
        """Return whether a state is zero, with which a layer begins by itself."""
        layer = self.draft.layers[self._value(node)]
        return layer.op == "full" and layer.attributes.get("fill_value") == 0

    def _is_whole_copy(self, node: fx.Node) -> bool:
        """Return whether a result is copied into the input, as by a dropout in place."""
        source, values = node.args[:2]
        assert isinstance(source, fx.Node) and isinstance(values, fx.Node)
        same = source.meta["val"].shape == values.meta["val"].shape
        return same and (self._value(source) == self._value(values) or name_of(values) in _DROPOUTS)

    def _is_owned(self, op: str, parameter: OperationParameter, node: fx.Node) -> bool:
        if node not in self.tensors or parameter.name not in weights.OWNED.get(op, ()):
            return False

        # Each layer of a shared batch normalisation has separate statistics.
        return parameter.name in weights.BUFFERS or (
            self.tensors[node].trained and self.uses[node] == 1
        )

    def _value(self, node: Any) -> int:
        """Return the position of a node's layer; a tensor of the model becomes a layer."""
        assert isinstance(node, fx.Node)
        if node not in self.positions:
            name, tensor, trained = self.tensors[node]
            if name in self.changed:
                raise UsageError(
                    f"the model changes its buffer {name} in evaluation mode, and an "
                    "architecture has no state: change it in training alone (if self.training), "
                    "or leave it out of forward"
                )

            shape = list(tensor.shape)
            if trained:
                self.positions[node] = self.draft.add("parameter", {"shape": shape}, {})
                self.draft.names[self.positions[node], "shape"] = name
            else:
                dtype = str(tensor.dtype).removeprefix("torch.")
                attributes = {"shape": shape, "dtype": dtype, "content": _content(name, tensor)}
                self.positions[node] = self.draft.add("constant", attributes, {})

        return self.positions[node]


def _is_tensor(output: Any) -> bool:
    return isinstance(output, fx.Node) and isinstance(output.meta.get("val"), torch.Tensor)


def _signature(node: fx.Node, op: str) -> Signature:
    assert isinstance(node.target, torch._ops.OpOverload)
    overload = "" if is_stand_in(node) else node.target._overloadname.replace("default", "")
    for signature in signatures().get(op, ()):
        if signature.overload == overload:
            return signature

    raise UsageError(
        f"the operation {node.target} is not one of the space torch{place(node)}: "
        "write it with operations of the core set (archive spaces --json lists them)"
    )


def _keeps_type(node: fx.Node, op: str) -> bool:
    source = node.args[0] if node.args else None
    return (
        op == "_to_copy"
        and isinstance(source, fx.Node)
        and source.meta["val"].dtype == node.meta["val"].dtype
    )


def _keeps_layout(node: fx.Node, op: str) -> bool:
    """Return whether a window on a tensor's memory has all its elements, in their order.

    PyTorch's pools give such a window where the channels come last in memory.
    """
    if op != "as_strided":
        return False

    source = node.all_input_nodes[0].meta["val"]
    window = node.meta["val"]
    if source.shape != window.shape or source.storage_offset() != window.storage_offset():
        return False

    for side, before, after in zip(source.shape, source.stride(), window.stride(), strict=True):
        if side != 1 and before != after:
            return False

    return True


def _content(name: str, tensor: torch.Tensor) -> str:
    if tensor.is_meta:
        raise AbsentValuesError(
            f"the buffer {name} has values that matter, and none on the device meta: "
            "build the model on the CPU, or with archive.trainer.intake.weightless"
        )

    if tensor.nbytes > MOST_BYTES:
        raise UsageError(
            f"the buffer {name} has {tensor.nbytes} bytes, and a constant {MOST_BYTES} at most: "
            "compute it in forward, or make it a parameter"
        )

    if tensor.numel():
        raw = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
    else:
        raw = tensor.new_empty(0)

    text = pack_content(raw.numpy().tobytes())
    if len(text) > MOST_CONTENT:
        raise UsageError(
            f"the buffer {name} has {len(text)} bytes when compressed, and an architecture "
            f"holds {MOST_CONTENT} at most: compute it in forward, or make it a parameter"
        )

    return text


WINDOWED = frozenset(
    (
        "convolution",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "max_pool2d_with_indices",
        "max_pool3d_with_indices",
    )
)
"""Operations with a stride, which is the stride of the layer."""

# Lists that are one number where all their values are equal.
_SPATIAL = ("kernel_size", "padding", "dilation", "output_padding", "stride")


@dataclass
class NetworkDraft:
    """Layers and edges so far.

    Attributes:
        layers: The layers.
        edges: Tail and head to the arguments of the edge.
        names: Position and name of each owned or `parameter` tensor to its name in the model.
        module: Name of the module that further layers come from.
        kept: Positions of the layers that the network has, in its order.
    """

    layers: list[Layer] = field(default_factory=list)
    edges: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    names: dict[tuple[int, str], str] = field(default_factory=dict)
    module: str = ""
    kept: list[int] = field(default_factory=list)

    def begin(self, inputs: Sequence[Input]) -> list[int]:
        """Add the input layer, and return the position of each input."""
        position = self._put(
            Layer(INPUT, attributes=Attributes({"input": " ".join(map(str, inputs))}))
        )
        if len(inputs) == 1:
            return [position]

        return [self.add("getitem", {"item": item}, {0: position}) for item in range(len(inputs))]

    def add(self, op: str, attributes: Mapping[str, Any], inputs: Mapping[int, int]) -> int:
        """Add a layer and return its position.

        Args:
            op: Its operation.
            attributes: Its attributes; defaults are left out.
            inputs: Argument to the position of the layer that it comes from.
        """
        settings, stride = _plain(op, attributes)
        layer = Layer(op, None, stride, Attributes(settings))
        units = weights.units(layer)
        position = self._put(Layer(op, units, stride, layer.attributes, self.module))
        if not inputs:
            # Every layer is behind the input.
            self.edges[0, position] = []

        either = op in COMMUTATIVE and sorted(inputs) == [0, 1] and "alpha" not in layer.attributes
        for argument, tail in inputs.items():
            self.edges.setdefault((tail, position), []).append(0 if either else argument)

        return position

    def end(self, outputs: Iterable[int]) -> Architecture:
        """Add the output layer, remove layers that do not lead to it, and return the network.

        Afterwards `names` has the positions of the network's layers.
        """
        last = self._put(Layer(OUTPUT))
        for argument, tail in enumerate(outputs):
            self.edges.setdefault((tail, last), []).append(argument)

        self.kept = sorted({0, *self._before(last)})
        positions = {old: new for new, old in enumerate(self.kept)}
        edges: list[tuple[int, ...]] = []
        for (tail, head), arguments in self.edges.items():
            if head in positions:
                edges.append((positions[tail], positions[head], *arguments))

        layers = tuple(self.layers[old] for old in self.kept)
        network = Architecture(NAME, layers, edges)
        # Layers were added in topological order, which the network keeps.
        assert network.layers == layers
        names: dict[tuple[int, str], str] = {}
        for (old, name), full_name in self.names.items():
            if old in positions:
                names[positions[old], name] = full_name

        self.names = names
        return network

    def _put(self, layer: Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1

    def _before(self, last: int) -> set[int]:
        tails: dict[int, list[int]] = {}
        for tail, head in self.edges:
            tails.setdefault(head, []).append(tail)

        reached = {last}
        stack = [last]
        while stack:
            for tail in tails.get(stack.pop(), ()):
                if tail not in reached:
                    reached.add(tail)
                    stack.append(tail)

        return reached


def _plain(op: str, attributes: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return attributes without defaults and with short spatial values, and the layer's stride."""
    settings: dict[str, Any] = {}
    for name, value in attributes.items():
        if value is not None:
            settings[name] = _shorten(name, value)

    stride = 1
    if op in WINDOWED:
        stride = settings.get("stride") or settings.get("kernel_size", 1)
        if isinstance(stride, int):
            settings.pop("stride", None)
        else:
            settings["stride"] = stride
            stride = 1

    defaults: dict[str, str] = {}
    for signature in signatures()[op]:
        for parameter in signature.parameters:
            defaults[parameter.name] = parameter.default

    shortened: dict[str, Any] = {}
    for name, value in settings.items():
        if default_text(value) != defaults.get(name):
            shortened[name] = value

    return shortened, stride


def _shorten(name: str, value: Any) -> Any:
    """Return a spatial list of equal values as that value, and another list as a tuple."""
    if name in _SPATIAL and isinstance(value, (list, tuple)) and value and len(set(value)) == 1:
        return value[0]

    return tuple(value) if isinstance(value, list) else value
