"""Neighbourhood of a network under Table 6: every result of one modifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.spaces.limits import Limits
from archive.spaces.modifiers import apply
from archive.spaces.modifiers.choices import (
    branching,
    can_skip,
    longest_copy,
    reconnections,
    removable,
    resizable,
    runs,
    swaps,
    wedgeable,
    wedges,
)

# A function that applies one choice: it returns the network, or raises InvalidArchitectureError.
Choice = Callable[[], Architecture]


def every(architecture: Architecture, limits: Limits) -> Iterator[tuple[str, Architecture]]:
    """Yield (modifier, result) for all choices that give a network; limits may still be
    exceeded.
    """
    for name, choices in EVERY.items():
        for choice in choices(architecture, limits):
            try:
                yield name, choice()
            except InvalidArchitectureError:
                continue


def _inc_single(architecture: Architecture, limits: Limits) -> Iterator[Choice]:
    for u in resizable(architecture, limits, +1):
        yield partial(apply.inc_single, architecture, u)


def _dec_single(architecture: Architecture, limits: Limits) -> Iterator[Choice]:
    for u in resizable(architecture, limits, -1):
        yield partial(apply.dec_single, architecture, u)


def _inc_en_masse(architecture: Architecture, limits: Limits) -> Iterator[Choice]:
    possible = set(resizable(architecture, limits, +1))
    for run in runs(architecture):
        if possible.issuperset(run):
            yield partial(apply.inc_en_masse, architecture, run)


def _dec_en_masse(architecture: Architecture, limits: Limits) -> Iterator[Choice]:
    possible = set(resizable(architecture, limits, -1))
    for run in runs(architecture):
        if possible.issuperset(run):
            yield partial(apply.dec_en_masse, architecture, run)


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
    "inc_single": _inc_single,
    "dec_single": _dec_single,
    "inc_en_masse": _inc_en_masse,
    "dec_en_masse": _dec_en_masse,
    "dup_path": _dup_path,
    "remove_layer": _remove_layer,
    "skip": _skip,
    "swap_label": _swap_label,
    "wedge_layer": _wedge_layer,
}
