"""Encodings of genotypes against BANANAS' own, which are defined on the pairs of a genotype."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.genotypes.codec import from_genotype
from archive.architecture.genotypes.operations import DARTS_PRIMITIVES
from archive.architecture.graph import Architecture
from archive.kernels.features.adjacency import AdjacencyEncoding, Hamming
from archive.kernels.features.embedding import matrix
from archive.kernels.features.paths import PathEncoding, every_path, path_counts
from archive.kernels.features.topology import TopologyFeatures
from archive.spaces.darts.published import PUBLISHED
from tests.support.networks.genotypes import disguised, genotypes, renumbered
from tests.support.strategies import space_of

CELLS = ("normal", "reduce")
ENTRIES = ("c_k-2", "c_k-1")


def paths(choices):
    """The paths from the two inputs to any node of a cell: tuples of the input and the operations,
    with repeats."""
    ending = [[(0,)], [(1,)]]
    for at in range(0, len(choices), 2):
        ending.append([(*path, op) for op, state in choices[at : at + 2] for path in ending[state]])

    return [path for node in ending[2:] for path in node]


def published_vector(genotype):
    """The vector of BANANAS' code: two cells of two inputs, in each of these the paths by length
    and operations."""
    each = sum(8**i for i in range(5))
    vector = np.zeros(4 * each)
    for cell, choices in enumerate((genotype.normal, genotype.reduce)):
        for entry, *ops in paths(choices):
            place = sum(8**at * (1 + DARTS_PRIMITIVES.index(op)) for at, op in enumerate(ops))
            vector[(2 * cell + entry) * each + place] += 1

    return vector


def published_order():
    """The names of the features in the order of that vector."""
    names = {}
    for length in range(5):
        for ops in product(range(8), repeat=length):
            names[sum(8**at * (1 + op) for at, op in enumerate(ops))] = [
                DARTS_PRIMITIVES[op] for op in ops
            ]

    return [
        "→".join(
            ["ip", f"{cell}.{entry}", *(f"{cell}.{op}" for op in names[at]), f"{cell}.sum", "op"]
        )
        for cell in CELLS
        for entry in ENTRIES
        for at in range(len(names))
    ]


ORDER = published_order()


def test_the_features_are_those_of_the_paper():
    assert len(ORDER) == 18724
    assert set(ORDER) == set(every_path("darts"))


@given(genotypes())
def test_path_encodings_are_those_of_the_paper(genotype):
    network = from_genotype(genotype)
    vector = published_vector(genotype)
    binary, counted = (PathEncoding(counts).prepare(network) for counts in (False, True))
    np.testing.assert_array_equal(matrix([binary], ORDER)[0], vector > 0)
    np.testing.assert_array_equal(matrix([counted], ORDER)[0], vector)


@given(genotypes(), st.integers(0, 4))
def test_truncation_keeps_the_paths_of_few_operations(genotype, length):
    features = path_counts(from_genotype(genotype), length)
    wanted = {name for name, value in zip(ORDER, published_vector(genotype), strict=True) if value}
    assert set(features) == {name for name in wanted if name.count("→") - 3 <= length}


def test_paths_through_a_zero_are_dropped_with_it():
    network = PUBLISHED["BANANAS_2"].architecture
    assert any(".none" in name for name in path_counts(network))
    remaining = path_counts(network.functional)
    assert remaining == {
        name: count for name, count in path_counts(network).items() if ".none" not in name
    }


@given(genotypes(), genotypes())
def test_hamming_is_the_number_of_edges_with_other_operations(first, second):
    """Over the 14 edges of each cell, in the node numbers that the networks are compared in."""
    networks = [from_genotype(one) for one in (first, second)]
    slots = [space_of("darts").slots(network) for network in networks]
    assert len(slots[0]) == 28 and slots[0].keys() == slots[1].keys()
    wanted = sum(slots[0][name] != slots[1][name] for name in slots[0])
    assert Hamming().distances(networks).unnormalised[0, 0, 1] == wanted
    np.testing.assert_allclose(
        AdjacencyEncoding().distances(networks).unnormalised[0, 0, 1], np.sqrt(2 * wanted)
    )


@given(genotypes(zeros=False), st.integers(0, 999))
def test_slots_are_those_of_one_isomorphic_genotype(genotype, seed):
    space = space_of("darts")
    slots = space.slots(from_genotype(genotype))
    assert slots == space.slots(from_genotype(disguised(genotype, seed)))
    for cell, choices, concat in zip(CELLS, genotype[::2], genotype[1::2], strict=True):
        edges = {
            name.partition(".")[2]: op
            for name, op in slots.items()
            if name.startswith(cell) and op != "none"
        }
        forms = [renumbered(choices, concat, order) for order in permutations(range(4))]
        assert edges in [table(form[0]) for form in forms if form is not None]


def table(choices):
    return {f"{state}-{2 + at // 2}": op for at, (op, state) in enumerate(choices)}


@given(genotypes())
def test_slots_are_those_of_the_function(genotype):
    space = space_of("darts")
    network = from_genotype(genotype)
    assert space.slots(network) == space.slots(network.functional)


def test_a_published_network_has_its_topology():
    network = PUBLISHED["DARTS_V2"].architecture
    numbers, _ = TopologyFeatures().features(network)
    # Skips and pools have no weights; the longest path with weights has a separable and a dilated
    # convolution.
    assert numbers["trained:longest"] == 2.0
    assert numbers["trained:shortest"] == 0.0
    assert numbers["paths"] == pytest.approx(np.log2(sum(path_counts(network).values())))


def test_attributes_change_nothing_where_there_are_none():
    network = PUBLISHED["DARTS_V1"].architecture
    assert isinstance(network, Architecture)
    assert path_counts(network, attributes=True) == path_counts(network)
