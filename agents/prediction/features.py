"""Features of networks that hold across families: what a network computes, with which operations.

No feature is a hash of a graph, and none but the size grows with the network, so that two families
are close where they spend their work on the same kinds of operations.

| group         | features of the space `torch`                                                    |
|---------------|----------------------------------------------------------------------------------|
| `size`        | logarithms of multiply-adds, activations (outputs of products), traffic (outputs |
|               | of all layers that compute) and parameters of one input, and its side; layers,   |
|               | depth in products, widths                                                        |
| `work`        | square roots of the shares of each kind of operation in multiply-adds and in     |
|               | parameters                                                                       |
| `functions`   | activations by kind, norms, gates, softmax, for each layer with weights          |
| `resolutions` | shares of the multiply-adds at each halving of the image; stem, windows,         |
|               | enlargement of the test images                                                   |
| `wiring`      | sums, products, copies and pools for each layer with weights                     |

Networks of other spaces have no shapes: `size` has their layers, edges, depth and mass, `work` the
shares of their operations, and `wiring` the shares of the pairs of operations that edges join.
Square roots keep apart the small shares, which matter most.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from archive.architecture.aten.blocks import repeats
from archive.architecture.aten.vocabulary import NAME as TORCH
from archive.architecture.aten.weights import count_trained, window
from archive.architecture.aten.weights import shape as weight_shape
from archive.architecture.aten.wiring import values
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import total_mass
from archive.architecture.outline.shapes import BATCH, Shape, output_shapes

Features = dict[str, float]
"""Name of a feature, `GROUP: NAME`, to its value."""

SIDE = "size: side"
SCALED = ("size: multiply-adds", "size: activations", "size: traffic", "size: roofline")
"""Logarithms to base 2 that grow with the number of pixels."""

ENLARGEMENT = "resolutions: enlargement"
"""Logarithm to base 2 of the side of the test images over the network's own: many networks are
tested on larger images than they were made for."""

LINEAR = (*SCALED, "size: parameters", SIDE, ENLARGEMENT)
"""Features with a linear effect, which holds outside of the range of the results, too."""

BALANCE = 200
"""Multiply-adds in the time in which an accelerator writes and reads one number, of the order of
present ones: a roofline of work and traffic (Williams et al., 2009)."""

HALVINGS = 6
"""Resolutions that are told apart: the whole image, its half, …, a 32nd and below."""

_CONVOLUTIONS = ("window", "pointwise", "depthwise", "grouped")
_KINDS = (*_CONVOLUTIONS, "linear", "attention", "recurrent")
_PRODUCTS = frozenset(["bmm", "mm", "baddbmm", "scaled_dot_product_attention"])
_FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(["relu", "leaky_relu", "elu", "hardtanh", "prelu", "rrelu"], "relu"),
    **dict.fromkeys(["silu", "mish", "hardswish"], "swish"),
    "gelu": "gelu",
}
_NORMS: Mapping[str, str] = {
    "batch_norm": "batch norm",
    "_native_batch_norm_legit_no_training": "batch norm",
    "native_layer_norm": "layer norm",
    "native_group_norm": "group norm",
    "instance_norm": "group norm",
}
_WRITING = frozenset(["norm", "rectifier", "sigmoid", "elementwise"])
_COPIES = frozenset("clone cat roll constant_pad_nd repeat index im2col copy flip".split())


def features(architecture: Architecture, shapes: Sequence[Shape | None] | None = None) -> Features:
    """Return the features of a network.

    Args:
        architecture: The network.
        shapes: Shapes of the layers' outputs in the space `torch`, where they are known.
    """
    if architecture.space != TORCH:
        return _of_cells(architecture)

    return _of_torch(architecture, output_shapes(architecture) if shapes is None else shapes)


def at_side(described: Features, side: int | None) -> Features:
    """Return the features of the same network for images of another side.

    Args:
        described: Features of the network for its own side.
        side: The other side in pixels; None keeps the network's own.
    """
    own = described.get(SIDE)
    if side is None or not own:
        return described

    doublings = math.log2(side) - own
    scaled = {name: described[name] + 2.0 * doublings for name in SCALED}
    return {**described, **scaled, SIDE: math.log2(side), ENLARGEMENT: doublings}


def _of_cells(architecture: Architecture) -> Features:
    network = architecture.functional
    labels = [layer.op for layer in network.layers]
    described = {
        "size: layers": _log(len(labels)),
        "size: edges": _log(len(network.edges)),
        "size: depth": _log(network.depth),
        "size: mass": _log(total_mass(network)),
    }
    for label, count in Counter(labels[1:-1]).items():
        described[f"work: {label}"] = math.sqrt(count / len(labels))

    pairs = Counter((labels[tail], labels[head]) for tail, head in network.edges)
    for (tail, head), count in pairs.items():
        described[f"wiring: {tail} > {head}"] = math.sqrt(count / len(network.edges))

    return described


def _of_torch(architecture: Architecture, shapes: Sequence[Shape | None]) -> Features:
    sums = _Sums(architecture, shapes)
    work = max(sums["multiply-adds"], 1.0)
    numbers = max(sums["parameters of layers"], 1.0)
    outputs = max(sums["activations"], 1.0)
    weighted = max(sums["weighted layers"], 1.0)
    norms = max(sum(sums[name] for name in set(_NORMS.values())), 1.0)
    traffic = max(sums["traffic"], 1.0)
    described = {
        "size: multiply-adds": math.log2(work),
        "size: activations": math.log2(outputs),
        "size: traffic": math.log2(traffic),
        "size: roofline": math.log2(work + BALANCE * traffic),
        "size: intensity": math.log2(work / traffic),
        "size: parameters": _log(sums["parameters"]),
        "size: layers": _log(len(architecture.layers)),
        "size: depth": _log(sums["depth"]),
        "size: widest": _log(sums["widest"]),
        "size: head": _log(sums["head"]),
        SIDE: math.log2(max(sums["side"], 1.0)),
        ENLARGEMENT: 0.0,
        "functions: norms": norms / weighted,
        "functions: gates": sums["gates"] / weighted,
        "functions: softmax": sums["softmax"] / weighted,
        "resolutions: stem width": _log(sums["stem width"]),
        "resolutions: stem stride": math.log2(max(sums["stem stride"], 1.0)),
        "resolutions: window": sums["windows"] / max(sums["windowed"], 1.0),
        "wiring: sums": min(sums["sums"] / weighted, 2.0),
        "wiring: products": min(sums["products"] / weighted, 3.0),
        "wiring: pools": sums["pools"] / weighted,
        "wiring: copies": math.sqrt(sums["copied"] / outputs),
    }
    for kind in _KINDS:
        described[f"work: {kind}"] = math.sqrt(sums[f"multiply-adds {kind}"] / work)
        described[f"work: parameters of {kind}"] = math.sqrt(sums[f"parameters {kind}"] / numbers)

    for name in {*_FUNCTIONS.values(), "sigmoid"}:
        described[f"functions: {name}"] = math.sqrt(sums[name] / outputs)

    for name in set(_NORMS.values()):
        described[f"functions: {name}"] = sums[name] / norms

    for halving in range(HALVINGS):
        share = sums[f"multiply-adds at {halving}"] / work
        described[f"resolutions: at {halving}"] = math.sqrt(share)

    return described


def _log(number: float) -> float:
    return math.log2(number + 1.0)


class _Sums(defaultdict[str, float]):
    """Sums over the layers of a network of the space `torch`, for one input."""

    def __init__(self, architecture: Architecture, shapes: Sequence[Shape | None]) -> None:
        super().__init__(float)
        self.shapes = shapes
        image = self.shapes[0] or ()
        self.image_side = image[-1] if len(image) >= 4 else 0
        self["side"] = self.image_side

        depths: list[int] = []
        times = repeats(architecture)
        groups = architecture.groups
        for u, layer in enumerate(architecture.layers):
            parents = values(architecture, u)
            before = max((depths[parent] for parent in parents.values()), default=0)
            inputs = {number: self.shapes[parent] for number, parent in parents.items()}
            counts = self._work(layer, self.shapes[u], inputs, times[u])
            depths.append(before + (times[u] if counts else 0))
            self["parameters"] += times[u] * count_trained(layer)
            self._count(layer, groups[u], self.shapes[u], times[u])

        self["depth"] = max(depths)

    def _work(
        self, layer: Layer, shape: Shape | None, inputs: Mapping[int, Shape | None], times: int
    ) -> bool:
        """Add the multiply-adds of a layer; return whether it is one with products."""
        matrix = weight_shape(layer, "weight") or inputs.get(1) or ()
        source = inputs.get(0) or ()
        out = _per_input(shape)
        numbers = math.prod(matrix)
        halving = HALVINGS - 1
        work: float
        if layer.op == "convolution" and len(matrix) > 2:
            kind = _kind_of_convolution(layer, matrix)
            image = source if layer.attributes.get("transposed") else shape or ()
            work = math.prod(image[2:]) * numbers
            halving = self._halving(math.prod((shape or ())[2:]))
            self._see_convolution(layer, matrix, out, times)
            self["head"] = 0
        elif layer.op in ("linear", "addmm") and len(matrix) == 2:
            kind = "linear"
            work = out * matrix[1]
            halving = self._halving(math.prod((shape or ())[1:-1]))
            self["head"] = matrix[1]
        elif layer.op in _PRODUCTS and source:
            kind = "attention"
            numbers = 0
            work = out * source[-1]
            if layer.op == "scaled_dot_product_attention":
                keys = inputs.get(1) or source
                work = _per_input(source[:-1]) * keys[-2] * 2 * source[-1]
                out += _per_input(source[:-1]) * keys[-2]
        elif layer.op in ("lstm", "gru", "rnn"):
            kind = "recurrent"
            numbers = count_trained(layer)
            work = numbers * math.prod(source[1:-1])
        else:
            return False

        self["multiply-adds"] += times * work
        self[f"multiply-adds {kind}"] += times * work
        self["parameters of layers"] += times * numbers
        self[f"parameters {kind}"] += times * numbers
        self["activations"] += times * out
        self["traffic"] += times * out
        self["weighted layers"] += times * (kind != "attention")
        if kind != "attention":
            self[f"multiply-adds at {halving}"] += times * work

        if kind in (*_CONVOLUTIONS, "linear"):
            self["widest"] = max(self["widest"], layer.units or matrix[0])

        return True

    def _see_convolution(
        self, layer: Layer, matrix: tuple[int, ...], out: float, times: int
    ) -> None:
        if not self["windowed"]:
            self["stem width"] = matrix[0]
            self["stem stride"] = layer.stride

        self["windows"] += times * max(window(layer), max(matrix[2:])) * out
        self["windowed"] += times * out

    def _halving(self, pixels: float) -> int:
        """Return how often the image was halved where a layer has this number of pixels."""
        if not self.image_side or pixels <= 0:
            return HALVINGS - 1

        halvings = round(math.log2(self.image_side / math.sqrt(pixels)))
        return min(max(halvings, 0), HALVINGS - 1)

    def _count(self, layer: Layer, group: str, shape: Shape | None, times: int) -> None:
        """Count a layer, and the numbers that it writes beside the results of products."""
        out = _per_input(shape)
        if group in _WRITING or layer.op in _COPIES or layer.op == "_softmax":
            self["traffic"] += times * out

        if layer.op in _FUNCTIONS:
            self[_FUNCTIONS[layer.op]] += times * out
        elif layer.op in ("sigmoid", "hardsigmoid", "tanh"):
            self["sigmoid"] += times * out
            if shape is not None and len(shape) == 4 and shape[-1] == 1:
                self["gates"] += times
        elif layer.op in _NORMS:
            self[_NORMS[layer.op]] += times
        elif layer.op in ("_softmax", "scaled_dot_product_attention"):
            self["softmax"] += times
        elif layer.op in ("add", "sub"):
            self["sums"] += times
        elif layer.op in ("mul", "div"):
            self["products"] += times
        elif group == "pool" or layer.op in ("mean", "sum", "amax", "max"):
            self["pools"] += times
        elif layer.op in _COPIES:
            self["copied"] += times * out


def _kind_of_convolution(layer: Layer, matrix: tuple[int, ...]) -> str:
    if layer.attributes.get("groups", 1) != 1:
        return "depthwise" if matrix[1] == 1 else "grouped"

    return "pointwise" if max(matrix[2:]) == 1 else "window"


def _per_input(shape: Shape | None) -> float:
    """Return the numbers of an output that belong to one input of the batch."""
    if shape is None:
        return 0.0

    total = math.prod(shape)
    return total / BATCH if total % BATCH == 0 else float(total)
