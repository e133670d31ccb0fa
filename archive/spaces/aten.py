"""The open space `torch`: any network of PyTorch's operations (`archive import model`)."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping
from string import ascii_lowercase
from typing import Any, final

from archive.architecture.aten import blocks, recurrent, weights, wiring
from archive.architecture.aten.signature import DTYPES, Signature, resolve
from archive.architecture.aten.vocabulary import NAME
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import InvalidArchitectureError
from archive.spaces.base import OpenSpace, check_space

_NORMS = ("batch_norm", "instance_norm", "_native_batch_norm_legit_no_training")

MOST_BYTES = 2**26
"""Largest constant of a network, in bytes."""


@final
class Torch(OpenSpace):
    """Networks of any operations of PyTorch; they are imported, not drawn.

    A member is a graph that can be built: each layer has a signature of its operation, with the
    attributes and the inputs that it needs. The space has no limits and no distribution, and a
    random change of a graph rarely leaves tensors that fit.
    """

    name = NAME
    origin = "its networks are imported (archive import model)"

    def validate(self, architecture: Architecture) -> None:
        """Check attributes and inputs of each layer, the shapes of weights, and the nested blocks.

        Raises:
            InvalidArchitectureError: The architecture is not a member; the message gives the reason
                and the layer.
        """
        check_space(self.name, architecture)
        inputs = wiring.inputs(architecture)
        blocks.repeats(architecture)
        for u, layer in enumerate(architecture.layers):
            try:
                _check_layer(architecture, u, layer, len(inputs))
            except InvalidArchitectureError as error:
                raise InvalidArchitectureError(
                    error.reason, u if error.layer is None else error.layer
                ) from None


def content(layer: Layer) -> bytes:
    """Return the bytes of a constant, in the order of rows and in little-endian form.

    Raises:
        InvalidArchitectureError: The content does not fit the shape and the type.
    """
    dtype = layer.attributes.get("dtype")
    text = layer.attributes.get("content")
    if dtype not in DTYPES or not isinstance(text, str):
        raise InvalidArchitectureError(f"a constant needs a dtype and a content, got {dtype!r:.40}")

    size = math.prod(weights.shape(layer, "shape")) * _bytes_of(str(dtype))
    if size > MOST_BYTES:
        raise InvalidArchitectureError(f"a constant has at most {MOST_BYTES} bytes, got {size}")

    try:
        unpacked = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error):
        raise InvalidArchitectureError(
            "the content of a constant must be compressed bytes in base 64"
        ) from None

    if len(unpacked) != size:
        raise InvalidArchitectureError(
            f"the content of a constant must have {size} bytes, got {len(unpacked)}"
        )

    return unpacked


def pack_content(raw: bytes) -> str:
    """Return the attribute `content` of bytes."""
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def _bytes_of(dtype: str) -> int:
    if dtype in ("bool", "uint8", "int8"):
        return 1

    if dtype == "bfloat16":
        return 2

    return int(dtype.lstrip(ascii_lowercase)) // 8


def _check_layer(architecture: Architecture, u: int, layer: Layer, n_inputs: int) -> None:
    used = wiring.values(architecture, u)
    if layer.op == INPUT:
        _check_names(layer.attributes, ("input",))
        return

    if layer.op == OUTPUT:
        _check_names(layer.attributes, ())
        if sorted(used) != list(range(len(used))) or not used:
            raise InvalidArchitectureError(
                f"the outputs must be numbered from 0, got the arguments {sorted(used)}"
            )

        return

    signature = resolve(layer.op, layer.attributes, used.keys())
    if layer.op in recurrent.GATES:
        recurrent.check(layer.op, layer.attributes)

    _check_order(architecture, u, used)
    _check_weights(layer, signature)
    if layer.op == "getitem":
        _check_item(architecture, used[0], layer, n_inputs)

    if layer.op == "constant":
        content(layer)


def _check_names(attributes: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in attributes:
        if name not in names:
            raise InvalidArchitectureError(f"this layer has no attribute {name}")


def _check_order(architecture: Architecture, u: int, used: Mapping[int, int]) -> None:
    """Check that edges without arguments lead from the input to layers without inputs."""
    for parent in architecture.parents[u]:
        if not architecture.argument_of[parent, u] and (parent != 0 or used):
            raise InvalidArchitectureError(
                f"the edge from layer {parent} needs an argument: the number of the input"
            )


def _check_weights(layer: Layer, signature: Signature) -> None:
    owned = weights.OWNED.get(layer.op, ())
    for parameter in signature.tensors:
        value = layer.attributes.get(parameter.name)
        if isinstance(value, tuple) and parameter.name not in owned:
            raise InvalidArchitectureError(
                f"{layer.op} cannot own {parameter.name}: a layer parameter gives it, by an edge"
            )

        if isinstance(value, tuple) and not all(value):
            raise InvalidArchitectureError(f"{parameter.name} must have sides >= 1, got {value}")

    if layer.units != (units := weights.units(layer)):
        raise InvalidArchitectureError(
            f"{layer.op} must have the units of its weight, {units}, got {layer.units}"
        )

    if layer.stride != 1 and not any(
        parameter.name == "stride" for parameter in signature.parameters
    ):
        raise InvalidArchitectureError(f"{layer.op} has no stride, got {layer.stride}")

    _check_shapes(layer)


def _check_shapes(layer: Layer) -> None:
    """Check that the weights of a layer fit together."""
    weight = weights.shape(layer, "weight")
    bias = weights.shape(layer, "bias")
    sides = {"linear": (2, 2), "embedding": (2, 2), "convolution": (3, 5)}.get(layer.op)
    if sides and "weight" in layer.attributes and not sides[0] <= len(weight) <= sides[1]:
        raise InvalidArchitectureError(
            f"the weight of {layer.op} has {sides[0]} sides or more, got {weight}"
        )

    if layer.op == "convolution" and weight:
        groups = layer.attributes.get("groups", 1)
        if not isinstance(groups, int) or groups < 1 or weight[0] % groups:
            raise InvalidArchitectureError(
                f"groups must divide the {weight[0]} channels of the weight, got {groups}"
            )

    if layer.op in ("linear", "convolution") and weight and bias and bias != (layer.units,):
        raise InvalidArchitectureError(
            f"the bias of {layer.op} must have the shape [{layer.units}], got {bias}"
        )

    if layer.op in _NORMS:
        shapes = {}
        for name in weights.OWNED[layer.op]:
            if name in layer.attributes:
                shapes[name] = weights.shape(layer, name)

        if len(set(shapes.values())) > 1 or set(map(len, shapes.values())) - {1}:
            raise InvalidArchitectureError(
                f"the tensors of {layer.op} must have one shape of one side, got {shapes}"
            )


def _check_item(architecture: Architecture, parent: int, layer: Layer, n_inputs: int) -> None:
    item = layer.attributes["item"]
    above = architecture.layers[parent]
    first = 0
    count = n_inputs
    if parent:
        signature = resolve(above.op, above.attributes, wiring.values(architecture, parent).keys())
        sizes = above.attributes.get("split_sizes", ())
        # The first of a fixed number of outputs is the layer itself.
        first = min(signature.outputs, 1)
        count = signature.outputs or len(sizes if isinstance(sizes, tuple) else "1")

    if not isinstance(item, int) or not first <= item < count:
        raise InvalidArchitectureError(
            f"item must be from {first} to {count - 1}, the outputs of {above.op}, got {item}"
        )
