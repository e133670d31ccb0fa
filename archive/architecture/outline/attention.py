"""Attention modules: from the product of queries and keys to the projections around it.

The number of heads, and their size, come from the shapes of queries and keys; those of keys and
values from the channels of the projections, since copies for grouped queries have no weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from archive.architecture.outline.modules import NORMS, Property, Recognition, extend
from archive.architecture.outline.shapes import BATCH
from archive.architecture.outline.wiring import Wiring

_MOST = 120
_MOST_CORE = 60


@dataclass
class _Core:
    """Layers from the product of queries and keys to the mix of values."""

    layers: set[int]
    query: int
    key: int
    value: int
    end: int


def find_attention(state: Recognition) -> None:
    """Add the attention modules of a network."""
    wiring = state.wiring
    for u, layer in enumerate(wiring.layers):
        core = None
        if layer.op == "scaled_dot_product_attention" and wiring.on_path[u]:
            inputs = wiring.inputs[u]
            core = _Core({u}, inputs[0], inputs[1], inputs[2], u)
        elif layer.op == "_softmax" and wiring.on_path[u]:
            core = _product_core(wiring, u)

        if core is not None and state.is_free(core.layers):
            _add(state, core)


def _product_core(wiring: Wiring, softmax: int) -> _Core | None:
    """Return the core around a softmax between two products; None without them."""
    after: set[int] = set()
    stack = [softmax]
    end = None
    while stack and len(after) < _MOST_CORE:
        u = stack.pop()
        for user in wiring.users[u]:
            if wiring.layers[user].op == "bmm":
                end = user
            elif user not in after:
                after.add(user)
                stack.append(user)

        if end is not None:
            break

    before: set[int] = set()
    stack = [softmax]
    begin = None
    while stack and len(before) < _MOST_CORE:
        u = stack.pop(0)
        if wiring.layers[u].op == "bmm":
            begin = u
            break

        before.add(u)
        stack += wiring.paths(u)

    if begin is None or end is None:
        return None

    ancestors: set[int] = set()
    stack = [end]
    while stack:
        u = stack.pop()
        if u in ancestors or u <= begin or len(ancestors) > _MOST_CORE:
            continue

        ancestors.add(u)
        stack += wiring.paths(u)

    behind = {begin}
    layers = {begin}
    for u in sorted(ancestors):
        if behind.intersection(wiring.paths(u)):
            behind.add(u)
            layers.add(u)

    inputs = wiring.inputs[end]
    mixed = [number for number in (0, 1) if inputs[number] in layers]
    if len(mixed) != 1:
        return None

    query, key = wiring.inputs[begin][0], wiring.inputs[begin][1]
    return _Core(layers, query, key, inputs[1 - mixed[0]], end)


def _add(state: Recognition, core: _Core) -> None:
    wiring = state.wiring
    properties: dict[str, Property] = {}
    layers = set(core.layers)
    projections: dict[str, int | None] = {}
    for role, start in (("query", core.query), ("key", core.key), ("value", core.value)):
        path, projection = _walk_back(state, start)
        projections[role] = projection
        layers |= path
        if role != "value":
            _describe_path(wiring, path, properties)

    _describe_heads(wiring, core, projections, properties)
    _describe_core(wiring, core, properties)
    inner = _outside(wiring, layers)
    if len(inner) > 2:
        layers = set(core.layers)

    end = core.end
    tail, projection = _walk_on(state, end)
    if projection is not None or tail:
        layers |= set(tail)
        end = tail[-1] if tail else end

    if projection is not None:
        properties["channels"] = wiring.channels(projection)[1]
        further = extend(state, projection, properties, activation=False)
        layers |= set(further)
        end = further[-1] if further else projection
    elif projections["value"] is not None:
        properties["channels"] = wiring.channels(projections["value"])[1]

    if not state.is_free(layers):
        return

    if "norm" in properties:
        properties["norm_after"] = True

    _cut_loose(state, layers, end)
    state.add("attention", layers, end, properties)


def _cut_loose(state: Recognition, layers: set[int], end: int) -> None:
    """Remove layers that are read outside of the module, with the layers before them."""
    wiring = state.wiring
    for u in sorted(layers, reverse=True):
        if u != end and not layers.issuperset(wiring.users[u]):
            stack = [u]
            while stack:
                v = stack.pop()
                if v in layers:
                    layers.discard(v)
                    stack += wiring.paths(v)


def _walk_back(state: Recognition, start: int) -> tuple[set[int], int | None]:
    """Return the layers from a projection to a point, the projection first found included."""
    wiring = state.wiring
    path: set[int] = set()
    projection = None
    stack = [start]
    while stack:
        u = stack.pop()
        if u in path:
            continue

        if len(path) == _MOST or u == 0 or state.owner[u] is not None:
            return set(), None

        if wiring.is_weighted(u):
            path.add(u)
            if projection is None or wiring.is_point(u):
                projection = u

            continue

        path.add(u)
        stack += wiring.paths(u)

    return path, projection


def _walk_on(state: Recognition, end: int) -> tuple[list[int], int | None]:
    """Return the layers from the mix to the output projection, and the projection."""
    wiring = state.wiring
    taken: list[int] = []
    waiting: list[int] = []
    u = wiring.next(end)
    while u is not None and state.owner[u] is None and len(wiring.paths(u)) == 1:
        waiting.append(u)
        if wiring.is_weighted(u):
            return [*taken, *waiting], u

        allowed = (
            wiring.is_glue(u)
            or wiring.is_pointwise(u)
            or wiring.layers[u].op in NORMS
            or wiring.is_activation(u)
        )
        if not allowed:
            break

        if wiring.is_glue(u):
            taken += waiting
            waiting = []

        u = wiring.next(u)

    return taken, None


def _outside(wiring: Wiring, layers: set[int]) -> set[int]:
    """Return the layers outside that a group reads."""
    outside: set[int] = set()
    for u in layers:
        outside.update(p for p in wiring.paths(u) if p not in layers)

    return outside


def _describe_path(wiring: Wiring, path: set[int], properties: dict[str, Property]) -> None:
    for u in path:
        if wiring.layers[u].op in NORMS and NORMS[wiring.layers[u].op] != "batch":
            properties["qk_norm"] = True
        elif wiring.layers[u].op in ("sin", "cos"):
            properties["rotary"] = True
        elif wiring.layers[u].op == "mul" and any(
            len(wiring.shapes[p] or ()) > 1 and wiring.layers[p].op != "parameter"
            for p in wiring.sources(u)
        ):
            properties["rotary"] = True


def _describe_heads(
    wiring: Wiring,
    core: _Core,
    projections: dict[str, int | None],
    properties: dict[str, Property],
) -> None:
    shape = _headed_shape(wiring, core.query)
    if shape is None:
        return

    heads = shape[1]
    properties["heads"] = heads
    query = projections["query"]
    key = projections["key"]
    value = projections["value"]
    size = shape[-1]
    properties["head_size"] = size
    properties["kv_heads"] = heads
    if query is None or key is None or not size:
        return

    width = wiring.channels(key)[1]
    if query == key == value:
        width = (width - heads * size) // 2
    elif query == key or key == value:
        width = width // 2

    if width and width % size == 0 and 0 < width // size <= heads:
        properties["kv_heads"] = width // size

    properties["in_channels"] = wiring.channels(query)[0]
    bias = wiring.layers[query].attributes.get("bias")
    if bias is None and not any(wiring.layers[v].op in NORMS for v in wiring.users[query]):
        properties["qkv_bias"] = False


def _headed_shape(wiring: Wiring, u: int) -> tuple[int, ...] | None:
    """Return the shape of queries with a side for the heads; None where it is not known."""
    for _ in range(6):
        shape = wiring.shapes[u]
        if shape is None:
            return None

        if len(shape) >= 4:
            return shape

        paths = wiring.paths(u)
        if len(paths) != 1:
            return None

        u = paths[0]

    return None


def _describe_core(wiring: Wiring, core: _Core, properties: dict[str, Property]) -> None:
    layer = wiring.layers[core.end]
    if layer.attributes.get("is_causal"):
        properties["causal"] = True

    if layer.op == "scaled_dot_product_attention":
        biased = 3 in wiring.inputs[core.end]
    else:
        biased = any(wiring.layers[u].op == "add" and wiring.sources(u) for u in core.layers)

    if biased:
        properties["position_bias"] = True

    query = _headed_shape(wiring, core.query)
    if query is None:
        return

    windows = query[0] // BATCH
    if len(query) > 4:
        windows *= query[2]

    if windows > 1:
        properties["window"] = query[-2]
