"""Initial weights of imported networks, by operation, as the layers of `torch.nn` draw theirs.

| tensor                                            | initial values                              |
|---------------------------------------------------|---------------------------------------------|
| weight and bias of convolution, linear, addmm, mm | uniform within 1 / sqrt(fan in)             |
| bias where the shape of the weight is not known   | 0                                           |
| tensors of a recurrent layer                      | uniform within 1 / sqrt(size of the state)  |
| weight of an embedding                            | normal, 0 at the padding index              |
| weight and bias of a normalisation                | 1 and 0; running mean 0, running variance 1 |
| weight of prelu                                   | 0.25                                        |
| parameter in a product or a quotient              | 1                                           |
| parameter in a sum, at most one side above 1      | 0                                           |
| parameter that several layers use as a weight     | values of its first use                     |
| other parameters: tokens, position tables         | normal with standard deviation 0.02         |

The fan in belongs to the weight as the layer uses it, even where other layers compute the weight.
A recurrent layer that is written out is a linear layer of its inputs and one of its state, each
with a separate fan in; `torch.nn` takes the fan in of the state for both. Draws by a model's own
code are not part of its graph.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from archive.architecture.aten import recurrent, weights, wiring
from archive.architecture.aten.signature import signatures
from archive.architecture.graph import Architecture, Layer
from archive.spaces.aten import content

TOKEN_DEVIATION = 0.02
PRELU = 0.25

_NORMS = (
    "batch_norm",
    "instance_norm",
    "_native_batch_norm_legit_no_training",
    "native_layer_norm",
    "native_group_norm",
)
_SHAPE_CHANGES = ("view", "expand", "permute", "unsqueeze", "squeeze", "_to_copy")
_MATRICES = {"convolution": "weight", "linear": "weight", "addmm": "mat2", "mm": "mat2"}


def draw(
    layer: Layer,
    name: str,
    tensor: Tensor,
    shapes: Mapping[str, tuple[int, ...]],
    rng: torch.Generator,
) -> None:
    """Draw the values of one tensor of a layer.

    Args:
        layer: The layer.
        name: Parameter of the operation that the tensor is.
        tensor: The tensor to fill, in place.
        shapes: Shapes of the layer's weights by name: its own, and those that other layers give,
            where known.
        rng: Source of random numbers.
    """
    if layer.op in _NORMS:
        tensor.fill_(1.0 if name in ("weight", "running_var") else 0.0)
    elif layer.op in ("embedding", "_embedding_bag"):
        tensor.normal_(generator=rng)
        padding = layer.attributes.get("padding_idx", -1)
        if isinstance(padding, int) and padding >= 0:
            tensor[padding] = 0.0
    elif layer.op in recurrent.GATES:
        bound = 1 / math.sqrt(layer.attributes["hidden_size"])  # type: ignore[arg-type]
        tensor.uniform_(-bound, bound, generator=rng)
    elif layer.op == "prelu":
        tensor.fill_(PRELU)
    elif layer.op in _MATRICES:
        bound = _bound(layer.op, shapes.get(_MATRICES[layer.op], ()))
        tensor.uniform_(-bound, bound, generator=rng)
    else:
        tensor.normal_(0.0, TOKEN_DEVIATION, generator=rng)


def draw_parameter(
    architecture: Architecture,
    position: int,
    tensor: Tensor,
    shapes: Sequence[Mapping[str, tuple[int, ...]]],
    rng: torch.Generator,
) -> None:
    """Draw the values of a layer `parameter`, by its first use.

    Args:
        architecture: The network.
        position: Position of the layer.
        tensor: The tensor to fill, in place.
        shapes: Shapes of each layer's weights, as `draw` takes them.
        rng: Source of random numbers.
    """
    user, argument = _find_use(architecture, position)
    layer = architecture.layers[user]
    name = _input_name(layer.op, argument)
    if name in weights.OWNED.get(layer.op, ()):
        draw(layer, name, tensor, shapes[user], rng)
    elif layer.op in ("mul", "div"):
        tensor.fill_(1.0)
    elif layer.op in ("add", "sub") and sum(side > 1 for side in tensor.shape) <= 1:
        tensor.zero_()
    else:
        tensor.normal_(0.0, TOKEN_DEVIATION, generator=rng)


def _input_name(op: str, number: int) -> str:
    """Return the parameter of an input.

    Empty for an operation without signature, and for a further tensor of a list.
    """
    if op not in signatures():
        return ""

    tensors = signatures()[op][0].tensors
    if number >= len(tensors):
        return ""

    return tensors[number].name


def constant(layer: Layer, dtype: torch.dtype) -> Tensor:
    """Return the values of a layer `constant`, which the architecture has."""
    raw = bytearray(content(layer))
    flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return flat.reshape(weights.shape(layer, "shape"))


def _find_use(architecture: Architecture, position: int) -> tuple[int, int]:
    """Return the first layer that uses an output, after changes of shape, and its input number."""
    while True:
        user = architecture.children[position][0]
        inputs = wiring.values(architecture, user)
        argument = min(number for number, tail in inputs.items() if tail == position)
        if architecture.layers[user].op not in _SHAPE_CHANGES:
            return user, argument

        position = user


def _bound(op: str, weight: tuple[int, ...]) -> float:
    """Return the largest initial value for a weight's shape; 0 for an unknown shape."""
    if not weight:
        return 0.0

    fan_in = weight[0] if op in ("addmm", "mm") else math.prod(weight[1:])
    return 1 / math.sqrt(max(fan_in, 1))
