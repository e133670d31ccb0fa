"""Modules of a network: groups of layers that people see as one thing.

| kind                  | layers                                                                  |
|-----------------------|-------------------------------------------------------------------------|
| `conv`, `linear`      | a layer with weights, its norm, activation and scale                    |
| `attention`           | projections, product of queries and keys, mix, projection               |
| `mlp`                 | two linear layers (or 1×1 convolutions) with an activation between      |
| `squeeze-excitation`  | means over the image, two layers with weights, product with the image   |
| `gate`                | another product of a value with a function of it                        |
| `norm`, `activation`  | a norm with its activation; an activation alone                         |
| `pool`, `mean`        | a pooling over windows; a mean over the image or the tokens             |
| `add`, `cat`, …       | every other layer on a path, named after its operation                  |

Layers that only move values belong to the module before them, and sources to the module that uses
them first. A recognised group is closed: its layers but the last are read by the group alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from archive.architecture.operations import INPUT, OUTPUT
from archive.architecture.outline.wiring import Wiring, reach_back, sides

Property = bool | int | float | str

_MOST_GATE = 40
_MOST_BETWEEN = 40

NORMS = {
    "native_layer_norm": "layer",
    "native_group_norm": "group",
    "batch_norm": "batch",
    "instance_norm": "instance",
    "_native_batch_norm_legit_no_training": "batch",
    "_native_batch_norm_legit": "batch",
}
"""Operation of a norm to the name of its kind."""

MEANS = frozenset("mean amax _adaptive_avg_pool2d adaptive_avg_pool1d adaptive_max_pool2d".split())
"""Operations that reduce an image, or the tokens, to one position."""


@dataclass
class NetworkModule:
    """A module of a network.

    Attributes:
        kind: Kind of module, as in the table of `archive.architecture.outline.modules`.
        layers: Positions of its layers, ascending.
        end: Position of the layer that gives the module's output.
        properties: Numbers and names: channels, kernel, heads, ….
    """

    kind: str
    layers: tuple[int, ...]
    end: int
    properties: dict[str, Property] = field(default_factory=dict)

    @property
    def weighted(self) -> bool:
        """Whether the module has weights that mix channels or positions."""
        return self.kind in ("conv", "linear", "attention", "mlp", "recurrent", "embedding")


class Recognition:
    """State of the recognition of modules.

    Attributes:
        wiring: The network.
        modules: The modules so far.
        owner: Module of each layer; None for a layer without one.
    """

    def __init__(self, wiring: Wiring) -> None:
        """Begin without modules."""
        self.wiring = wiring
        self.modules: list[NetworkModule] = []
        self.owner: list[int | None] = [None] * len(wiring.layers)

    def is_free(self, layers: Iterable[int]) -> bool:
        """Return whether no module has any of these layers."""
        return all(self.owner[u] is None for u in layers)

    def add(
        self, kind: str, layers: Iterable[int], end: int, properties: dict[str, Property]
    ) -> NetworkModule:
        """Add a module."""
        module = NetworkModule(kind, tuple(sorted(layers)), end, properties)
        for u in module.layers:
            self.owner[u] = len(self.modules)

        self.modules.append(module)
        return module

    def is_closed(self, layers: set[int], end: int) -> bool:
        """Return whether layers are read by each other alone, but for the last one."""
        users = self.wiring.users
        return all(layers.issuperset(users[u]) for u in layers if u != end)


def recognise(wiring: Wiring) -> Recognition:
    """Return the modules of a network in topological order of their last layers."""
    from archive.architecture.outline.attention import find_attention

    state = Recognition(wiring)
    if wiring.torch:
        find_attention(state)
        for u in range(len(wiring.layers)):
            if wiring.layers[u].op == "mul":
                _find_gate(state, u)

        for u in range(len(wiring.layers)):
            if wiring.is_point(u) and wiring.is_weighted(u) and state.owner[u] is None:
                _find_mlp(state, u)

    for u in range(len(wiring.layers)):
        if wiring.on_path[u] and wiring.live[u] and state.owner[u] is None:
            _find_other(state, u)

    return state


def extend(
    state: Recognition,
    end: int,
    properties: dict[str, Property],
    *,
    norm: bool = True,
    activation: bool = True,
) -> list[int]:
    """Return the layers behind a module that belong to it, and add what they are.

    These are norm, activation, scale, and layers that move values, in a row.

    Args:
        state: The recognition.
        end: Last layer so far.
        properties: Properties of the module, which are extended.
        norm: Whether a norm may follow.
        activation: Whether an activation may follow.
    """
    wiring = state.wiring
    taken: list[int] = []
    while True:
        u = wiring.next(end)
        if u is None or state.owner[u] is not None or len(wiring.paths(u)) != 1:
            return taken

        if not _extends(wiring, u, properties, norm, activation):
            return taken

        taken.append(u)
        end = u


def _extends(
    wiring: Wiring, u: int, properties: dict[str, Property], norm: bool, activation: bool
) -> bool:
    """Return whether a layer belongs to the module before it, and add what it is."""
    layer = wiring.layers[u]
    if wiring.is_glue(u):
        if layer.op == "cat":
            properties["tokens"] = _tokens(wiring, u)

        return layer.op != "constant_pad_nd"

    if layer.op in NORMS:
        if "norm" in properties or not norm:
            return False

        if "activation" in properties and NORMS[layer.op] != "batch":
            return False

        properties["norm"] = NORMS[layer.op]
        return True

    if wiring.is_activation(u):
        if "activation" in properties or not activation:
            return False

        properties["activation"] = activation_name(wiring, u)
        return True

    if not wiring.is_pointwise(u):
        return False

    if layer.op == "add" and _is_embedding(wiring, u):
        properties["position_embedding"] = True
    elif "activation" not in properties and wiring.is_scale(u):
        properties["layer_scale"] = True

    return True


def _tokens(wiring: Wiring, u: int) -> int:
    """Return the number of tokens that a concatenation adds, such as the class token."""
    tokens = 0
    for source in wiring.sources(u):
        shape = wiring.shapes[source] or ()
        tokens += shape[1] if len(shape) == 3 else 1

    return tokens


def activation_name(wiring: Wiring, u: int) -> str:
    """Return the name of an activation: `relu6` for the clipped form of `hardtanh`."""
    layer = wiring.layers[u]
    if layer.op == "hardtanh":
        return "relu6" if layer.attributes.get("max_val") == 6.0 else "hardtanh"

    if layer.op == "gelu" and layer.attributes.get("approximate") == "tanh":
        return "gelu tanh"

    following = wiring.next(u)
    if layer.op == "relu" and following is not None:
        squares = wiring.layers[following].op == "mul" and not wiring.layers[following].attributes
        if wiring.layers[following].op == "pow" or (squares and wiring.inputs[following][0] == u):
            return (
                "squared relu"
                if len(wiring.inputs[following]) < 2 or (wiring.inputs[following].get(1) == u)
                else "relu"
            )

    return layer.op


def _find_gate(state: Recognition, end: int) -> None:
    """Add the gate that ends with a product, if it is one."""
    wiring = state.wiring
    paths = wiring.paths(end)
    if len(paths) != 2 or not state.is_free([end]):
        return

    value, gate = paths
    inside = reach_back(wiring, [gate], value, _MOST_GATE)
    if inside is None:
        value, gate = gate, value
        inside = reach_back(wiring, [gate], value, _MOST_GATE)

    if inside is None or not state.is_free(inside):
        return

    layers = {*inside, end}
    if not state.is_closed(layers, end):
        return

    weights = [u for u in sorted(inside) if wiring.is_weighted(u)]
    means = [u for u in inside if wiring.layers[u].op in MEANS]
    properties: dict[str, Property] = {}
    activations = [u for u in sorted(inside) if wiring.is_activation(u)]
    if not weights:
        # A value times a function of itself, such as x * sigmoid(1.702 x).
        if means or not activations:
            return

        name = "silu" if len(inside) == 1 and wiring.layers[gate].op == "sigmoid" else ""
        name = name or "gated " + activation_name(wiring, activations[-1])
        properties["activation"] = name
        state.add("activation", layers, end, properties)
        return

    if activations:
        properties["gate"] = activation_name(wiring, activations[-1])

    channels = wiring.channels(weights[-1])[1]
    properties["channels"] = channels
    kind = "gate"
    if means and len(weights) == 2 and all(map(wiring.is_point, weights)):
        kind = "squeeze-excitation"
        middle = wiring.channels(weights[0])[1]
        properties["middle"] = middle
        if channels:
            properties["ratio"] = round(middle / channels, 4)

        if len(activations) > 1:
            properties["activation"] = activation_name(wiring, activations[0])
    elif not means and len(weights) > 1:
        # A path of its own, which is no gate of one module.
        return

    layers.update(extend(state, end, properties, activation=False))
    state.add(kind, layers, max(layers), properties)


def _find_mlp(state: Recognition, first: int) -> None:
    """Add the MLP that begins with a layer, if it is one: weights, an activation, weights."""
    wiring = state.wiring
    parts = _between(state, first)
    if parts is None:
        return

    inside, second, partners = parts
    activations = [u for u in sorted(inside) if wiring.is_activation(u)]
    if not activations or any(wiring.layers[u].op == "_softmax" for u in inside):
        return

    width, hidden = wiring.channels(first)
    back = wiring.channels(second)[1]
    if wiring.is_image(first) and width != back:
        return

    properties: dict[str, Property] = {
        "in_channels": width,
        "channels": back,
        "hidden": wiring.channels(second)[0],
        "activation": activation_name(wiring, activations[0]),
    }
    if width:
        properties["ratio"] = round(wiring.channels(second)[0] / width, 4)

    products = [u for u in inside if wiring.layers[u].op == "mul" and len(wiring.paths(u)) == 2]
    if products and (partners or hidden == 2 * wiring.channels(second)[0]):
        properties["gated"] = True

    windows = [u for u in inside if wiring.is_image(u) and not wiring.is_point(u)]
    if windows:
        properties["kernel"] = max(wiring.kernel(windows[0]))

    norms = [wiring.layers[u].op for u in sorted(inside) if wiring.layers[u].op in NORMS]
    if norms:
        properties["inner_norm"] = NORMS[norms[0]]
    elif any("norm" in wiring.layers[u].op for u in inside):
        properties["inner_norm"] = "response"

    shape = wiring.shapes[first]
    before = wiring.shapes[wiring.paths(first)[0]]
    if shape and before and _over_positions(wiring, first):
        properties["over"] = "positions"

    layers = {first, second, *partners, *inside}
    layers.update(extend(state, second, properties, activation=False))
    if "norm" in properties:
        properties["norm_after"] = True

    state.add("mlp", layers, max(layers), properties)


def _over_positions(wiring: Wiring, first: int) -> bool:
    """Return whether a linear layer mixes positions: its input was transposed right before."""
    u = wiring.paths(first)[0]
    while wiring.is_glue(u) and wiring.layers[u].op != "permute":
        paths = wiring.paths(u)
        if len(paths) != 1:
            return False

        u = paths[0]

    return wiring.layers[u].attributes.get("dims") == (0, 2, 1) and wiring.groups[first] == "fc"


def _between(state: Recognition, first: int) -> tuple[set[int], int, list[int]] | None:
    """Return the layers between a layer with weights and the only next one, and that one.

    The last value has the further layers with weights that read the same input, as the second
    branch of a gated MLP does.
    """
    wiring = state.wiring
    inside: set[int] = set()
    ends: set[int] = set()
    stack = list(wiring.users[first])
    if not stack:
        return None

    while stack:
        u = stack.pop()
        if u in inside or u in ends:
            continue

        if state.owner[u] is not None or wiring.layers[u].op == OUTPUT:
            return None

        inner = wiring.is_depthwise(u) and not wiring.is_image(first)
        if wiring.is_weighted(u) and not inner:
            ends.add(u)
            continue

        inside.add(u)
        stack += wiring.users[u]
        if len(inside) > _MOST_BETWEEN:
            return None

    if len(ends) != 1:
        return None

    (second,) = ends
    if not wiring.is_point(second):
        return None

    (begin,) = wiring.paths(first)
    partners: list[int] = []
    for u in [*inside, second]:
        for parent in wiring.paths(u):
            if parent in inside or parent == first or parent in partners:
                continue

            source = parent
            if wiring.is_point(source) and wiring.paths(source) == [begin]:
                partners.append(source)
            else:
                return None

    if not state.is_free(partners):
        return None

    return inside, second, partners


def _find_other(state: Recognition, first: int) -> None:
    """Add the module that begins with a layer: with weights, a norm, or a single layer."""
    wiring = state.wiring
    u = first
    layers = [u]
    following = wiring.next(u)
    if wiring.layers[u].op == "constant_pad_nd" and following is not None:
        if wiring.groups[following] in ("conv", "pool") and state.owner[following] is None:
            u = following
            layers.append(u)

    layer = wiring.layers[u]
    properties: dict[str, Property] = {}
    kind = _KINDS.get(wiring.groups[u], layer.op)
    if wiring.is_weighted(u):
        _describe_weights(wiring, u, properties)
    elif layer.op in NORMS:
        properties["norm"] = NORMS[layer.op]
    elif wiring.is_activation(u):
        properties["activation"] = activation_name(wiring, u)
    elif layer.op in MEANS and wiring.torch:
        kind = "mean"
    elif wiring.groups[u] == "pool":
        _describe_pool(wiring, u, properties)
    elif layer.op == "add" and len(wiring.paths(u)) == 1 and wiring.sources(u):
        kind = "position embedding" if _is_embedding(wiring, u) else "add"

    if layer.op not in (INPUT, OUTPUT) and wiring.torch:
        whole = wiring.is_weighted(u) or wiring.is_glue(u) or kind in ("norm", "activation")
        joins = whole or kind in ("add", "cat")
        layers += extend(state, u, properties, norm=whole, activation=joins)
        if wiring.is_glue(u):
            names = [name for name in ("norm", "activation") if name in properties]
            kind = names[0] if names else "reshape"

    state.add(kind, layers, layers[-1], properties)


def _is_embedding(wiring: Wiring, u: int) -> bool:
    """Return whether a trained tensor of the positions is added."""
    return any(len(wiring.shapes[p] or ()) > 1 for p in wiring.sources(u))


def _describe_weights(wiring: Wiring, u: int, properties: dict[str, Property]) -> None:
    channels = wiring.channels(u)
    properties["in_channels"], properties["channels"] = channels
    if not wiring.is_image(u):
        return

    layer = wiring.layers[u]
    properties["kernel"] = max(wiring.kernel(u), default=1)
    properties["stride"] = wiring.stride(u)
    groups = layer.attributes.get("groups", 1)
    if wiring.is_depthwise(u):
        properties["depthwise"] = True
    elif isinstance(groups, int) and groups > 1:
        properties["groups"] = groups

    if layer.attributes.get("transposed"):
        properties["transposed"] = True

    dilation = max(sides(layer, "dilation"), default=1)
    if dilation > 1:
        properties["dilation"] = dilation

    if 1 in wiring.inputs[u]:
        properties["weights"] = "standardised"


def _describe_pool(wiring: Wiring, u: int, properties: dict[str, Property]) -> None:
    name = wiring.layers[u].op
    properties["pool"] = "max" if "max" in name else "avg"
    kernel = wiring.kernel(u)
    if kernel:
        properties["kernel"] = max(kernel)

    properties["stride"] = wiring.stride(u)


_KINDS = {
    "conv": "conv",
    "fc": "linear",
    "norm": "norm",
    "rectifier": "activation",
    "sigmoid": "activation",
    "recurrent": "recurrent",
    "embedding": "embedding",
    "pool": "pool",
}
