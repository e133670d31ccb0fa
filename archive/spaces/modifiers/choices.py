"""Legal choices of each modifier of Table 6 in a network.

Choices are excluded by degrees, groups and local image sizes. Of the remaining ones some may give
no member, because of image sizes further down or of the mass, so the caller must check the result
of a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations, product
from typing import TYPE_CHECKING

from archive.architecture.graph import Architecture, Edge
from archive.architecture.operations import Vocabulary, vocabulary
from archive.errors import InvalidArchitectureError
from archive.spaces.modifiers import apply
from archive.spaces.modifiers.apply import change_units, halvings, orphans

if TYPE_CHECKING:
    from archive.spaces.layerwise import Limits


_ENDS = ("input", "output", "decision")

# (operation, stride) of a new layer.
Wedge = tuple[str, int]


def resizable(architecture: Architecture, limits: Limits, sign: int) -> list[int]:
    """Return the layers with units that can grow (`sign` 1) or shrink (-1) by 1/8."""
    positions = []
    for u, layer in enumerate(architecture.layers):
        if layer.units is not None:
            units = change_units(layer.units, sign)
            if limits.min_units <= units <= limits.max_units:
                positions.append(u)

    return positions


def runs(architecture: Architecture) -> list[list[int]]:
    """Return the sets of layers that an en-masse modifier can change.

    Table 6 orders the layers topologically and picks 1/8 of them "in order"; the authors' released
    code takes consecutive ones. Only layers with units count: 1/8 of them, 1/4 of eight or fewer,
    1/2 of four or fewer. Fractions are rounded up, so that more than one layer changes if there are
    three or more.
    """
    layers = [u for u, layer in enumerate(architecture.layers) if layer.units is not None]
    n = len(layers)
    part = 2 if n <= 4 else 4 if n <= 8 else 8
    size = -(-n // part)
    return [layers[first : first + size] for first in range(n - size + 1)] if n else []


def resizable_runs(architecture: Architecture, limits: Limits, sign: int) -> list[list[int]]:
    """Return the sets of `runs` all of whose layers can grow (`sign` 1) or shrink (-1) by 1/8."""
    resizable_layers = set(resizable(architecture, limits, sign))
    return [run for run in runs(architecture) if resizable_layers.issuperset(run)]


def branching(architecture: Architecture, limits: Limits) -> list[int]:
    """Return the layers where a duplicated path can begin."""
    last = len(architecture.layers) - 1
    positions = []
    for u, children in enumerate(architecture.children):
        if children and children[0] != last and len(children) < limits.max_degree:
            positions.append(u)

    return positions


def longest_copy(architecture: Architecture, limits: Limits) -> int:
    """Return the maximum number of layers that a duplicated path may add."""
    return min(
        limits.max_layers - len(architecture.layers), limits.max_edges - len(architecture.edges) - 1
    )


def removable(architecture: Architecture) -> list[int]:
    """Return the layers that can be removed: all but the ends.

    A decision layer only if there is another.
    """
    ends = {*_ENDS}
    if len(architecture.parents[-1]) > 1:
        ends.remove("decision")

    return [u for u, group in enumerate(architecture.groups) if group not in ends]


def reconnections(architecture: Architecture, layer: int) -> Iterator[list[Edge]]:
    """Yield the ways to reconnect parents and children when a layer is removed.

    As in the authors' released code, an edge serves both ends if possible: orphaned parents and
    children are paired, and the remaining ones are joined to any child or parent.
    """
    parents, children = orphans(architecture, layer)
    if len(parents) > len(children):
        others = list(architecture.children[layer])
        for paired in permutations(parents, len(children)):
            rest = [p for p in parents if p not in paired]
            for heads in product(others, repeat=len(rest)):
                yield [*zip(paired, children, strict=True), *zip(rest, heads, strict=True)]
    else:
        others = list(architecture.parents[layer])
        for paired in permutations(children, len(parents)):
            rest = [c for c in children if c not in paired]
            for tails in product(others, repeat=len(rest)):
                yield [*zip(parents, paired, strict=True), *zip(tails, rest, strict=True)]


def can_skip(architecture: Architecture, limits: Limits, tail: int, head: int) -> bool:
    """Return whether a connection can lead from a layer to a later one."""
    if (
        len(architecture.children[tail]) >= limits.max_degree
        or len(architecture.parents[head]) >= limits.max_degree
    ):
        return False

    if (
        head in architecture.children[tail]
        or architecture.children[tail][0] == len(architecture.layers) - 1
    ):
        return False

    pools = halvings(architecture, tail, head)
    return (
        pools is not None
        and len(architecture.layers) + pools <= limits.max_layers
        and len(architecture.edges) + pools < limits.max_edges
    )


def swaps(architecture: Architecture, layer: int) -> tuple[list[str], list[str]]:
    """Return the new labels of a layer that keep its image size, and the ones that change it."""
    words = vocabulary(architecture.space)
    old = architecture.layers[layer]
    group = words.operations[old.op].group
    if group in _ENDS:
        return [], []

    flat = words.images and architecture.levels[architecture.parents[layer][0]] is None
    same: list[str] = []
    other: list[str] = []
    for op in words.of_group("fc") if flat else _inner(words):
        operation = words.operations[op]
        keeps = operation.flat == (group == "fc") and old.stride in operation.strides
        if op == old.op:
            continue

        if keeps or flat or not words.images:
            same.append(op)
        else:
            other.append(op)

    return same, other


def wedgeable(architecture: Architecture) -> list[Edge]:
    """Return the edges for a new layer: all but those into the output."""
    last = len(architecture.layers) - 1
    return [edge for edge in architecture.edges if edge[1] != last]


def wedges(architecture: Architecture, edge: Edge) -> tuple[list[Wedge], list[Wedge]]:
    """Return the new layers for an edge that keep the image size, and the ones that change it."""
    words = vocabulary(architecture.space)
    tail, head = edge
    if not words.images:
        return list(product(_inner(words), [1])), []

    fc = list(product(words.of_group("fc"), [1]))
    if architecture.levels[tail] is None:
        return fc, []

    same = list(product(words.of_group("conv"), [1]))
    other = list(product(words.of_group("conv", "pool"), [2]))
    if words[architecture.layers[head].op].flat and len(architecture.parents[head]) == 1:
        same += fc

    return same, other


def _inner(words: Vocabulary) -> list[str]:
    return [name for name, operation in words.operations.items() if operation.group not in _ENDS]


# A function that applies one choice: it returns the network, or raises InvalidArchitectureError.
Choice = Callable[[], Architecture]


def every(architecture: Architecture, limits: Limits) -> Iterator[tuple[str, Architecture]]:
    """Yield (modifier, result) for all choices that give a network.

    Limits may still be exceeded.
    """
    for name, choices in EVERY.items():
        for choice in choices(architecture, limits):
            try:
                yield name, choice()
            except InvalidArchitectureError:
                continue


def _resize_single(architecture: Architecture, limits: Limits, sign: int) -> Iterator[Choice]:
    modifier = apply.inc_single if sign > 0 else apply.dec_single
    for u in resizable(architecture, limits, sign):
        yield partial(modifier, architecture, u)


def _resize_en_masse(architecture: Architecture, limits: Limits, sign: int) -> Iterator[Choice]:
    modifier = apply.inc_en_masse if sign > 0 else apply.dec_en_masse
    for run in resizable_runs(architecture, limits, sign):
        yield partial(modifier, architecture, run)


def _dup_path(architecture: Architecture, limits: Limits) -> Iterator[Choice]:
    longest = longest_copy(architecture, limits)
    for start in branching(architecture, limits):
        for path in _paths(architecture, [start], longest + 2):
            yield partial(apply.dup_path, architecture, path)


def _paths(architecture: Architecture, path: list[int], longest: int) -> Iterator[list[int]]:
    if len(path) >= 3:
        yield path

    if len(path) < longest:
        for child in architecture.children[path[-1]]:
            yield from _paths(architecture, [*path, child], longest)


def _remove_layer(architecture: Architecture, limits: Limits) -> Iterator[Choice]:
    del limits
    for u in removable(architecture):
        for edges in reconnections(architecture, u):
            yield partial(apply.remove_layer, architecture, u, edges)


def _skip(architecture: Architecture, limits: Limits) -> Iterator[Choice]:
    last = len(architecture.layers) - 1
    for tail in range(last):
        for head in range(tail + 1, last):
            if can_skip(architecture, limits, tail, head):
                yield partial(apply.skip, architecture, tail, head)


def _swap_label(architecture: Architecture, limits: Limits) -> Iterator[Choice]:
    units = limits.clip(apply.DEFAULT_UNITS)
    for u in range(len(architecture.layers)):
        for labels in swaps(architecture, u):
            for op in labels:
                yield partial(apply.swap_label, architecture, u, op, default_units=units)


def _wedge_layer(architecture: Architecture, limits: Limits) -> Iterator[Choice]:
    if len(architecture.layers) >= limits.max_layers or len(architecture.edges) >= limits.max_edges:
        return

    units = limits.clip(apply.DEFAULT_UNITS)
    for edge in wedgeable(architecture):
        for labels in wedges(architecture, edge):
            for op, stride in labels:
                yield partial(
                    apply.wedge_layer, architecture, edge, op, stride=stride, default_units=units
                )


EVERY: dict[str, Callable[[Architecture, Limits], Iterator[Choice]]] = {
    "inc_single": partial(_resize_single, sign=+1),
    "dec_single": partial(_resize_single, sign=-1),
    "inc_en_masse": partial(_resize_en_masse, sign=+1),
    "dec_en_masse": partial(_resize_en_masse, sign=-1),
    "dup_path": _dup_path,
    "remove_layer": _remove_layer,
    "skip": _skip,
    "swap_label": _swap_label,
    "wedge_layer": _wedge_layer,
}
