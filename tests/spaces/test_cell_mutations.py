"""Mutations of cells: the published rates, and the recorded operations."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest

from archive.architecture.codec import from_nasbench101, from_nasbench201, to_nasbench101
from archive.architecture.graph import Architecture
from archive.spaces.base import Mutation
from archive.spaces.nasbench101 import _edits, _needed
from tests.support.strategies import CELL_LABELS, space_of

SPACE = space_of("nasbench101")
PAIRS = [(u, v) for u in range(7) for v in range(u + 1, 7)]


@cache
def mutations() -> list[tuple[Architecture, Mutation]]:
    rng = np.random.default_rng(0)
    parents = [SPACE.sample(rng) for _ in range(400)]
    return [(parent, SPACE.mutate(parent, rng)) for parent in parents]


def labels_of(cell: Architecture) -> Counter[str]:
    return Counter(layer.op for layer in cell.layers)


def alive(matrix: np.ndarray) -> list[int]:
    """Vertices on a path from the first to the last, by powers of the matrix."""
    reach = np.linalg.matrix_power(np.eye(len(matrix), dtype=int) + matrix, len(matrix)) > 0
    return [u for u in range(len(matrix)) if reach[0, u] and reach[u, -1]]


def made_of(matrix: np.ndarray, labels: list[str]) -> str | None:
    kept = alive(matrix)
    if not kept or kept[0] != 0:
        return None

    cell = from_nasbench101(matrix[np.ix_(kept, kept)].tolist(), [labels[u] for u in kept])
    return cell.key if SPACE.contains(cell) else None


def reached(parent: Architecture, flips: int, swaps: int) -> set[str | None]:
    """Keys of all cells that so many flips and new labels make of a parent of seven vertices."""
    matrix, labels = to_nasbench101(parent)
    found = set()
    for chosen in combinations(PAIRS, flips):
        flipped = np.array(matrix)
        for u, v in chosen:
            flipped[u, v] ^= 1

        for at in combinations(range(1, 6), swaps):
            for new in product(
                *([label for label in CELL_LABELS if label != labels[u]] for u in at)
            ):
                others = dict(zip(at, new, strict=True))
                found.add(
                    made_of(flipped, [others.get(u, label) for u, label in enumerate(labels)])
                )

    return found


def test_each_edge_flips_with_a_seventh_and_each_label_changes_with_a_fifth() -> None:
    rng = np.random.default_rng(1)
    labels = ["input", *CELL_LABELS, *CELL_LABELS[:2], "output"]
    edges: Counter[tuple[int, int]] = Counter()
    swaps: Counter[tuple[int, str]] = Counter()
    for _ in range(7000):
        for u, to in _edits(5, labels, rng):
            if isinstance(to, int):
                edges[u, to] += 1
            else:
                swaps[u, to] += 1

    assert set(edges) == set(PAIRS)
    assert all(count == pytest.approx(1000, rel=0.15) for count in edges.values())
    # Two other labels for each of five vertices.
    assert set(swaps) == {(u, to) for u in range(1, 6) for to in CELL_LABELS if to != labels[u]}
    assert all(count == pytest.approx(700, rel=0.15) for count in swaps.values())


def test_a_swapped_label_is_another_one() -> None:
    """A change of labels alone changes the operations of the cell."""
    only = [(parent, m.child) for parent, m in mutations() if set(m.operations) == {"swap_label"}]
    assert len(only) > 5
    for parent, child in only:
        assert len(child.layers) == len(parent.layers)
        assert len(child.edges) == len(parent.edges)

    single = [(parent, m.child) for parent, m in mutations() if m.operations == ("swap_label",)]
    assert all(labels_of(parent) != labels_of(child) for parent, child in single)


def test_the_operations_make_the_child() -> None:
    """The recorded edits are a minimal set, by trying all."""
    few = [
        (parent, m)
        for parent, m in mutations()
        if len(m.operations) <= 2 and len(parent.layers) == 7
    ]
    for parent, mutation in few[:12]:
        counts = Counter(mutation.operations)
        assert mutation.child.key in reached(parent, counts["flip_edge"], counts["swap_label"])


def test_what_is_cut_off_is_not_on_record() -> None:
    matrix = [[0] * 7 for _ in range(7)]
    for u, v in [(0, 1), (1, 2), (2, 6), (0, 6)]:
        matrix[u][v] = 1

    labels = ["input", *CELL_LABELS, *CELL_LABELS[:2], "output"]
    # Vertices 3 to 5 are on no path: an edge between them and another label change nothing.
    assert _needed(matrix, labels, [(3, 4), (0, 2), (4, "maxpool3x3")]) == [(0, 2)]
    assert _needed(matrix, labels, [(3, 4), (4, "maxpool3x3")]) == []
    # Both disconnect vertex 1, and one is enough; its new label has no effect.
    found = _needed(matrix, labels, [(0, 1), (1, 2), (0, 2), (1, "maxpool3x3")])
    assert found in ([(0, 1), (0, 2)], [(1, 2), (0, 2)])
    # The two edges that join vertex 3 belong together.
    assert _needed(matrix, labels, [(0, 3), (3, 6)]) == [(0, 3), (3, 6)]


def test_new_vertices_have_all_labels() -> None:
    small = from_nasbench101([[0, 1], [0, 0]], ["input", "output"])
    rng = np.random.default_rng(0)
    found: Counter[str] = Counter()
    for _ in range(300):
        found += labels_of(SPACE.mutate(small, rng).child)

    counts = [found[label] for label in CELL_LABELS]
    assert min(counts) > 0.7 * max(counts)


def test_a_mutation_of_nasbench201_is_another_network() -> None:
    """An operation on a dead edge has no effect."""
    space = space_of("nasbench201")
    rng = np.random.default_rng(0)
    # No edge reaches node 1, so edges from it have no effect.
    parent = from_nasbench201(
        "|none~0|+|nor_conv_3x3~0|skip_connect~1|+|none~0|nor_conv_1x1~1|none~2|"
    )
    for _ in range(100):
        mutation = space.mutate(parent, rng)
        assert mutation.operations == ("swap_label",)
        assert mutation.child.functional_key != parent.functional_key
