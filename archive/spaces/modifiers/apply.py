"""The nine modifiers of NASBOT (Table 6) as pure functions of a network and explicit choices.

A modifier returns a new architecture, or raises `InvalidArchitectureError` if the result would be
invalid: different image sizes at one layer, a dead end, a layer that cannot be removed. The limits
of a space are not checked here.

    units of layers     inc_single  dec_single  inc_en_masse  dec_en_masse
    the graph           dup_path  remove_layer  skip  swap_label  wedge_layer
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, product

from archive.architecture.graph import Architecture, Edge, Layer
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError

AVERAGE_POOL = Layer("avg-pool", None, 2)

# Units of a new layer between layers without units, as in the authors' released code.
DEFAULT_UNITS = 16


def inc_single(architecture: Architecture, layer: int) -> Architecture:
    """Increase the units of one layer by 1/8."""
    return _change_units(architecture, [layer], +1)


def dec_single(architecture: Architecture, layer: int) -> Architecture:
    """Decrease the units of one layer by 1/8."""
    return _change_units(architecture, [layer], -1)


def inc_en_masse(architecture: Architecture, layers: Iterable[int]) -> Architecture:
    """Increase the units of several layers by 1/8."""
    return _change_units(architecture, layers, +1)


def dec_en_masse(architecture: Architecture, layers: Iterable[int]) -> Architecture:
    """Decrease the units of several layers by 1/8."""
    return _change_units(architecture, layers, -1)


def change_units(units: int, sign: int) -> int:
    """Return units increased (`sign` 1) or decreased (-1) by 1/8, rounded half up, at least 1."""
    return units + sign * max(1, (units + 4) // 8)


def dup_path(architecture: Architecture, path: Sequence[int]) -> Architecture:
    """Duplicate the inner layers of a path, as a second path between its ends.

    Args:
        architecture: The network.
        path: Positions u_1, …, u_k with k >= 3, each feeding the next.
    """
    edges = list(architecture.edges)
    if len(path) < 3 or not set(_links(path)) <= set(edges):
        raise InvalidArchitectureError(
            f"dup_path needs a path of three layers or more, got {tuple(path)}"
        )

    n = len(architecture.layers)
    inner = path[1:-1]
    chain = [path[0], *range(n, n + len(inner)), path[-1]]
    copies = [architecture.layers[u] for u in inner]
    return Architecture(architecture.space, [*architecture.layers, *copies], edges + _links(chain))


def remove_layer(architecture: Architecture, layer: int, reconnect: Iterable[Edge]) -> Architecture:
    """Remove a layer.

    Args:
        architecture: The network.
        layer: Position of the layer; neither the input nor the output.
        reconnect: The new edges from its parents to its children. A parent that fed nothing else
            and a child that nothing else fed each need one (`orphans`).
    """
    if not 0 < layer < len(architecture.layers) - 1:
        raise InvalidArchitectureError("the input and the output cannot be removed", layer)

    reconnect = list(reconnect)
    parents = architecture.parents[layer]
    children = architecture.children[layer]
    if not set(reconnect) <= set(product(parents, children)):
        raise InvalidArchitectureError(
            f"new edges lead from its parents to its children, got {reconnect}", layer
        )

    kept = [edge for edge in architecture.edges if layer not in edge]
    edges = [(tail - (tail > layer), head - (head > layer)) for tail, head in (*kept, *reconnect)]
    layers = architecture.layers[:layer] + architecture.layers[layer + 1 :]
    return Architecture(architecture.space, layers, edges)


def orphans(architecture: Architecture, layer: int) -> tuple[list[int], list[int]]:
    """Return the parents that only feed this layer, and the children that only it feeds."""
    parents = []
    for parent in architecture.parents[layer]:
        if len(architecture.children[parent]) == 1:
            parents.append(parent)

    children = []
    for child in architecture.children[layer]:
        if len(architecture.parents[child]) == 1:
            children.append(child)

    return parents, children


def skip(architecture: Architecture, tail: int, head: int) -> Architecture:
    """Connect two unconnected layers.

    If the image out of `tail` is larger than those into `head`, average pools of stride 2 are
    inserted.

    Args:
        architecture: The network.
        tail: Position of the layer that the connection leaves.
        head: Position of the layer that it enters, topologically after `tail`.
    """
    if not 0 <= tail < head < len(architecture.layers) or (tail, head) in architecture.edges:
        raise InvalidArchitectureError(
            f"skip needs two unconnected layers in order, got ({tail}, {head})"
        )

    pools = halvings(architecture, tail, head)
    if pools is None:
        raise InvalidArchitectureError(
            f"average pools cannot match the image sizes of a skip from layer {tail}", head
        )

    n = len(architecture.layers)
    chain = [tail, *range(n, n + pools), head]
    layers = [*architecture.layers, *[AVERAGE_POOL] * pools]
    return Architecture(architecture.space, layers, [*architecture.edges, *_links(chain)])


def halvings(architecture: Architecture, tail: int, head: int) -> int | None:
    """Return how often to halve the image out of `tail` for `head`; None if no number fits."""
    if not vocabulary(architecture.space).images:
        return 0

    levels = architecture.levels
    out = levels[tail]
    into = levels[architecture.parents[head][0]]
    if out is None or into is None:
        return 0 if out is into else None

    return into - out if into >= out else None


def swap_label(
    architecture: Architecture, layer: int, op: str, *, default_units: int = DEFAULT_UNITS
) -> Architecture:
    """Change the operation of a layer.

    Units and stride stay if the new operation permits them. A layer without units gets the units of
    its surroundings. A stride that the new operation does not permit becomes the one that it does.
    """
    old = architecture.layers[layer]
    operation = vocabulary(architecture.space)[op]
    if op == old.op:
        raise InvalidArchitectureError(f"swap_label needs another label, got {op}", layer)

    units = None
    if operation.has_units:
        units = old.units
        if units is None:
            units = surrounding_units(architecture, layer, layer, default_units)

    stride = old.stride if old.stride in operation.strides else operation.strides[0]
    layers = list(architecture.layers)
    layers[layer] = Layer(op, units, stride)
    return Architecture(architecture.space, layers, architecture.edges)


def wedge_layer(
    architecture: Architecture,
    edge: Edge,
    op: str,
    *,
    stride: int | None = None,
    default_units: int = DEFAULT_UNITS,
) -> Architecture:
    """Put a new layer on an edge.

    Args:
        architecture: The network.
        edge: An edge `(u, v)`; it is replaced by `(u, w)` and `(w, v)`.
        op: Operation of the new layer w. If it has units, w gets the mean units of u and v.
        stride: Stride of w; by default the smallest that the operation permits.
        default_units: Units of w if neither u nor v, nor the layers behind them, have any.
    """
    if edge not in architecture.edges:
        raise InvalidArchitectureError(f"wedge_layer needs an edge of the network, got {edge}")

    operation = vocabulary(architecture.space)[op]
    units = surrounding_units(architecture, *edge, default_units) if operation.has_units else None
    new = len(architecture.layers)
    layers = [
        *architecture.layers,
        Layer(op, units, operation.strides[0] if stride is None else stride),
    ]
    edges = list(architecture.edges)
    edges.remove(edge)
    return Architecture(architecture.space, layers, [*edges, *_links([edge[0], new, edge[1]])])


def surrounding_units(architecture: Architecture, above: int, below: int, default: int) -> int:
    """Return the mean of the units of two layers, rounded half up.

    A layer without units counts with the mean of its parents' (for `above`) or of its children's
    (for `below`), as in the authors' released code. If only one side has units, the result is
    those; if none has, it is `default`.
    """
    mean = _mean(
        [
            _units_towards(architecture, above, architecture.parents, {}),
            _units_towards(architecture, below, architecture.children, {}),
        ]
    )
    return default if mean is None else int(mean + 0.5)


def _units_towards(
    architecture: Architecture,
    layer: int,
    neighbours: Sequence[Sequence[int]],
    cache: dict[int, float | None],
) -> float | None:
    # The cache makes the cost of a lattice of pools linear, although it has exponentially many
    # paths.
    if layer not in cache:
        units: float | None = architecture.layers[layer].units
        if units is None:
            behind = []
            for other in neighbours[layer]:
                behind.append(_units_towards(architecture, other, neighbours, cache))

            units = _mean(behind)

        cache[layer] = units

    return cache[layer]


def _mean(numbers: Iterable[float | None]) -> float | None:
    """Return the mean of the numbers that are known; None without any."""
    values = [number for number in numbers if number is not None]
    return sum(values) / len(values) if values else None


def _change_units(architecture: Architecture, layers: Iterable[int], sign: int) -> Architecture:
    new = list(architecture.layers)
    for u in layers:
        op = new[u].op
        units = new[u].units
        stride = new[u].stride
        if units is None:
            raise InvalidArchitectureError(f"{op} has no units to change", u)

        new[u] = Layer(op, change_units(units, sign), stride)

    return Architecture(architecture.space, new, architecture.edges)


def _links(chain: Sequence[int]) -> list[Edge]:
    return list(pairwise(chain))
