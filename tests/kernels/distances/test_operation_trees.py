"""Operation trees: valid and invalid ones, and the trees of the spaces."""

from __future__ import annotations

import json

import pytest

from archive.architecture import operations
from archive.architecture.operations import Operation, vocabulary
from archive.errors import UsageError
from archive.kernels.distances.tree_wasserstein.distance import TreeWasserstein
from archive.kernels.distances.tree_wasserstein.operation_trees import OperationTree, default_tree
from tests.support import kernel_oracle


def distance(tree: OperationTree, s: str, t: str) -> float:
    """Length of the path between two operations: what their paths to the root do not share."""
    return sum(node.weight for node in set(tree.paths[s]) ^ set(tree.paths[t]))


NESTED = {"conv": {"weight": 0.9, "children": {"conv1": 0.1, "conv3": 0.1}}, "pool": 1}
EDGES = [["conv", "conv1", 0.1], ["any", "pool", 1], ["any", "conv", 0.9], ["conv", "conv3", 0.1]]


def test_table_1_in_both_forms_and_through_json():
    for given in (NESTED, EDGES):
        tree = OperationTree(json.loads(json.dumps(given)))
        assert distance(tree, "conv1", "conv3") == pytest.approx(0.2)
        assert distance(tree, "conv1", "pool") == pytest.approx(2)
        assert [node.below for node in tree.paths["conv1"]] == [0.1, 0.0]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (
            [["r", "a", 1], ["b", "c", 1], ["c", "b", 1]],
            "tree must have no cycle, but 'c' is above itself",
        ),
        ([["a", "b", 1], ["b", "a", 1]], "tree must have no cycle, but 'b' is above itself"),
        ([["a", "a", 1]], "tree must have no cycle, but 'a' is above itself"),
        (
            [["r", "a", 1], ["r", "b", 1], ["b", "a", 2]],
            "tree node 'a' must have one parent, got 'r' and 'b'",
        ),
        ([["r", "a", 1], ["r", "a", 1]], "tree node 'a' must have one parent, got 'r' and 'r'"),
        (
            [["r", "a", 1], ["q", "b", 1]],
            "tree must be connected, but neither 'q' nor 'r' has a parent",
        ),
        ([["r", "a", -0.5]], "weight of the tree node 'a' must be a finite number >= 0, got -0.5"),
        ({"a": float("nan")}, "weight of the tree node 'a' must be a finite number >= 0, got nan"),
        ({"a": float("inf")}, "weight of the tree node 'a' must be a finite number >= 0, got inf"),
        ({"a": "1"}, "weight of the tree node 'a' must be a finite number >= 0, got '1'"),
        ({"a": True}, "weight of the tree node 'a' must be a finite number >= 0, got True"),
        ({"a": None}, "weight of the tree node 'a' must be a finite number >= 0, got None"),
        ({"g": {"weight": 1, "children": {"a": 1}}, "a": 1}, "tree node 'a' must have one parent"),
        ({"g": {"weight": 1, "children": {"g": 1}}}, "tree node 'g' must have one parent"),
        (
            {"g": {"children": {"a": 1}}},
            "tree node 'g' must be a length or have a weight and children, got no weight",
        ),
        (
            {"g": {"weight": 1, "kids": {}}},
            "tree node 'g' must be a length or .*, got unknown 'kids'",
        ),
        (
            {"g": {"weight": 1, "children": ["a"]}},
            r"children of the tree node 'g' must be a "
            r"mapping, got \['a'\]",
        ),
        ({"": 1}, "a tree node must have a name, got ''"),
        ([["r", 3, 1]], "a tree node must have a name, got 3"),
        ([["r", "a"]], r"an edge of the tree must be \[parent, child, length\], got \['r', 'a'\]"),
        ({}, "tree must have at least one operation, got none"),
        ([], "tree must have at least one operation, got none"),
        ("conv", "tree must be a nested mapping or a list of edges, got 'conv'"),
        (7, "tree must be a nested mapping or a list of edges, got 7"),
    ],
)
def test_what_is_no_tree(tree, message):
    with pytest.raises(UsageError, match=message):
        TreeWasserstein(tree=tree)


def test_a_mapping_inside_itself():
    tree: dict = {"weight": 1}
    tree["children"] = {"a": tree}
    with pytest.raises(UsageError, match="tree must have no cycle, but 'a' contains itself"):
        OperationTree({"a": tree})


def test_missing_operations_are_named():
    kernel = TreeWasserstein(tree={"relu": 1, "tanh": 1})
    with pytest.raises(
        UsageError,
        match=r"every operation of mlp, missing 'crelu' \(it has "
        r"relu, tanh\)",
    ):
        kernel.prepare(kernel_oracle.chain("mlp", ("relu", 8)))


@pytest.mark.parametrize("space", ["cnn", "darts", "mlp", "nasbench101", "nasbench201", "nasnet"])
def test_default_trees(space):
    tree = default_tree(space)
    words = vocabulary(space)
    counted = tree.operations(words)
    assert counted == set(words.operations) - set(
        words.of_group("input", "output", "decision", "exit")
    )
    for name in counted:
        assert sum(node.weight for node in tree.paths[name]) == pytest.approx(1)


def test_the_default_trees_within_groups_are_nasbots_penalties():
    cnn = default_tree("cnn")
    mlp = default_tree("mlp")
    assert distance(cnn, "conv3", "res3") == pytest.approx(0.1)
    assert distance(cnn, "conv3", "res5") == distance(cnn, "conv3", "conv7") == pytest.approx(0.2)
    assert distance(cnn, "max-pool", "avg-pool") == pytest.approx(0.25)
    assert distance(mlp, "relu", "elu") / distance(mlp, "relu", "tanh") == pytest.approx(0.1 / 0.25)


def test_operations_of_genotypes_are_similar_by_kind_within_a_cell():
    tree = default_tree("nasnet")
    among = {
        ("normal.sep_conv_3x3", "normal.sep_conv_7x7"): 0.2,
        ("normal.sep_conv_3x3", "normal.dil_conv_3x3"): 0.6,
        ("normal.dil_conv_5x5", "normal.conv_7x1_1x7"): 0.6,
        ("reduce.max_pool_3x3", "reduce.avg_pool_3x3"): 0.25,
        ("normal.max_pool_3x3", "normal.sep_conv_3x3"): 2.0,
        ("normal.skip_connect", "normal.none"): 2.0,
        ("normal.sep_conv_3x3", "reduce.sep_conv_3x3"): 2.0,
        ("normal.c_k-2", "normal.c_k-1"): 0.2,
    }
    assert {pair: distance(tree, *pair) for pair in among} == pytest.approx(among)


def test_the_tree_of_a_space_that_has_none():
    made = [
        Operation("fc", "fc"),
        Operation("a3", "conv"),
        Operation("a5", "conv"),
        Operation("x", "cell"),
    ]
    try:
        operations.define("toy", [*made, Operation("y", "cell"), Operation("end", "decision")])
        tree = default_tree("toy")
    finally:
        del operations._vocabularies["toy"]

    assert distance(tree, "a3", "a5") == pytest.approx(0.2)
    assert {name: distance(tree, "a3", name) for name in ("fc", "x", "y")} == pytest.approx(
        dict(fc=2, x=2, y=2)
    )
    assert "end" not in tree.paths


def test_a_vocabulary_brings_its_tree_along():
    made = [Operation(name, "cell") for name in ("a", "b", "c")]
    try:
        operations.define("toy", made)
        assert distance(default_tree("toy"), "a", "b") == pytest.approx(2)
        # Defined again, it has another tree.
        operations.define(
            "toy", made, tree={"ab": {"weight": 0.5, "children": {"a": 0.5, "b": 0.5}}, "c": 1.0}
        )
        tree = default_tree("toy")
    finally:
        del operations._vocabularies["toy"]

    assert (distance(tree, "a", "b"), distance(tree, "a", "c")) == pytest.approx((1, 2))
