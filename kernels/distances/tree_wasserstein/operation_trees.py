"""Operation trees: similarity of operations as path lengths of a rooted tree, a metric.

Section 2.2 and appendix F of the tree-Wasserstein paper (see
`archive.kernels.distances.tree_wasserstein.distance`): similar operations share a group, and edges
are shorter with distance from the root.

| symbol | meaning                                                                        |
|--------|--------------------------------------------------------------------------------|
| r      | the root; it is no operation and has no name                                   |
| w_v    | length of the edge from v to its parent                                        |
| d_T    | d_T(s, t): length of the path between two operations                           |

A user writes a tree as JSON, nested or as a list of edges:

    {"conv": {"weight": 0.9, "children": {"conv1x1": 0.1, "conv3x3": 0.1}}, "pool": 1.0} [["root",
    "conv", 0.9], ["conv", "conv1x1", 0.1], ["conv", "conv3x3", 0.1], ["root", "pool", 1.0]]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from archive.architecture.operations import Vocabulary, vocabulary
from archive.errors import UsageError

Edge = tuple[str | None, str, float]

ENDS = ("input", "output", "decision", "exit")


class Node(NamedTuple):
    """One node below the root.

    Attributes:
        name: Name of the node: an operation, or a group of operations.
        weight: Length of the edge to its parent.
        below: Greatest distance to a descendant, 0 for a leaf.
    """

    name: str
    weight: float
    below: float


class OperationTree:
    """A validated operation tree. Immutable.

    Args:
        tree: A nested mapping of names to lengths, or to a mapping with `weight` and `children`; or
            a list of edges `[parent, child, length]`.

    Raises:
        UsageError: The argument is not a tree with lengths >= 0; the message names the node at
            fault.
    """

    def __init__(self, tree: Mapping[str, Any] | Sequence[Sequence[Any]]) -> None:
        """Check the tree and store the path to each node."""
        nested = isinstance(tree, Mapping)
        edges = list(_edges_of_mapping(tree)) if nested else list(_edges_of_list(tree))  # type: ignore[arg-type]
        parents = _check_parents(edges)
        root = None if nested else _root(parents)
        paths = {name: _path(name, parents, root) for name in parents if name != root}
        weights = {child: weight for _, child, weight in edges}
        below = dict.fromkeys(paths, 0.0)
        for names in paths.values():
            length = 0.0
            for name in reversed(names):
                below[name] = max(below[name], length)
                length += weights[name]

        nodes = {name: Node(name, weights[name], below[name]) for name in paths}
        self.paths: dict[str, tuple[Node, ...]] = {}
        for name, names in paths.items():
            self.paths[name] = tuple(map(nodes.__getitem__, names))

    def operations(self, words: Vocabulary) -> frozenset[str]:
        """Return the operations of a vocabulary that are in the tree.

        Raises:
            UsageError: An operation that is neither input, output nor a decision layer is missing.
            InvalidArchitectureError: The operations have no list.
        """
        words.check_listed()
        for name, operation in words.operations.items():
            if operation.group not in ENDS and name not in self.paths:
                nodes = ", ".join(self.paths)
                raise UsageError(
                    f"tree must have every operation of {words.name}, missing "
                    f"{name!r} (it has {nodes})"
                )

        return frozenset(words.operations).intersection(self.paths)


def default_tree(space: str) -> OperationTree:
    """Return the tree of a space: its vocabulary's tree, or the following.

    A node of weight 0.9 for each group of several operations, with an edge of 0.1 to each of them;
    an edge of 1 to an operation that is alone in its group, and to operations of cells: their group
    carries no information.
    """
    words = vocabulary(space)
    words.check_listed()
    return _tree(words)


@cache
def _tree(words: Vocabulary) -> OperationTree:
    if words.tree is not None:
        return OperationTree(words.tree)

    tree: dict[str, Any] = {}
    for name, operation in words.operations.items():
        if operation.group in ENDS:
            continue

        if operation.group == "cell" or words.of_group(operation.group) == (name,):
            tree[name] = 1.0
        else:
            # Braces distinguish the group `fc` from the operation `fc`.
            tree.setdefault(f"{{{operation.group}}}", {"weight": 0.9, "children": {}})["children"][
                name
            ] = 0.1

    return OperationTree(tree)


def _edges_of_mapping(
    tree: Mapping[str, Any], parent: str | None = None, above: tuple[int, ...] = ()
) -> Iterator[Edge]:
    if id(tree) in above:
        raise UsageError(f"tree must have no cycle, but {parent!r} contains itself")

    for name, value in tree.items():
        if not isinstance(value, Mapping):
            yield parent, _name(name), _weight(name, value)
            continue

        unknown = sorted(map(str, set(value) - {"weight", "children"}))
        if unknown or "weight" not in value:
            what = f"unknown {unknown[0]!r}" if unknown else "no weight"
            raise UsageError(
                f"tree node {name!r} must be a length or have a weight and children, got {what}"
            )

        yield parent, _name(name), _weight(name, value["weight"])
        children = value.get("children", {})
        if not isinstance(children, Mapping):
            raise UsageError(
                f"children of the tree node {name!r} must be a mapping, got {children!r}"
            )

        yield from _edges_of_mapping(children, name, (*above, id(tree)))


def _edges_of_list(tree: Sequence[Sequence[Any]]) -> Iterator[Edge]:
    if isinstance(tree, str) or not isinstance(tree, Sequence):
        raise UsageError(f"tree must be a nested mapping or a list of edges, got {tree!r}")

    for edge in tree:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 3:
            raise UsageError(f"an edge of the tree must be [parent, child, length], got {edge!r}")

        yield _name(edge[0]), _name(edge[1]), _weight(edge[1], edge[2])


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise UsageError(f"a tree node must have a name, got {name!r}")

    return name


def _weight(name: Any, weight: Any) -> float:
    try:
        length = math.nan if isinstance(weight, (bool, str)) else float(weight)
    except (TypeError, ValueError):
        length = math.nan

    if not 0 <= length < math.inf:
        raise UsageError(
            f"weight of the tree node {name!r} must be a finite number >= 0, got {weight!r}"
        )

    return length


def _check_parents(edges: Sequence[Edge]) -> dict[str, str | None]:
    """Return the parent of every node but the root: None, or a name, for the root's children."""
    parents: dict[str, str | None] = {}
    for parent, child, _ in edges:
        if child in parents:
            raise UsageError(
                f"tree node {child!r} must have one parent, got {parents[child]!r} and {parent!r}"
            )

        parents[child] = parent

    if not parents:
        raise UsageError("tree must have at least one operation, got none")

    return parents


def _root(parents: Mapping[str, str | None]) -> str | None:
    roots = sorted(
        {parent for parent in parents.values() if parent is not None and parent not in parents}
    )
    if len(roots) > 1:
        raise UsageError(
            f"tree must be connected, but neither {roots[0]!r} nor {roots[1]!r} has a parent"
        )

    return roots[0] if roots else None


def _path(name: str, parents: Mapping[str, str | None], root: str | None) -> list[str]:
    """Return the nodes from below the root down to a node."""
    path: list[str] = []
    node: str | None = name
    while node is not None and node != root:
        if node in path:
            raise UsageError(f"tree must have no cycle, but {node!r} is above itself")

        path.append(node)
        node = parents[node]

    return path[::-1]
