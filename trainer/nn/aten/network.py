"""The torch module of an architecture of the space `torch`: its graph, as code that PyTorch runs.

    module = rebuilt(architecture)                  # a torch.fx.GraphModule
    module.load_state_dict(imported.state_dict(model))      # computes what the imported model does

Weights are in `OPERATION_POSITION.NAME`, such as `convolution_3.weight`: positions in the canonical
order of the network with its blocks written out, so that all relabellings give the same module. A
grey image goes to every channel of a network that was imported for images of several.

A graph may come from anywhere. Its module is made of the operations of the vocabulary alone: no
module is imported and no file is read.

A graph may fix sizes that are wrong for images of other sides than at the import. The graph of a
model that interpolates to a multiple of the sides of its input holds the resulting numbers, and so
does the graph of a model that always interpolates to the same sides. The two cannot be
distinguished: both take inputs of the imported sides only. Interpolation by a scale factor suits
all sides.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from archive import spaces
from archive.architecture.aten import recurrent, weights, wiring
from archive.architecture.aten.blocks import unfold
from archive.architecture.aten.signature import MODES, Signature, resolve
from archive.architecture.aten.vocabulary import NAME
from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, first_line
from archive.trainer.nn.aten import initial
from archive.trainer.nn.aten.calls import OperationArguments, function_of
from archive.trainer.nn.aten.layers import (
    BatchNorm,
    ByMode,
    Dropout,
    Following,
    InstanceNorm,
    TrainedTensor,
    Weighted,
    empty,
    find_owned,
    find_shared,
    make_recurrent_layer,
)
from archive.trainer.protocols.networks import NetworkForm


def build(architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
    """Return the network of an architecture, if it has a form.

    Raises:
        InvalidArchitectureError: It takes other inputs or gives other outputs, or is no member of
            the space.
    """
    whole = _whole(architecture)
    return _fill(whole, _of_form(whole, form), seed)


def check(architecture: Architecture, form: NetworkForm) -> None:
    """Check that a network can have a form; takes no memory for its weights.

    Raises:
        InvalidArchitectureError: As `build`.
    """
    _of_form(_whole(architecture), form)


def rebuilt(architecture: Architecture, seed: int = 0) -> fx.GraphModule:
    """Return the network of an architecture in training mode, with initial weights from a seed.

    Raises:
        InvalidArchitectureError: It is no member of the space.
    """
    whole = _whole(architecture)
    return _fill(whole, _module(whole), seed)


def without_weights(architecture: Architecture) -> fx.GraphModule:
    """Return the network as `rebuilt`, on the device `meta`: its tensors have no memory."""
    return _module(_whole(architecture))


def output_shapes(architecture: Architecture) -> list[tuple[int, ...]]:
    """Return the shape of each layer's output, without the batch; takes no memory for weights.

    The last layer, the output, is left out; a layer with several outputs has an empty shape.

    Args:
        architecture: A network of the space in canonical order, without blocks.

    Raises:
        InvalidArchitectureError: It is no member of the space, or its tensors do not fit.
    """
    spaces.get(NAME).validate(architecture)
    return [shape[1:] for shape in _value_shapes(architecture)]


def _value_shapes(architecture: Architecture) -> list[tuple[int, ...]]:
    """Return the shape of each layer's output, as `output_shapes`, with the batch."""
    try:
        graph = _Graph(architecture, 1)
        shapes = compute_shapes(graph.module(), graph.input_types)
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise InvalidArchitectureError(
            f"PyTorch cannot build the network: {first_line(error, 200)}"
        ) from error

    return [shapes.get(graph.value[u].name, ()) for u in range(len(architecture.layers) - 1)]


def tensor_name(layer: Layer, position: int, attribute: str) -> str:
    """Return the name of a tensor in the module's state.

    Args:
        layer: Its layer.
        position: Position of the layer in the canonical order, with blocks written out.
        attribute: Attribute of the tensor; `shape` of a `parameter`.
    """
    name = "values" if layer.op == "parameter" else attribute
    return f"{layer.op}_{position}.{name}"


def _whole(architecture: Architecture) -> Architecture:
    spaces.get(NAME).validate(architecture)
    return unfold(architecture).canonical


def _of_form(architecture: Architecture, form: NetworkForm) -> fx.GraphModule:
    imported = _one_input(architecture)
    grey = len(imported.shape) == 3 and form.input_shape[:1] == (1,)
    module = _module(architecture, imported.shape[0] if grey else 1)
    _check_form(imported, module, form)
    check_sides(
        architecture,
        imported,
        (imported.shape[0], *form.input_shape[1:]) if grey else form.input_shape,
    )
    return module


def _one_input(architecture: Architecture) -> wiring.Input:
    imported = wiring.inputs(architecture)
    if len(imported) > 1 or imported[0].dtype != "float32":
        text = " and ".join(map(str, imported))
        raise InvalidArchitectureError(
            f"the network takes {text}, and a task gives one tensor of float32"
        )

    return imported[0]


def _module(architecture: Architecture, channels: int = 1) -> fx.GraphModule:
    """Return the module; its tensors have no memory."""
    try:
        return _Graph(architecture, channels).module()
    except (RuntimeError, TypeError, ValueError, OverflowError) as error:
        # Such as a tensor with more elements than an integer of 64 bits counts.
        raise InvalidArchitectureError(
            f"PyTorch cannot build the network: {first_line(error, 200)}"
        ) from error


_STATES = ("input", "h0", "c0")
"""Inputs of recurrent layers."""


class _Graph:
    """The graph of a network, with modules for layers that own tensors or follow the mode.

    Args:
        architecture: The network.
        channels: Number of times that the one channel of the first input is given.
    """

    def __init__(self, architecture: Architecture, channels: int) -> None:
        self.architecture = architecture
        self.graph = fx.Graph()
        self.root = nn.Module()
        self.input_types = wiring.inputs(architecture)
        self.inputs = [self.graph.placeholder(f"x{u}") for u in range(len(self.input_types))]
        self.calls = OperationArguments(self.graph, self.inputs[0])
        # The output of each layer, and all its outputs where it has several.
        self.value: dict[int, fx.Node] = {0: self.inputs[0]}
        if channels > 1:
            self.value[0] = self.graph.call_method("expand", (self.inputs[0], -1, channels, -1, -1))

        self.outputs: dict[int, fx.Node] = {}
        self.matrices = find_shared(architecture)
        self.tensors: dict[int, TrainedTensor] = {}

    def module(self) -> fx.GraphModule:
        """Return the module; its tensors have no memory."""
        layers = self.architecture.layers
        for u in range(1, len(layers) - 1):
            self._add(u, layers[u])

        ends = wiring.values(self.architecture, len(layers) - 1)
        values = [self.value[ends[number]] for number in sorted(ends)]
        self.graph.output(values[0] if len(values) == 1 else tuple(values))
        return fx.GraphModule(self.root, self.graph, "Imported")

    def _add(self, u: int, layer: Layer) -> None:
        used = wiring.values(self.architecture, u)
        if layer.op == "getitem":
            self.value[u] = self._item(used[0], layer)
        elif layer.op == "parameter":
            units = [matrix.units for matrix in self.matrices.values() if matrix.tensor == u]
            self.tensors[u] = TrainedTensor(empty(weights.shape(layer, "shape")), units)
            self.root.add_module(f"{layer.op}_{u}", self.tensors[u])
            self.value[u] = self.graph.call_module(f"{layer.op}_{u}")
        elif layer.op == "constant":
            dtype = getattr(torch, str(layer.attributes["dtype"]))
            # Not part of the state: the architecture has it.
            self.root.register_buffer(
                f"{layer.op}_{u}", empty(weights.shape(layer, "shape"), dtype), persistent=False
            )
            self.value[u] = self.graph.get_attr(f"{layer.op}_{u}")
        else:
            self._call(u, layer, {number: self.value[tail] for number, tail in used.items()})

    def _item(self, tail: int, layer: Layer) -> fx.Node:
        item = layer.attributes["item"]
        assert isinstance(item, int)
        if tail == 0:
            return self.inputs[item]

        return self.graph.call_function(operator.getitem, (self.outputs[tail], item))

    def _call(self, u: int, layer: Layer, inputs: Mapping[int, fx.Node]) -> None:
        signature = resolve(layer.op, layer.attributes, inputs.keys())
        arguments = self.calls.arguments(layer, signature, inputs)
        if layer.op in recurrent.GATES:
            states: dict[str, Any] = {}
            for state in _STATES:
                if state in arguments:
                    states[state] = arguments.pop(state)

            module = make_recurrent_layer(layer.op, arguments)
            self._keep(u, self._module(f"{layer.op}_{u}", module, states), signature)
            return

        if layer.op == "by_mode":
            self._keep(u, self._module(f"{layer.op}_{u}", ByMode(), arguments), signature)
            return

        function = function_of(signature)
        tensors = {key: empty(weights.shape(layer, key)) for key in weights.owned(layer)}
        name = f"{layer.op}_{u}"
        if layer.op in ("batch_norm", "instance_norm"):
            momentum = arguments.pop("momentum")
            eps = arguments.pop("eps")
            # Without own statistics, the layer normalises by the batch in both modes.
            for buffer in weights.BUFFERS:
                if arguments.get(buffer) is None:
                    arguments.pop(buffer, None)

            norm: type[nn.Module] = BatchNorm if layer.op == "batch_norm" else InstanceNorm
            node = self._module(name, norm(tensors, momentum, eps), arguments)
        elif layer.op == "rrelu":
            settings = {"lower": arguments.pop("lower"), "upper": arguments.pop("upper")}
            node = self._module(
                name, Following(function, "training", (False, True), settings), arguments
            )
        elif layer.op == "scaled_dot_product_attention" and arguments.pop("training_dropout_p"):
            rates = arguments.pop("dropout_p", 0.0), layer.attributes["training_dropout_p"]
            settings = _take_settings(arguments)
            node = self._module(name, Following(function, "dropout_p", rates, settings), arguments)
        elif layer.op in MODES:
            node = self._module(name, Dropout(function, arguments.pop("p")), arguments)
        elif tensors or u in self.matrices:
            computed = [key for key, value in arguments.items() if isinstance(value, fx.Node)]
            # A matrix may be given before the input, as to an embedding.
            first = min(computed, key=weights.OWNED[layer.op].__contains__)
            fixed = _take_settings(arguments)
            arguments = {first: arguments[first], **arguments}
            module = Weighted(function, first, tensors, fixed, find_owned(layer))
            if matrix := self.matrices.get(u):
                self.tensors[matrix.tensor].applied_in.append(module)

            node = self._module(name, module, arguments)
        else:
            node = self.graph.call_function(function, (), arguments)

        self._keep(u, node, signature)

    def _keep(self, u: int, node: fx.Node, signature: Signature) -> None:
        """Keep the node of a layer, and the node of its first output."""
        self.outputs[u] = node
        self.value[u] = node
        if signature.outputs > 1:
            self.value[u] = self.graph.call_function(operator.getitem, (node, 0))

    def _module(self, name: str, module: nn.Module, arguments: Mapping[str, object]) -> fx.Node:
        self.root.add_module(name, module)
        (_, first), *others = arguments.items()
        return self.graph.call_module(name, (first,), dict(others))  # type: ignore[arg-type]


def _take_settings(arguments: dict[str, Any]) -> dict[str, Any]:
    """Take the arguments that no layer computes out of a layer's arguments."""
    settings = {}
    for name in list(arguments):
        if not _is_computed(arguments[name]):
            settings[name] = arguments.pop(name)

    return settings


def _is_computed(value: object) -> bool:
    """Return whether an argument is computed in the graph."""
    return isinstance(value, fx.Node) or (isinstance(value, list) and any(map(_is_computed, value)))


def _check_form(imported: wiring.Input, module: nn.Module, form: NetworkForm) -> None:
    try:
        with torch.no_grad():
            outputs = module.eval()(torch.empty((2, *form.input_shape), device="meta"))
    except Exception as error:
        raise InvalidArchitectureError(
            f"the network was imported for inputs {imported} and takes none "
            f"of the shape {form.input_shape}: {first_line(error, 200)}"
        ) from error
    finally:
        module.train()

    shape = tuple(outputs.shape[1:]) if isinstance(outputs, Tensor) else f"{len(outputs)} tensors"
    if shape != (form.outputs,):
        raise InvalidArchitectureError(
            f"the network has outputs of the shape {shape}, and the task needs ({form.outputs},): "
            f"import it with as many, as with --set num_classes={form.outputs}"
        )


def _fill(architecture: Architecture, module: fx.GraphModule, seed: int) -> fx.GraphModule:
    """Give the tensors memory and values."""
    module.to_empty(device="cpu")
    rng = torch.Generator().manual_seed(seed)
    shapes = _weight_shapes(architecture)
    with torch.no_grad():
        for u, layer in enumerate(architecture.layers):
            if layer.op == "parameter":
                values = module.get_parameter(tensor_name(layer, u, "shape"))
                initial.draw_parameter(architecture, u, values, shapes, rng)
            elif layer.op == "constant":
                buffer = module.get_buffer(f"{layer.op}_{u}")
                buffer.copy_(initial.constant(layer, buffer.dtype))

            for name in weights.owned(layer):
                full = tensor_name(layer, u, name)
                get = module.get_buffer if name in weights.BUFFERS else module.get_parameter
                tensor = get(full)
                initial.draw(layer, name, tensor, shapes[u], rng)

        for part in module.children():
            if isinstance(part, BatchNorm) and part.num_batches_tracked is not None:
                part.num_batches_tracked.zero_()

    return module


def _weight_shapes(architecture: Architecture) -> list[dict[str, tuple[int, ...]]]:
    """Return the shapes of each layer's weights by name, owned and computed, where known."""
    shapes: list[dict[str, tuple[int, ...]]] = []
    computed: list[tuple[int, str, int]] = []
    for u, layer in enumerate(architecture.layers):
        shapes.append({name: weights.shape(layer, name) for name in weights.owned(layer)})
        if layer.op not in weights.OWNED:
            continue

        inputs = wiring.values(architecture, u)
        signature = resolve(layer.op, layer.attributes, inputs.keys())
        for number, tail in inputs.items():
            name = signature.tensors[number].name
            if name in weights.OWNED[layer.op]:
                computed.append((u, name, tail))

    if not computed:
        return shapes

    try:
        outputs = _value_shapes(architecture)
    except InvalidArchitectureError:
        # Its tensors do not fit; a call of the module will say so.
        return shapes

    for u, name, tail in computed:
        if outputs[tail]:
            shapes[u][name] = outputs[tail]

    return shapes


def compute_shapes(module: fx.GraphModule, inputs: Sequence[Input]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor that a module computes for a batch of one, by node name.

    Args:
        module: A module on the device `meta`; put into evaluation mode.
        inputs: Its inputs.
    """
    tensors = []
    for expected in inputs:
        dtype = getattr(torch, expected.dtype)
        tensors.append(torch.empty((1, *expected.shape), dtype=dtype, device="meta"))

    run = _ShapesRun(module)
    run.run(*tensors)
    return run.shapes


class _ShapesRun(fx.Interpreter):
    """Runs a module and keeps the shape of each value."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module.eval())
        self.shapes: dict[str, tuple[int, ...]] = {}

    def run_node(self, n: fx.Node) -> object:
        """Run a node, and keep the shape of its value."""
        value = super().run_node(n)
        if isinstance(value, Tensor):
            self.shapes[n.name] = tuple(value.shape)

        return value


def check_sides(architecture: Architecture, imported: Input, shape: tuple[int, ...]) -> None:
    """Check that no interpolation of a network has the sides of another input.

    Args:
        architecture: The network.
        imported: Input that the network was imported for.
        shape: Shape of the input that it would get; a grey image has all channels.

    Raises:
        InvalidArchitectureError: An interpolation has fixed sides; the message names it and the
            remedy.
    """
    if shape == imported.shape:
        return

    for layer in architecture.layers:
        sides = layer.attributes.get("output_size")
        if "upsample" in layer.op and sides is not None:
            raise InvalidArchitectureError(
                f"the network was imported for inputs {imported}, and its {layer.op} to the "
                f"sides {sides} may depend on them: import it for {Input(shape)}, or interpolate "
                "by a scale_factor without recompute_scale_factor"
            )
