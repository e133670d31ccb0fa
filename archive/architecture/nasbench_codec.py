"""Cells as NAS-Bench-101 matrices and as NAS-Bench-201 strings.

NB101    upper triangular 0/1 matrix and one operation a vertex, `input` first, `output` last
NB201    `|a~0|+|b~0|c~1|+|d~0|e~1|f~2|`: six operations on the edges of a graph of four nodes
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from archive.architecture.codec_checks import MOST_LAYERS, built
from archive.architecture.graph import Architecture, Edge, Layer
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import CodecError
from archive.values import brief

Slot = tuple[int, int]
NB201_SLOTS: tuple[Slot, ...] = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
"""The edges of a NAS-Bench-201 cell, in the order of its strings."""

_NB201_TEXT = re.compile(
    r"\|(\w+)~0\|\+\|(\w+)~0\|(\w+)~1\|\+\|(\w+)~0\|(\w+)~1\|(\w+)~2\|", re.ASCII
)
_NB201_NONE = "none"


def from_nasbench101(matrix: Any, operations: Sequence[str]) -> Architecture:
    """Return the architecture of a NAS-Bench-101 cell.

    Args:
        matrix: (n, n) upper triangular, 0 or 1; a nested sequence or an array.
        operations: (n,) labels, `input` first and `output` last.

    Raises:
        CodecError: This is no such matrix, or the labels do not fit it.
        InvalidArchitectureError: The graph is no network.
    """
    labels = _nb101_labels(operations)
    rows = _nb101_rows(matrix, len(labels))
    edges: list[Edge] = []
    for tail, row in enumerate(rows):
        for head, entry in enumerate(row):
            if entry:
                edges.append((tail, head))

    return built("nasbench101", list(map(Layer, labels)), edges)


def to_nasbench101(architecture: Architecture) -> tuple[list[list[int]], list[str]]:
    """Return the (n, n) matrix and the n labels of a NAS-Bench-101 cell.

    Raises:
        CodecError: The architecture is of another space.
    """
    _check_space(architecture, "nasbench101")
    n = len(architecture.layers)
    matrix = [[0] * n for _ in range(n)]
    for tail, head in architecture.edges:
        matrix[tail][head] = 1

    ends = {INPUT: "input", OUTPUT: "output"}
    return matrix, [ends.get(layer.op, layer.op) for layer in architecture.layers]


def from_nasbench201(text: str) -> Architecture:
    """Return the architecture of a NAS-Bench-201 string.

    The table puts operations on edges, an architecture has them on layers. So each of the six edges
    becomes a layer, fed by the layers of the edges that end where this one begins. An edge with the
    operation `none` is absent.

    Raises:
        CodecError: The text is no such string.
    """
    match = _NB201_TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise CodecError(
            f"a NAS-Bench-201 string looks like |a~0|+|b~0|c~1|+|d~0|e~1|f~2|, got {brief(text)}"
        )

    slots = {}
    for slot, op in zip(NB201_SLOTS, match.groups(), strict=True):
        if op != _NB201_NONE:
            slots[slot] = op

    return built("nasbench201", *_nb201_graph(slots))


def to_nasbench201(architecture: Architecture) -> str:
    """Return the NAS-Bench-201 string of an architecture.

    Several strings can describe one network (15,625 strings, 14,125 networks): the alphabetically
    first one is returned, so that all relabellings of a network have one string.

    Raises:
        CodecError: The architecture is of another space, or no string describes it.
    """
    _check_space(architecture, "nasbench201")
    texts = [_nb201_text(architecture, slots) for slots in _nb201_placements(architecture)]
    if not texts:
        raise CodecError(
            "no NAS-Bench-201 string describes this architecture: "
            "its layers are no edges of one cell"
        )

    return min(texts)


def nasbench201_text(operations: Sequence[str]) -> str:
    """Return the NAS-Bench-201 string of six operations by `NB201_SLOTS`, `none` if absent."""
    a, b, c, d, e, f = operations
    return f"|{a}~0|+|{b}~0|{c}~1|+|{d}~0|{e}~1|{f}~2|"


def _check_space(architecture: Architecture, space: str) -> None:
    if architecture.space != space:
        raise CodecError(f"the architecture must be of space {space}, got {architecture.space}")


def _nb101_labels(operations: Sequence[str]) -> list[str]:
    labels = (
        list(operations)
        if isinstance(operations, Iterable) and not isinstance(operations, str)
        else []
    )
    if not 2 <= len(labels) <= MOST_LAYERS or not all(isinstance(label, str) for label in labels):
        raise CodecError(f"operations must be two labels or more, got {brief(operations)}")

    if labels[0] != "input" or labels[-1] != "output":
        raise CodecError(
            f"operations must begin with input and end with output, got {brief(labels)}"
        )

    if {"input", "output", INPUT, OUTPUT} & set(labels[1:-1]):
        raise CodecError(f"operations must hold one input and one output, got {brief(labels)}")

    return [INPUT, *labels[1:-1], OUTPUT]


def _nb101_rows(matrix: Any, n: int) -> list[list[Any]]:
    try:
        rows = list(map(list, matrix.tolist() if hasattr(matrix, "tolist") else matrix))
    except TypeError:
        raise CodecError(
            f"the matrix must have {n} rows of {n} entries, got {brief(matrix)}"
        ) from None

    if len(rows) != n or set(map(len, rows)) != {n}:
        raise CodecError(
            f"the matrix must have {n} rows of {n} entries, got lengths {brief([*map(len, rows)])}"
        )

    for tail, row in enumerate(rows):
        for head, entry in enumerate(row):
            if not isinstance(entry, (int, float)) or entry not in (0, 1):
                raise CodecError(
                    f"the matrix must hold 0 and 1, got {brief(entry)} at ({tail}, {head})"
                )

            if entry and head <= tail:
                raise CodecError(f"the matrix must be upper triangular, got 1 at ({tail}, {head})")

    return rows


def _nb201_graph(slots: Mapping[Slot, str]) -> tuple[list[Layer], list[Edge]]:
    """Turn operations on the edges of a cell into layers with edges between them."""
    last = len(slots) + 1
    layers = [Layer(INPUT), *map(Layer, slots.values()), Layer(OUTPUT)]
    edges = _nb201_edges(slots)
    for u, (begin, end) in enumerate(slots, start=1):
        if begin == 0:
            edges.append((0, u))

        if end == 3:
            edges.append((u, last))

    return layers, edges


def _nb201_edges(slots: Collection[Slot]) -> list[Edge]:
    """Return the edges between the layers of edges of a cell, the first of which has position 1."""
    edges: list[Edge] = []
    for (u, (_, end)), (v, (begin, _)) in product(enumerate(slots, 1), repeat=2):
        if begin == end:
            edges.append((u, v))

    return edges


def _nb201_placements(architecture: Architecture) -> Iterator[tuple[Slot, ...]]:
    """Yield the ways to put inner layers on edges of a cell that give the architecture's edges."""
    inner = len(architecture.layers) - 2
    if inner > len(NB201_SLOTS):
        return

    last = inner + 1
    if (0, last) in architecture.edges:
        return

    allowed = []
    for u in range(1, last):
        fed = 0 in architecture.parents[u]
        ends = last in architecture.children[u]
        allowed.append(
            [slot for slot in NB201_SLOTS if (slot[0] == 0, slot[1] == 3) == (fed, ends)]
        )

    inner_edges = {(u, v) for u, v in architecture.edges if u != 0 and v != last}
    for slots in product(*allowed):
        if len(set(slots)) == inner and set(_nb201_edges(slots)) == inner_edges:
            yield slots


def _nb201_text(architecture: Architecture, slots: Sequence[Slot]) -> str:
    operations = dict.fromkeys(NB201_SLOTS, _NB201_NONE)
    for layer, slot in zip(architecture.layers[1:-1], slots, strict=True):
        operations[slot] = layer.op

    return nasbench201_text(list(operations.values()))
