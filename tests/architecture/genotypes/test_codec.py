"""Genotypes as architectures: exact round trips, and one key for isomorphic genotypes and for no
others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture import codec
from archive.architecture.genotypes.codec import from_genotype, to_genotype
from archive.architecture.genotypes.genotype import RULES, Genotype
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import vocabulary
from archive.errors import CodecError, InvalidArchitectureError, UnknownNameError
from archive.spaces.darts.published import PUBLISHED
from tests.support.networks import genotypes as support
from tests.support.networks.genotypes import disguised, genotypes, identity
from tests.support.strategies import relabelled

spaces = pytest.mark.parametrize("space", support.SPACES)


@spaces
@given(data=st.data())
def test_a_round_trip_is_exact(space: str, data: st.DataObject) -> None:
    genotype = data.draw(genotypes(space))
    architecture = from_genotype(genotype, space)
    assert to_genotype(architecture) == genotype
    assert codec.from_json(codec.to_json(architecture)) == architecture


@spaces
@given(data=st.data(), seed=st.integers(0, 999))
def test_isomorphic_genotypes_have_one_key(space: str, data: st.DataObject, seed: int) -> None:
    genotype = data.draw(genotypes(space))
    architecture = from_genotype(genotype, space)
    other = from_genotype(disguised(genotype, seed), space)
    assert other.key == architecture.key
    assert to_genotype(other.canonical) == to_genotype(architecture.canonical)
    assert identity(to_genotype(relabelled(architecture, seed))) == identity(genotype)


@spaces
@given(data=st.data(), seed=st.integers(0, 999))
def test_other_genotypes_have_other_keys(space: str, data: st.DataObject, seed: int) -> None:
    """Genotypes that differ in one choice, which are isomorphic now and then."""
    genotype = data.draw(genotypes(space))
    rules = RULES[space]
    choices = list(genotype.normal)
    at = data.draw(st.integers(0, len(choices) - 1))
    taken = () if rules.repeats else (choices[at ^ 1][1],)
    states = [state for state in range(2 + at // 2) if state not in taken]
    choices[at] = (
        data.draw(st.sampled_from(rules.primitives[:3])),
        data.draw(st.sampled_from(states)),
    )
    changed = genotype._replace(normal=tuple(choices), normal_concat=rules.outputs(choices))
    equal = from_genotype(changed, space).key == from_genotype(disguised(genotype, seed), space).key
    assert equal == (identity(changed) == identity(genotype))


def test_nodes_that_only_the_pairing_of_operations_distinguishes() -> None:
    """The sums of a and b and of c and d, against those of a and d and of c and b."""
    a = ("sep_conv_3x3", 0)
    b = ("skip_connect", 1)
    c = ("dil_conv_5x5", 0)
    d = ("max_pool_3x3", 1)
    rest = (("sep_conv_3x3", 0), ("sep_conv_3x3", 1)) * 2
    first, second = (
        Genotype((*pairs, *rest), (2, 3, 4, 5), (*rest, *rest), (2, 3, 4, 5))
        for pairs in ((a, b, c, d), (a, d, c, b))
    )
    assert from_genotype(first).key != from_genotype(second).key


def test_cells_are_not_exchangeable() -> None:
    genotype = PUBLISHED["DARTS_V2"].genotype
    exchanged = Genotype(*genotype[2:], *genotype[:2])
    assert from_genotype(exchanged).key != from_genotype(genotype).key


def test_layers_of_a_published_genotype() -> None:
    network = PUBLISHED["DARTS_V2"].architecture
    words = vocabulary(network.space)
    groups = [words[layer.op].group for layer in network.layers]
    assert {group: groups.count(group) for group in ("entry", "cell", "exit")} == {
        "entry": 4,
        "cell": 16,
        "exit": 8,
    }
    # The dilated convolution of node 5 reads node 2, the sum of two separable convolutions on the
    # entries.
    (dilated,) = [u for u, layer in enumerate(network.layers) if layer.op == "normal.dil_conv_3x3"]
    read = network.parents[dilated]
    assert [network.layers[u].op for u in read] == ["normal.sep_conv_3x3"] * 2
    assert sorted(network.layers[p].op for u in read for p in network.parents[u]) == [
        "normal.c_k-1",
        "normal.c_k-2",
    ]
    # Input, entry, operation, dilated convolution, sum, output.
    assert network.depth == 5


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_genotypes_round_trip(name: str) -> None:
    published = PUBLISHED[name]
    assert str(published.genotype) == published.text
    assert to_genotype(published.architecture) == published.genotype
    assert published.architecture.space == (
        "nasnet" if name in ("NASNet", "AmoebaNet") else "darts"
    )
    assert RULES[published.architecture.space].fault(published.genotype) is None


def test_a_zero_is_on_no_path() -> None:
    """Node 2 is zero in the normal cell, and so is what reads it alone; the state that a zero reads
    does not matter."""
    zero = "none"
    conv = "sep_conv_3x3"
    skip = "skip_connect"
    reduce = ((conv, 0), (conv, 1)) * 4
    normal = (
        (zero, 0),
        (zero, 1),
        (conv, 2),
        (zero, 0),
        (conv, 0),
        (zero, 1),
        (skip, 3),
        (conv, 1),
    )
    other = ((zero, 1), (zero, 0), (conv, 2), (zero, 1), (conv, 0), (zero, 3), (skip, 2), (conv, 1))
    every = (2, 3, 4, 5)
    first, second = (
        from_genotype(Genotype(cell, every, reduce, every)) for cell in (normal, other)
    )
    assert first.key != second.key
    assert first.functional_key == second.functional_key
    remaining = [layer.op for layer in first.functional.layers if layer.op.startswith("normal")]
    assert sorted(remaining) == sorted(
        [
            "normal.c_k-2",
            "normal.c_k-1",
            "normal.sep_conv_3x3",
            "normal.sep_conv_3x3",
            "normal.sum",
            "normal.sum",
        ]
    )
    read = to_genotype(first.functional)
    assert sorted(op for op, _ in read.normal if op != zero) == [conv, conv]
    assert from_genotype(read).functional_key == first.functional_key


@spaces
@given(data=st.data())
def test_the_functional_form_is_read_as_an_equal_function(space: str, data: st.DataObject) -> None:
    architecture = from_genotype(data.draw(genotypes(space)), space)
    read = to_genotype(architecture.functional)
    assert RULES[space].fault(read) is None
    assert from_genotype(read, space).functional_key == architecture.functional_key


def test_the_narrowest_space_is_chosen() -> None:
    genotype = PUBLISHED["DARTS_V1"].genotype
    assert from_genotype(genotype).space == "darts"
    with pytest.raises(CodecError, match=r"^no genotype of nasnet: a cell has 5 nodes, got 4"):
        from_genotype(genotype, "nasnet")

    with pytest.raises(UnknownNameError, match="space of genotypes 'cnn'"):
        from_genotype(genotype, "cnn")

    partial = genotype._replace(normal_concat=(3, 4, 5))
    with pytest.raises(
        CodecError,
        match=r"no genotype of darts: the output concatenates all nodes, \[2, 3, 4, "
        r"5\], got \[3, 4, 5\]",
    ):
        from_genotype(partial)

    twice = genotype._replace(
        normal=(("skip_connect", 0), ("skip_connect", 0), *genotype.normal[2:])
    )
    with pytest.raises(
        CodecError,
        match=r"a node reads two different states, got 0 twice "
        r"\(normal, node 2\)",
    ):
        from_genotype(twice)

    strange = genotype._replace(reduce=(("conv_9x9", 0), *genotype.reduce[1:]))
    with pytest.raises(
        CodecError,
        match=r"an operation is one of none, max_pool_3x3, .*, got "
        r"'conv_9x9' \(reduce",
    ):
        from_genotype(strange)


def _edited(edges=(), without=(), extra=()):
    """DARTS' second-order network with some edges and layers more, and some edges fewer."""
    network = PUBLISHED["DARTS_V2"].architecture
    last = len(network.layers) - 1
    layers = [*network.layers[:-1], *map(Layer, extra), Layer("op")]
    moved = {last: len(layers) - 1}
    pairs = {
        (moved.get(tail, tail), moved.get(head, head))
        for tail, head in network.edges
        if (tail, head) not in without
    }
    return Architecture("darts", layers, pairs | set(edges))


# Layers of the network: 1 and 2 the entries of the normal cell; 3 and 4 the operations of node 2, 5
# its sum; …
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"edges": [(0, 3)]}, "the input, and only it, feeds entries, got ip→normal.sep_conv_3x3"),
        ({"edges": [(3, 29)]}, "sums, and only they, feed the output, got normal.sep_conv_3x3→op"),
        (
            {"edges": [(1, 4)]},
            "normal.sep_conv_3x3 is fed by neither one entry nor all operations of one node",
        ),
        ({"edges": [(3, 20)]}, "is fed by neither one entry nor all operations of one node"),
        ({"without": [(3, 5)]}, "is fed by neither one entry nor all operations of one node"),
        ({"edges": [(0, 29)], "extra": ["normal.c_k-1"]}, "a cell has one c_k-1, got two .normal"),
        (
            {"edges": [(1, 29)], "extra": ["normal.skip_connect"]},
            "normal.skip_connect is in no node: it feeds nothing",
        ),
        (
            {"edges": [(3, 29), (4, 29), (29, 30)], "extra": ["normal.sum"]},
            "a node has one sum, got two",
        ),
        (
            {
                "edges": [(1, 29), (2, 30), (1, 31), (29, 32), (30, 32), (31, 32), (32, 33)],
                "extra": ["normal.skip_connect"] * 3 + ["normal.sum"],
            },
            "a node is the sum of two operations, got 3 that feed normal.sum",
        ),
        (
            {
                "edges": [(1, 29), (29, 30), (30, 31)],
                "extra": ["normal.skip_connect", "normal.sum"],
            },
            "a cell has 4 nodes, got 5 .normal",
        ),
    ],
)
def test_graphs_that_are_no_cells_are_refused(change, reason: str) -> None:
    with pytest.raises(InvalidArchitectureError, match=reason):
        to_genotype(_edited(**change))


def test_another_space_has_no_genotypes() -> None:
    other = Architecture("nasbench201", [Layer("ip"), Layer("op")], [(0, 1)])
    with pytest.raises(CodecError, match="must be of space darts or nasnet, got nasbench201"):
        to_genotype(other)
