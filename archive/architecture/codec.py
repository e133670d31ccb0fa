"""Architectures as JSON, as NAS-Bench-101 matrices and as NAS-Bench-201 strings.

Text and matrices may come from anywhere. Whatever they hold, the readers answer with an `Architecture`, with
`CodecError` (this does not describe a graph) or with `InvalidArchitectureError` (the graph is no network).

    JSON         {"schema": 1, "space": "cnn", "layers": [{"op": "ip"}, {"op": "conv3", "units": 64, "stride": 1}, …],
                 "edges": [[0, 1], …]}; `units` may be left out where there are none, `stride` where it is 1
    NB101        an upper triangular 0/1 matrix and one operation a vertex, `input` first and `output` last
    NB201        `|a~0|+|b~0|c~1|+|d~0|e~1|f~2|`: six operations on the edges of a graph of four nodes
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from archive.architecture.graph import Architecture, Edge, Layer
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import CodecError, UnknownNameError

SCHEMA = 1

# Far above every search space, and low enough that hostile text cannot keep a process busy.
_MOST_LAYERS = 1_000
_MOST_EDGES = 20_000
_MOST_NUMBER = 2**31 - 1
_MOST_NAME = 100
_MOST_TEXT = 4_000_000

Slot = tuple[int, int]
_NB201_SLOTS: tuple[Slot, ...] = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
_NB201_TEXT = re.compile(r"\|(\w+)~0\|\+\|(\w+)~0\|(\w+)~1\|\+\|(\w+)~0\|(\w+)~1\|(\w+)~2\|", re.ASCII)
_NB201_NONE = "none"


def to_dict(architecture: Architecture) -> dict[str, Any]:
    """Return the JSON object of an architecture, layers and edges as they stand."""
    return {
        "schema": SCHEMA,
        "space": architecture.space,
        "layers": [_layer_to_dict(layer) for layer in architecture.layers],
        "edges": [list(edge) for edge in architecture.edges],
    }


def to_json(architecture: Architecture, *, indent: int | None = None) -> str:
    """Return the JSON text of an architecture."""
    return json.dumps(to_dict(architecture), indent=indent)


def from_dict(data: Mapping[str, Any]) -> Architecture:
    """Return the architecture of a JSON object.

    Raises:
        CodecError: The object does not describe a graph, or its schema is a newer one.
        InvalidArchitectureError: The graph is no network.
    """
    _check_fields(data, "an architecture", required=("schema", "space", "layers", "edges"))
    _check_schema(data["schema"])
    space = _name(data["space"], "space")
    layers = [_layer_from_dict(item, u) for u, item in enumerate(_list(data["layers"], "layers", _MOST_LAYERS))]
    edges = [_edge_from_list(item) for item in _list(data["edges"], "edges", _MOST_EDGES)]
    return _architecture(space, layers, edges)


def from_json(text: str | bytes) -> Architecture:
    """Return the architecture of a JSON text.

    Raises:
        CodecError: The text is no JSON, does not describe a graph, or its schema is a newer one.
        InvalidArchitectureError: The graph is no network.
    """
    if not isinstance(text, (str, bytes)):
        raise CodecError(f"the text of an architecture must be text, got {_shown(text)}")
    if len(text) > _MOST_TEXT:
        raise CodecError(f"the text of an architecture has at most {_MOST_TEXT} characters, got {len(text)}")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"no JSON text: {error}") from None
    return from_dict(data)


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
    edges = [(tail, head) for tail, row in enumerate(rows) for head, entry in enumerate(row) if entry]
    return _architecture("nasbench101", [Layer(label) for label in labels], edges)


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

    The table puts operations on edges, an architecture has them on layers: each of the six edges becomes a layer that
    is fed by the layers ending where it begins. An edge whose operation is `none` is absent.

    Raises:
        CodecError: The text is no such string.
    """
    found = _NB201_TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise CodecError(f"a NAS-Bench-201 string looks like |a~0|+|b~0|c~1|+|d~0|e~1|f~2|, got {_shown(text)}")
    slots = {slot: op for slot, op in zip(_NB201_SLOTS, found.groups(), strict=True) if op != _NB201_NONE}
    return _architecture("nasbench201", *_nb201_graph(slots))


def to_nasbench201(architecture: Architecture) -> str:
    """Return the NAS-Bench-201 string of an architecture.

    Several strings can describe one network (15,625 strings, 14,125 networks): the alphabetically first one is
    returned, so that all relabellings of a network have one string.

    Raises:
        CodecError: The architecture is of another space, or no string describes it.
    """
    _check_space(architecture, "nasbench201")
    texts = [_nb201_text(architecture, slots) for slots in _nb201_placements(architecture)]
    if not texts:
        raise CodecError("no NAS-Bench-201 string describes this architecture: its layers are no edges of one cell")
    return min(texts)


def _layer_to_dict(layer: Layer) -> dict[str, Any]:
    data: dict[str, Any] = {"op": layer.op}
    if layer.units is not None:
        data["units"] = layer.units
    if layer.stride != 1:
        data["stride"] = layer.stride
    return data


def _check_fields(data: Any, what: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    if not isinstance(data, Mapping):
        raise CodecError(f"{what} is a JSON object, got {_shown(data)}")
    for field in required:
        if field not in data:
            raise CodecError(f"{what} needs the field {field!r}, got only {_shown(sorted(map(str, data)))}")
    for field in data:
        if field not in required + optional:
            raise CodecError(f"{what} has no field {_shown(field)}; known: {', '.join(required + optional)}")


def _check_schema(schema: Any) -> None:
    if not _is_whole(schema) or schema < 1:
        raise CodecError(f"schema must be a whole number >= 1, got {_shown(schema)}")
    if schema > SCHEMA:
        raise CodecError(f"schema {_shown(schema)} was written by a newer release, this one reads up to {SCHEMA}")


def _list(value: Any, name: str, most: int) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise CodecError(f"{name} must be a list, got {_shown(value)}")
    if len(value) > most:
        raise CodecError(f"{name} must be at most {most}, got {len(value)}")
    return value


def _layer_from_dict(data: Any, u: int) -> Layer:
    _check_fields(data, f"layer {u}", required=("op",), optional=("units", "stride"))
    units, stride = data.get("units"), data.get("stride", 1)
    if units is not None:
        _check_whole(units, f"the units of layer {u}")
    _check_whole(stride, f"the stride of layer {u}")
    return Layer(_name(data["op"], f"the op of layer {u}"), units, stride)


def _edge_from_list(item: Any) -> Edge:
    if not isinstance(item, (list, tuple)) or len(item) != 2:
        raise CodecError(f"an edge is a pair of layer numbers, got {_shown(item)}")
    for end in item:
        _check_whole(end, "the end of an edge")
    return item[0], item[1]


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) > _MOST_NAME:
        raise CodecError(f"{what} must be text of at most {_MOST_NAME} characters, got {_shown(value)}")
    return value


def _check_whole(value: Any, what: str) -> None:
    if not _is_whole(value) or not 0 <= value <= _MOST_NUMBER:
        raise CodecError(f"{what} must be a whole number in [0, {_MOST_NUMBER}], got {_shown(value)}")


def _is_whole(value: Any) -> bool:
    # True is an int in Python, and no number of units.
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Return a short text of any value, however large."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        # An int of more than 4,300 digits, or a list within lists without end.
        return f"a huge {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def _architecture(space: str, layers: Sequence[Layer], edges: Sequence[Edge]) -> Architecture:
    try:
        return Architecture(space, layers, edges)
    except UnknownNameError as error:
        raise CodecError(str(error)) from error


def _check_space(architecture: Architecture, space: str) -> None:
    if architecture.space != space:
        raise CodecError(f"the architecture must be of space {space}, got {architecture.space}")


def _nb101_labels(operations: Sequence[str]) -> list[str]:
    labels = list(operations) if not isinstance(operations, str) else []
    if not 2 <= len(labels) <= _MOST_LAYERS or not all(isinstance(label, str) for label in labels):
        raise CodecError(f"operations must be two labels or more, got {_shown(operations)}")
    if labels[0] != "input" or labels[-1] != "output":
        raise CodecError(f"operations must begin with input and end with output, got {_shown(labels)}")
    if {"input", "output", INPUT, OUTPUT} & set(labels[1:-1]):
        raise CodecError(f"operations must hold one input and one output, got {_shown(labels)}")
    return [INPUT, *labels[1:-1], OUTPUT]


def _nb101_rows(matrix: Any, n: int) -> list[list[Any]]:
    try:
        rows = [list(row) for row in (matrix.tolist() if hasattr(matrix, "tolist") else matrix)]
    except TypeError:
        raise CodecError(f"the matrix must have {n} rows of {n} entries, got {_shown(matrix)}") from None
    if len(rows) != n or any(len(row) != n for row in rows):
        raise CodecError(f"the matrix must have {n} rows of {n} entries, got lengths {_shown([*map(len, rows)])}")
    for tail, row in enumerate(rows):
        for head, entry in enumerate(row):
            if not isinstance(entry, (int, float)) or entry not in (0, 1):
                raise CodecError(f"the matrix must hold 0 and 1, got {_shown(entry)} at ({tail}, {head})")
            if entry and head <= tail:
                raise CodecError(f"the matrix must be upper triangular, got 1 at ({tail}, {head})")
    return rows


def _nb201_graph(slots: Mapping[Slot, str]) -> tuple[list[Layer], list[Edge]]:
    """Turn operations on the edges of a cell into layers with edges between them."""
    position = {slot: place for place, slot in enumerate(slots, start=1)}
    last = len(slots) + 1
    layers = [Layer(INPUT), *(Layer(op) for op in slots.values()), Layer(OUTPUT)]
    edges = [(0, u) for (begin, _), u in position.items() if begin == 0]
    edges += [(u, last) for (_, end), u in position.items() if end == 3]
    edges += [(u, v) for (_, end), u in position.items() for (begin, _), v in position.items() if end == begin]
    return layers, edges


def _nb201_placements(architecture: Architecture) -> Iterator[tuple[Slot, ...]]:
    """Yield the ways to put the inner layers on edges of a cell that give exactly the architecture's edges."""
    inner = len(architecture.layers) - 2
    if inner > len(_NB201_SLOTS):
        return
    last, edges = inner + 1, set(architecture.edges)
    allowed = [
        [slot for slot in _NB201_SLOTS if ((0, u) in edges, (u, last) in edges) == (slot[0] == 0, slot[1] == 3)]
        for u in range(1, last)
    ]
    if (0, last) in edges:
        return
    for slots in product(*allowed):
        if len(set(slots)) == inner:
            pairs = {(u, v) for u, a in enumerate(slots, 1) for v, b in enumerate(slots, 1) if a[1] == b[0]}
            if pairs == {(u, v) for u, v in edges if u != 0 and v != last}:
                yield slots


def _nb201_text(architecture: Architecture, slots: Sequence[Slot]) -> str:
    ops = {slot: architecture.layers[u].op for u, slot in enumerate(slots, start=1)}
    nodes = (
        "|" + "|".join(f"{ops.get((begin, end), _NB201_NONE)}~{begin}" for begin in range(end)) + "|"
        for end in (1, 2, 3)
    )
    return "+".join(nodes)
