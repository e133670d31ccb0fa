"""Graphs of any operations: which documents are one network, and which are none."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import kernels, spaces
from archive.agents.nearest import default_kernel
from archive.architecture import codec
from archive.architecture.diagram import svg
from archive.architecture.layer_mass import total_mass
from archive.architecture.open_graphs.operation_graphs import read_graph
from archive.errors import InvalidArchitectureError
from archive.kernels.differences import difference
from tests.support import examples
from tests.support.networks.cells import GATED, cell_documents, renamed
from tests.support.strategies import relabelled


@given(cell_documents(), cell_documents(), st.integers(0, 1000))
@examples(20)
def test_keys_are_equal_for_isomorphic_graphs_alone(first, second, seed):
    networkx = pytest.importorskip("networkx")
    again = renamed(first, seed)
    assert read_graph(first).key == read_graph(again).key

    def graph(document):
        """The oracle: each edge has the places at which the head takes the tail."""
        made = networkx.MultiDiGraph()
        for name, node in document.items():
            made.add_node(name, op=node["op"], out=name if name.startswith("h_new") else "")
            for place, source in enumerate(node["input"]):
                if source not in document:
                    made.add_node(source, op=source, out="input")

                is_commutative = node["op"].startswith("elementwise")
                made.add_edge(source, name, place=0 if is_commutative else place)

        return made

    def places(edges):
        return sorted(edge["place"] for edge in edges.values())

    is_same = networkx.is_isomorphic(
        graph(first),
        graph(second),
        node_match=lambda a, b: a == b,
        edge_match=lambda a, b: places(a) == places(b),
    )
    assert is_same == (read_graph(first).key == read_graph(second).key)


def nodes_of(document):
    return [{"name": name, **node} for name, node in document.items()]


EDGES = [
    *(("x", "z"), ("h_prev_0", "z"), ("z", "gate"), ("gate", "both"), ("h_prev_0", "both")),
    *(("gate", "h_new_0"), ("h_prev_0", "h_new_0"), ("both", "h_new_0")),
]


@pytest.mark.parametrize(
    "document",
    [
        json.dumps(GATED),
        nodes_of(GATED),
        {"nodes": GATED},
        {"nodes": [{"id": name, "operation": GATED[name]["op"]} for name in GATED], "edges": EDGES},
        {
            "nodes": [{"id": name, "label": GATED[name]["op"]} for name in GATED],
            "links": [{"source": tail, "target": head} for tail, head in EDGES],
        },
    ],
)
def test_documents_of_other_shapes(document):
    assert read_graph(document).key == read_graph(GATED).key


def test_what_tells_two_cells_apart():
    cell = read_graph(GATED)
    changes = [
        ("h_new_0", "input", ["h_prev_0", "gate", "both"]),
        ("z", "input", ["h_prev_0", "x"]),
        ("z", "op", "conv"),
        ("z", "bias", False),
        ("both", "input", ["gate", "gate"]),
        ("both", "input", ["gate", "h_prev_1"]),
    ]
    keys = {cell.key}
    for node, key, value in changes:
        document = deepcopy(GATED)
        document[node][key] = value
        keys.add(read_graph(document).key)

    other_state = {**GATED, "h_new_1": GATED["h_new_0"]}
    del other_state["h_new_0"]
    keys |= {read_graph(other_state).key, read_graph({"nodes": GATED, "outputs": ["both"]}).key}
    assert len(keys) == 9

    document = deepcopy(GATED)
    document["z"]["input"].reverse()
    assert read_graph(document, ["Linear"]).key == read_graph(GATED, ["Linear"]).key
    unused = read_graph({**GATED, "unused": {"op": "tanh", "input": "z"}})
    assert unused.key != cell.key and unused.functional_key == cell.functional_key


def test_a_graph_without_states_ends_where_nothing_is_fed():
    network = read_graph([{"op": "conv", "input": ["image"]}])
    assert [layer.op for layer in network.layers] == ["ip", "image", "conv", "op"]
    assert total_mass(network) == pytest.approx(1.2)


def test_a_second_key_of_an_operation_or_of_inputs_is_an_attribute():
    kinds = ({"type": "depthwise"}, {"type": "plain"}, {"in": 3}, {"in": 4}, {"label": "first"})
    keys = set()
    for kind in kinds:
        keys.add(read_graph({"a": {"op": "conv", "input": ["x"], **kind}}).key)

    assert len(keys) == len(kinds)
    named = read_graph({"a": {"op": "conv", "input": ["x"], "name": "any", "id": 7}})
    assert named.key == read_graph({"a": {"op": "conv", "input": ["x"]}}).key


def test_a_node_may_be_several_outputs():
    nodes = {"a": {"op": "tanh", "input": "x"}, "b": {"op": "relu", "input": "x"}}
    keys = set()
    for outputs in (["a", "b", "a"], ["b", "b", "a"], ["b", "a"], ["a", "b"]):
        keys.add(read_graph({"nodes": nodes, "outputs": outputs}).key)

    assert len(keys) == 4


def test_the_largest_graphs_can_be_dumped_and_loaded():
    many = {"a": {"op": "sum", "input": [f"x{number}" for number in range(5000)]}}
    for document in (many, {"a": {"op": "cat", "input": ["x"] * 100}}):
        network = read_graph(document)
        assert codec.from_dict(codec.to_dict(network)) == network


def test_odd_names_of_nodes_and_attributes():
    network = read_graph('{"a\\u0000\\ud800": {"op": "tanh", "3d": 1, "role": "x"}}')
    assert network.layers[1].name == "a??"
    assert dict(network.layers[1].attributes) == {"_3d": 1, "role_": "x"}
    cell = {"nodes": {"op": "linear", "input": "x"}, "h_new_0": {"op": "tanh", "input": "nodes"}}
    renamed_cell = {"n": cell["nodes"], "h_new_0": {"op": "tanh", "input": "n"}}
    assert read_graph(cell).key == read_graph(renamed_cell).key
    assert read_graph({"nodes": GATED, "edges": None}).key == read_graph(GATED).key


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("{", "no JSON"),
        ("7", "got 7"),
        ({}, "1 to 1000 nodes"),
        ([7], "the node '0' must be an object"),
        ({"a": {"input": ["x"]}}, "'a' has no operation"),
        ({"a": {"op": "op"}}, "not ip or op"),
        ({"a": {"op": "\n"}}, "printable"),
        ({"a": {"op": "tanh", "input": {"x": 1}}}, "must be a list of names"),
        ({"a": {"op": "tanh", "input": ["b"]}, "b": {"op": "tanh", "input": ["a"]}}, "cycle"),
        ([{"name": "a", "op": "t"}, {"name": "a", "op": "t"}], "two nodes are called 'a'"),
        ({"nodes": GATED, "outputs": ["y"]}, "'y' is no node"),
        ({"nodes": GATED, "edges": [["x", "y"]]}, "'y', which is no node"),
        ({"nodes": GATED, "edges": 7}, "must be a list"),
        ({"nodes": GATED, "edges": ["xz"]}, "a pair of nodes"),
        ({"nodes": GATED, "edges": [["x", "z", "conv"]]}, "without further values"),
        ({"nodes": GATED, "edges": [{"target": "z"}]}, "a pair of nodes"),
        (
            {"nodes": GATED, "links": [{"source": "x", "target": "z", "op": "conv"}]},
            "without further values",
        ),
        ({"nodes": GATED, "outputs": ["z"] * 1001}, "at most 1000 outputs"),
        ({"a": {"op": "sum", "input": ["x"] * 5_001}}, "at most 5000 inputs"),
        ({"a": {"op": "sum", "input": ["x"] * 101}}, "the input 'x' more than 100 times"),
        ({"a": {"op": "tanh", "input": True}}, "must be a list of names"),
        ({"a": {"op": "tanh", "a b": 1, "a-b": 2}}, "two keys that are the attribute a_b"),
        ({"a": {"op": "tanh", "at": [datetime(2026, 1, 1)]}}, "a value of JSON"),
        ({"a": {"op": "tanh", "at": b"x"}}, "a value of JSON"),
        ('{"a": {"op": "tanh"}, "a": {"op": "relu"}}', "two 'a' in one object"),
        ('{"a": {"op": "tanh", "s": %s}}' % ("[" * 100_000 + "]" * 100_000), "no JSON"),
    ],
)
def test_other_documents_are_refused(document, reason):
    with pytest.raises(InvalidArchitectureError, match=reason):
        read_graph(document)


def test_cells_are_drawn_written_and_compared():
    cell = read_graph(GATED)
    spaces.get("graph").validate(cell)
    document = deepcopy(GATED)
    document["h_new_0"]["input"] = ["h_prev_0", "gate", "both"]
    swapped = read_graph(document)
    assert codec.from_dict(codec.to_dict(cell)).key == cell.key
    assert "blend" in svg(cell) and "no output" not in svg(cell) + svg(swapped)
    assert difference(cell, read_graph({"h_new_0": {"op": "tanh", "input": "x"}})).distance > 0
    kernel = kernels.get(default_kernel("graph"))
    assert kernel.distances([cell], [relabelled(cell, 3), swapped]).stack[0, 0, 0] == 0
    assert kernel.distances([cell], [relabelled(cell, 3), swapped]).stack[0, 0, 1] > 0


# One that takes long to compile is left out.
@pytest.mark.parametrize("name", sorted({*kernels.names()} - {"gromov-wasserstein"}))
def test_a_kernel_compares_cells_or_says_why_not(name):
    kernel = kernels.get(name)
    cells = [read_graph(GATED), read_graph({"y": {"op": "tanh", "input": "x"}})]
    try:
        stack = kernel.distances(cells, [relabelled(cell, 3) for cell in cells]).stack
    except InvalidArchitectureError as error:
        assert name in ("otmann", "tree-wasserstein", "wasserstein")
        assert "weisfeiler-lehman" in str(error)
    else:
        assert stack.min() >= 0 and not stack[:, range(2), range(2)].any()
        assert stack.max() > 0
