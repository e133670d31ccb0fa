"""Codecs: exact round trips, and clear errors for any other input."""

from __future__ import annotations

import csv
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture import codec
from archive.architecture.graph import Architecture, Layer
from archive.errors import ArchiveError, CodecError, InvalidArchitectureError
from tests.support import data_lines, examples
from tests.support.strategies import cells, members, relabelled

GOOD: dict[str, Any] = {
    "schema": 1,
    "space": "mlp",
    "layers": [
        {"op": "ip"},
        {"op": "relu", "units": 8, "stride": 1},
        {"op": "linear"},
        {"op": "op"},
    ],
    "edges": [[0, 1], [1, 2], [2, 3]],
}
CELL = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_1x1~2|"


@pytest.mark.parametrize("space", ["cnn", "mlp"])
@given(data=st.data())
def test_json_gives_the_same_network_back(space: str, data: st.DataObject) -> None:
    network = data.draw(members(space))
    assert codec.from_json(codec.to_json(network)) == network
    assert codec.from_json(codec.to_json(network, indent=2).encode()) == network
    assert codec.from_dict(codec.to_dict(network)) == network


@given(cells(max_inner=6))
@examples(5)
def test_json_gives_cells_with_dead_ends_back(cell: Architecture) -> None:
    assert codec.from_json(codec.to_json(cell)) == cell


def test_json_keeps_to_the_documented_form() -> None:
    network = codec.from_dict(GOOD)
    expected = {
        **GOOD,
        "layers": [{"op": "ip"}, {"op": "relu", "units": 8}, {"op": "linear"}, {"op": "op"}],
    }
    assert codec.to_dict(network) == expected


def but(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


def layer(**fields: Any) -> dict[str, Any]:
    return but(layers=[{"op": "ip"}, fields, {"op": "linear"}, {"op": "op"}])


BAD_OBJECTS: dict[str, tuple[Any, str]] = {
    "list": ([], "an architecture is a JSON object, got \\[\\]"),
    "none": (None, "is a JSON object, got None"),
    "missing": ({"schema": 1}, "needs the field 'space'"),
    "unknown field": (but(colour="red"), "has no field 'colour'"),
    "newer": (but(schema=2), "schema 2 was written by a newer release"),
    "schema text": (but(schema="1"), "schema must be a whole number"),
    "schema true": (but(schema=True), "schema must be a whole number"),
    "schema huge": (but(schema=10**9999), "a huge int"),
    "space number": (but(space=3), "space must be text"),
    "space unknown": (but(space="mpl"), "unknown space 'mpl': did you mean mlp"),
    "space long": (but(space="x" * 10**6), "at most 100 characters"),
    "layers object": (but(layers={}), "layers must be a list"),
    "layers many": (but(layers=[{"op": "ip"}] * 5000), "layers must be at most 1000, got 5000"),
    "layer text": (but(layers=["ip"]), "layer 0 is a JSON object"),
    "layer without op": (layer(units=3), "layer 1 needs the field 'op'"),
    "op null": (layer(op=None), "the op of layer 1 must be text"),
    "op unknown": (
        layer(op="rellu", units=8),
        "unknown operation of mlp 'rellu': did you mean relu",
    ),
    "op surrogate": (layer(op="\ud800"), "unknown operation"),
    "units float": (layer(op="relu", units=8.0), "the units of layer 1 must be a whole number"),
    "units true": (layer(op="relu", units=True), "the units of layer 1 must be a whole number"),
    "units huge": (layer(op="relu", units=10**400), "the units of layer 1"),
    "units infinite": (layer(op="relu", units=float("inf")), "the units of layer 1"),
    "stride null": (layer(op="relu", units=8, stride=None), "the stride of layer 1"),
    "edges text": (but(edges="0-1"), "edges must be a list"),
    "edge triple": (but(edges=[[0, 1, 2]]), "an edge is a pair"),
    "edge text": (but(edges=[["0", "1"]]), "the end of an edge"),
    "edge negative": (but(edges=[[-1, 1]]), "the end of an edge"),
    "edge huge": (but(edges=[[0, 10**5000]]), "the end of an edge"),
}


@pytest.mark.parametrize("case", BAD_OBJECTS)
def test_a_bad_object_says_what_is_wrong(case: str) -> None:
    data, reason = BAD_OBJECTS[case]
    with pytest.raises(CodecError, match=reason) as caught:
        codec.from_dict(data)

    assert len(str(caught.value)) < 400


def test_a_graph_that_is_no_network_says_so() -> None:
    with pytest.raises(InvalidArchitectureError, match="dead end"):
        codec.from_dict(but(edges=[[0, 1], [2, 3]]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nul",
        "[" * 100_000,
        "1" * 5000,
        '"\\ud800"',
        b"\xff\xfe\xfa",
        b"\x80",
        "NaN",
        "[1e999]",
        " " * 5_000_000,
        7,
    ],
)
def test_bad_text_is_a_codec_error(text: Any) -> None:
    with pytest.raises(CodecError):
        codec.from_json(text)


@given(st.text() | st.binary())
@examples(5)
def test_random_text_never_surprises(text: str | bytes) -> None:
    with pytest.raises(CodecError):
        codec.from_json(text)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["ip", "op", "relu", "cnn", "mlp", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["op", "units", "stride", "x"]), inner)
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(GOOD)), json_values)
@examples(5)
def test_a_random_field_never_surprises(field: str, value: Any) -> None:
    try:
        codec.from_json(json.dumps(but(**{field: value})))
    except ArchiveError as error:
        assert isinstance(error, (CodecError, InvalidArchitectureError))


@given(cells(max_inner=6))
@examples(5)
def test_nasbench101_round_trip(cell: Architecture) -> None:
    matrix, operations = codec.to_nasbench101(cell)
    assert codec.from_nasbench101(matrix, operations) == cell
    assert codec.from_nasbench101(np.array(matrix), tuple(operations)) == cell
    assert codec.from_nasbench101(np.array(matrix, dtype=bool), operations) == cell


@pytest.mark.parametrize(
    ("matrix", "operations", "reason"),
    [
        ([[0, 1], [0, 0]], ["input"], "two labels or more"),
        ([[0, 1], [0, 0]], "io", "two labels or more"),
        ([[0, 1], [0, 0]], ["output", "input"], "begin with input"),
        ([[0, 1], [0, 0]], [1, 2], "two labels or more"),
        ([[0] * 3] * 3, ["input", "output", "output"], "one input and one output"),
        ([[0] * 3] * 3, ["input", "conv9", "output"], "unknown operation"),
        ([[0, 1]], ["input", "output"], "2 rows of 2 entries"),
        ([[0, 1], [0]], ["input", "output"], "2 rows of 2 entries"),
        (5, ["input", "output"], "2 rows of 2 entries"),
        (None, ["input", "output"], "2 rows of 2 entries"),
        (["01", "00"], ["input", "output"], "must hold 0 and 1"),
        ([[0, 2], [0, 0]], ["input", "output"], "must hold 0 and 1"),
        ([[0, float("nan")], [0, 0]], ["input", "output"], "must hold 0 and 1"),
        (np.zeros((2, 2, 2)), ["input", "output"], "must hold 0 and 1"),
        ([[0, 1], [1, 0]], ["input", "output"], "upper triangular"),
        ([[1, 1], [0, 0]], ["input", "output"], "upper triangular"),
    ],
)
def test_a_bad_matrix_says_what_is_wrong(matrix: Any, operations: Any, reason: str) -> None:
    with pytest.raises(CodecError, match=reason):
        codec.from_nasbench101(matrix, operations)


def test_nasbench201_operations_become_layers() -> None:
    network = codec.from_nasbench201(CELL)
    assert [layer.op for layer in network.layers[1:-1]] == [
        "nor_conv_3x3",
        "skip_connect",
        "avg_pool_3x3",
        "nor_conv_1x1",
    ]
    assert network.edges == ((0, 1), (0, 3), (1, 2), (2, 4), (3, 5), (4, 5))


def test_nasbench201_strings_of_one_network_become_one_string() -> None:
    # Nodes 1 and 2 can change places as long as no operation lies between them.
    one = "|nor_conv_3x3~0|+|skip_connect~0|none~1|+|none~0|nor_conv_1x1~1|avg_pool_3x3~2|"
    other = "|skip_connect~0|+|nor_conv_3x3~0|none~1|+|none~0|avg_pool_3x3~1|nor_conv_1x1~2|"
    texts = {codec.to_nasbench201(codec.from_nasbench201(text)) for text in (one, other)}
    assert len(texts) == 1


def test_nasbench201_round_trip_over_the_table() -> None:
    rows = [row["arch_str"] for row in csv.DictReader(data_lines("nb201.csv.gz"))][::25]
    for text in rows:
        network = codec.from_nasbench201(text)
        again = codec.to_nasbench201(relabelled(network, len(text)))
        assert codec.from_nasbench201(again).key == network.key
        assert again == codec.to_nasbench201(network)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "|",
        CELL + "|",
        CELL.replace("~1", "~0"),
        CELL.replace("none", "non"),
        "none",
        5,
        None,
        CELL.encode(),
        "|" * 10**5,
    ],
)
def test_a_bad_nasbench201_string_says_what_is_wrong(text: Any) -> None:
    with pytest.raises(CodecError) as caught:
        codec.from_nasbench201(text)

    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("count", "edges"),
    [
        (1, [(0, 2)]),
        (3, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]),
        (2, [(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]),
        (7, [(0, 1), (1, 8)]),
    ],
)
def test_not_every_graph_is_a_nasbench201_cell(count: int, edges: list[tuple[int, int]]) -> None:
    layers = [Layer("ip"), *[Layer("skip_connect")] * count, Layer("op")]
    network = Architecture("nasbench201", layers, edges)
    with pytest.raises(CodecError, match="no NAS-Bench-201 string"):
        codec.to_nasbench201(network)


def test_writers_refuse_other_spaces() -> None:
    network = codec.from_dict(GOOD)
    with pytest.raises(CodecError, match="of space nasbench101, got mlp"):
        codec.to_nasbench101(network)

    with pytest.raises(CodecError, match="of space nasbench201, got mlp"):
        codec.to_nasbench201(network)
