"""Initial weights of imported networks, by operation, as the layers of `torch.nn` draw theirs.

| tensor                                            | initial values                                         |
|---------------------------------------------------|--------------------------------------------------------|
| weight and bias of convolution, linear, addmm, mm | uniform within 1 / sqrt(fan in)                        |
| weight of an embedding                            | normal, 0 at the padding index                         |
| weight and bias of a normalisation                | 1 and 0; running mean 0, running variance 1            |
| weight of prelu                                   | 0.25                                                   |
| parameter that multiplies                         | 1                                                      |
| parameter that is added                           | 0                                                      |
| parameter that several layers use as a weight     | that of the first                                      |
| other parameters: tokens, tables of positions     | normal with standard deviation 0.02                    |

What a model's own code draws otherwise is not part of its graph.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from archive.architecture.aten import weights, wiring
from archive.architecture.aten.signature import signatures
from archive.architecture.graph import Architecture, Layer

TOKEN_DEVIATION = 0.02
PRELU = 0.25

_NORMS = ("batch_norm", "native_layer_norm", "native_group_norm")
_MATRICES = {"convolution": "weight", "linear": "weight", "addmm": "mat2", "mm": "mat2"}


def draw(layer: Layer, name: str, tensor: Tensor, shapes: Mapping[str, tuple[int, ...]], rng: torch.Generator) -> None:
    """Draw the values of one tensor of a layer.

    Args:
        layer: The layer.
        name: Parameter of the operation that the tensor is.
        tensor: The tensor, written.
        shapes: Shapes of all tensors of the layer, by name.
        rng: Source of random numbers.
    """
    if layer.op in _NORMS:
        tensor.fill_(1.0 if name in ("weight", "running_var") else 0.0)
    elif layer.op in ("embedding", "_embedding_bag"):
        tensor.normal_(generator=rng)
        padding = layer.attributes.get("padding_idx", -1)
        if isinstance(padding, int) and padding >= 0:
            tensor[padding] = 0.0
    elif layer.op == "prelu":
        tensor.fill_(PRELU)
    elif layer.op in _MATRICES:
        bound = 1 / math.sqrt(max(_fan_in(layer.op, shapes.get(_MATRICES[layer.op], ())), 1))
        tensor.uniform_(-bound, bound, generator=rng)
    else:
        tensor.normal_(0.0, TOKEN_DEVIATION, generator=rng)


def draw_parameter(architecture: Architecture, at: int, tensor: Tensor, rng: torch.Generator) -> None:
    """Draw the values of a layer `parameter`, by its first use."""
    user, argument = _use(architecture, at)
    layer = architecture.layers[user]
    names = [parameter.name for parameter in signatures().get(layer.op, signatures()["relu"])[0].tensors]
    name = names[argument] if argument < len(names) else ""
    if name in weights.OWNED.get(layer.op, ()):
        draw(layer, name, tensor, {name: tuple(tensor.shape)}, rng)
    elif layer.op in ("mul", "add"):
        tensor.fill_(1.0 if layer.op == "mul" else 0.0)
    else:
        tensor.normal_(0.0, TOKEN_DEVIATION, generator=rng)


def _use(architecture: Architecture, at: int) -> tuple[int, int]:
    """Return the first layer that uses an output, behind changes of its shape, and the number of the input."""
    while True:
        user = architecture.children[at][0]
        argument = min(number for number, tail in wiring.values(architecture, user).items() if tail == at)
        if architecture.layers[user].op not in ("view", "expand", "permute", "unsqueeze", "squeeze", "_to_copy"):
            return user, argument
        at = user


def _fan_in(op: str, shape: tuple[int, ...]) -> int:
    if op in ("addmm", "mm"):
        return shape[0] if shape else 1
    return math.prod(shape[1:])
