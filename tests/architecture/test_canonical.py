"""Canonical form and key: equal for isomorphic networks and for no others, and fast for symmetric
ones."""

from __future__ import annotations

import csv
from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.codec import from_nasbench101, from_nasbench201
from archive.architecture.graph import Architecture, Edge, Layer
from tests.support import data_lines, examples
from tests.support.strategies import cells, members, relabelled


def cell(ops: list[str], edges: list[Edge]) -> Architecture:
    return Architecture("nasbench101", [Layer("ip"), *map(Layer, ops), Layer("op")], edges)


def isomorphic(a: Architecture, b: Architecture) -> bool:
    """The definition by trial: whether a permutation of the layers makes one graph the other."""
    n = len(a.layers)
    if n != len(b.layers) or len(a.edges) != len(b.edges):
        return False

    wanted = set(b.edges)
    for inner in permutations(range(1, n - 1)):
        to = (0, *inner, n - 1)
        if all(a.layers[u] == b.layers[to[u]] for u in range(n)):
            if {(to[tail], to[head]) for tail, head in a.edges} == wanted:
                return True

    return False


@given(cells(max_inner=6), st.integers(0, 10_000))
@examples(5)
def test_relabelling_a_cell_changes_no_key(network: Architecture, seed: int) -> None:
    other = relabelled(network, seed)
    assert (other.key, other.functional_key) == (network.key, network.functional_key)


@pytest.mark.parametrize("space", ["cnn", "mlp"])
@given(data=st.data(), seed=st.integers(0, 10_000))
def test_relabelling_a_network_changes_no_key(space: str, data: st.DataObject, seed: int) -> None:
    network = data.draw(members(space))
    assert relabelled(network, seed).key == network.key


@given(cells(max_inner=4, labels=("maxpool3x3",)), cells(max_inner=4, labels=("maxpool3x3",)))
@examples(5)
def test_keys_are_equal_exactly_when_a_permutation_exists(a: Architecture, b: Architecture) -> None:
    assert (a.key == b.key) == isomorphic(a, b)


@pytest.mark.whole
def test_every_graph_of_five_equal_layers_is_told_apart() -> None:
    """All 1,024 DAGs on five equal layers: as many keys as isomorphism classes, class by class."""
    pairs = list(combinations(range(1, 6), 2))
    classes: dict[str, Architecture] = {}
    for chosen in product((False, True), repeat=len(pairs)):
        network = cell(
            ["maxpool3x3"] * 5, [pair for pair, wanted in zip(pairs, chosen, strict=True) if wanted]
        )
        known = classes.setdefault(network.key, network)
        assert isomorphic(known, network)

    # The number of acyclic digraphs on five unlabelled nodes, sequence A003087 of the OEIS.
    assert len(classes) == 302
    for a, b in combinations(classes.values(), 2):
        assert not isomorphic(a, b)


def cycles(*lengths: int) -> Architecture:
    """Alternating cycles between upper and lower layers: every upper one feeds two, every lower one
    has two parents."""
    half = sum(lengths) // 2
    edges: list[Edge] = []
    first = 0
    for length in lengths:
        for i in range(length // 2):
            upper = 1 + first + i
            edges += [
                (upper, 1 + half + first + i),
                (upper, 1 + half + first + (i + 1) % (length // 2)),
            ]

        first += length // 2

    edges += [(0, 1 + i) for i in range(half)] + [(1 + half + i, 2 * half + 1) for i in range(half)]
    return cell(["maxpool3x3"] * (2 * half), edges)


@pytest.mark.parametrize(
    "others",
    [((8,), (4, 4)), ((12,), (6, 6), (4, 8), (4, 4, 4)), ((16,), (8, 8), (6, 10), (4, 12))],
)
def test_graphs_that_colour_refinement_cannot_tell_apart_are_told_apart(
    others: tuple[tuple[int, ...], ...],
) -> None:
    keys = [cycles(*lengths).key for lengths in others]
    assert len(set(keys)) == len(others)
    assert [relabelled(cycles(*lengths), 5).key for lengths in others] == keys


def test_many_equal_branches_cost_little() -> None:
    """Two hundred equal parallel layers have 200! relabellings; the key is found without trying
    them."""
    edges = [edge for u in range(1, 201) for edge in ((0, u), (u, 201))]
    wide = cell(["maxpool3x3"] * 200, edges)
    assert relabelled(wide, 1).key == wide.key


def test_twins_beside_look_alikes_that_are_none() -> None:
    """Layers that refinement cannot tell apart, some of them twins, some not: the twins of each
    cycle of four."""
    mixed = cycles(4, 4, 6)
    others = (cycles(6, 4, 4), cycles(14), cycles(4, 10), cycles(8, 6))
    assert {relabelled(mixed, seed).canonical.edges for seed in range(5)} == {mixed.canonical.edges}
    assert mixed.key == others[0].key
    assert len({network.key for network in others}) == 4


def test_labels_units_strides_and_spaces_are_part_of_the_key() -> None:
    def network(layer: Layer) -> Architecture:
        return Architecture(
            "cnn", [Layer("ip"), layer, Layer("softmax"), Layer("op")], [(0, 1), (1, 2), (2, 3)]
        )

    variants = [
        Layer("conv3", 8),
        Layer("conv5", 8),
        Layer("res3", 8),
        Layer("conv3", 9),
        Layer("conv3", 8, 2),
    ]
    keys = {network(layer).key for layer in variants}
    keys |= {
        Architecture(space, [Layer("ip"), Layer("op")], []).key
        for space in ("nasbench101", "nasbench201")
    }
    assert len(keys) == len(variants) + 2
    assert all(len(key) == 32 and set(key) <= set("0123456789abcdef") for key in keys)


def test_keys_do_not_change_between_releases() -> None:
    """Archives hold keys: a change here orphans every stored distance and evaluation."""
    network = Architecture(
        "mlp",
        [Layer("ip"), Layer("relu", 64), Layer("linear"), Layer("op")],
        [(0, 1), (1, 2), (2, 3)],
    )
    assert network.key == "d3c8916d46003953637bec0cf0992284"


@pytest.mark.whole
def test_all_cells_of_the_nasbench101_sample_have_distinct_keys() -> None:
    rows = list(csv.DictReader(data_lines("nb101_sample.csv.gz")))
    keys = set()
    for row in rows:
        n = int(row["n_vertices"])
        text = row["adjacency_rowmajor"]
        matrix = [[int(entry) for entry in text[u * n : (u + 1) * n]] for u in range(n)]
        keys.add(from_nasbench101(matrix, row["ops"].split("|")).key)

    assert len(rows) == len(keys) == 20_001


@pytest.mark.whole
def test_nasbench201_has_the_known_numbers_of_classes() -> None:
    networks = [
        from_nasbench201(row["arch_str"]) for row in csv.DictReader(data_lines("nb201.csv.gz"))
    ]
    assert len(networks) == 15_625
    assert len({network.key for network in networks}) == 14_125
    assert len({network.functional_key for network in networks}) == 8_765
