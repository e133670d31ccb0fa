"""The spaces of genotypes: BANANAS' sampling and mutations, neighbours, sizes and reasons."""

from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.architecture.genotypes.codec import from_genotype, to_genotype
from archive.architecture.genotypes.operations import DARTS_PRIMITIVES
from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, SettingsError, UnknownNameError
from archive.spaces.darts.published import PUBLISHED
from tests.support import examples, whole
from tests.support.networks.genotypes import genotypes, identity
from tests.support.strategies import generators, space_of

both = pytest.mark.parametrize("name", ["darts", "nasnet"])
V2 = PUBLISHED["DARTS_V2"].architecture


def choices(architecture):
    genotype = to_genotype(architecture)
    return [*genotype.normal, *genotype.reduce]


def test_sizes_of_the_papers():
    # DARTS, section 3.1: product over k of (k + 1) k / 2 * 7^2, about 10^9 for each of two cells.
    cell = np.prod([(k + 1) * k / 2 * 7**2 for k in range(1, 5)])
    assert cell == pytest.approx(1e9, rel=0.04)
    assert spaces.get("darts", none=False).size == int(cell) ** 2
    assert spaces.get("darts").size == (180 * 64**4) ** 2
    # Five nodes: unordered pairs of the choices of an operation and a state.
    assert (
        spaces.get("nasnet").size
        == np.prod([comb(10 * k + 1, 2) for k in range(2, 7)], dtype=object) ** 2
    )


def test_samples_are_uniform_over_operations_and_states():
    rng = np.random.default_rng(0)
    space = space_of("darts")
    drawn = [choices(space.sample(rng)) for _ in range(400)]
    operations = Counter(op for genotype in drawn for op, _ in genotype)
    assert set(operations) == set(DARTS_PRIMITIVES)
    assert all(count == pytest.approx(400 * 16 / 8, rel=0.15) for count in operations.values())
    # The last node of each cell reads two of five states.
    pairs = Counter(
        frozenset((genotype[at][1], genotype[at + 1][1])) for genotype in drawn for at in (6, 14)
    )
    assert len(pairs) == 10
    assert all(count == pytest.approx(80, rel=0.5) for count in pairs.values())


@both
@given(data=st.data(), rng=generators())
def test_a_mutation_changes_one_choice(name, data, rng):
    space = space_of(name)
    parent = from_genotype(data.draw(genotypes(name)), name)
    mutation = space.mutate(parent, rng)
    changed = [
        pair
        for pair in zip(choices(parent), choices(mutation.child), strict=True)
        if pair[0] != pair[1]
    ]
    ((before, after),) = changed
    kept = {"swap_label": before[1] == after[1], "swap_input": before[0] == after[0]}
    assert kept[mutation.operations[0]]


def test_mutations_reach_both_cells_and_both_kinds():
    rng = np.random.default_rng(0)
    space = space_of("darts")
    kinds = Counter()
    for _ in range(300):
        mutation = space.mutate(V2, rng)
        normal = to_genotype(mutation.child).normal != to_genotype(V2).normal
        kinds[normal, mutation.operations[0]] += 1

    # Two of eight choices cannot read another state, and some changes give the same network.
    assert len(kinds) == 4 and min(kinds.values()) > 30


@pytest.mark.parametrize("name", ["darts", whole("nasnet")])
@given(data=st.data())
@examples(0.05)
def test_neighbours_are_all_that_differ_in_one_choice(name, data):
    """In one cell, against every choice of every place: one of each isomorphic set that the space
    has."""
    space = space_of(name)
    genotype = data.draw(genotypes(name))
    field, other = data.draw(st.permutations(["normal", "reduce"]))
    own = getattr(genotype, field)
    wanted = set()
    for at in range(len(own)):
        operation, state = own[at]
        states = range(2 + at // 2)
        for choice in [
            *((op, state) for op in space.primitives),
            *((operation, one) for one in states),
        ]:
            moved = (*own[:at], choice, *own[at + 1 :])
            changed = genotype._replace(
                **{field: moved, f"{field}_concat": space.rules.outputs(moved)}
            )
            if space.rules.fault(changed) is None:
                wanted.add(identity(changed))

    near = [to_genotype(one.child) for one in space.neighbours(from_genotype(genotype, name))]
    found = [identity(one) for one in near if getattr(one, other) == getattr(genotype, other)]
    assert len(found) == len(set(found))
    assert set(found) == wanted - {identity(genotype)}


def test_a_network_without_symmetries_has_the_neighbours_of_bananas_code():
    """16 choices of 7 other operations, and 24 changes of a state."""
    cell = (("sep_conv_3x3", 0), ("sep_conv_5x5", 1), ("dil_conv_3x3", 2), ("max_pool_3x3", 0))
    cell += (("skip_connect", 3), ("dil_conv_5x5", 1), ("avg_pool_3x3", 4), ("sep_conv_3x3", 2))
    every = (2, 3, 4, 5)
    network = from_genotype(
        {"normal": cell, "normal_concat": every, "reduce": cell, "reduce_concat": every}
    )
    found = Counter(one.operations for one in space_of("darts").neighbours(network))
    assert found == {("swap_label",): 112, ("swap_input",): 24}


@both
@given(data=st.data())
def test_every_genotype_is_a_member_and_so_is_its_function(name, data):
    space = space_of(name)
    network = from_genotype(data.draw(genotypes(name)), name)
    for form in (network, network.canonical, network.functional):
        space.validate(form)

    child = space.mutate(network.functional, np.random.default_rng(0)).child
    assert child.functional_key != network.functional_key


def test_reasons():
    space = space_of("darts")
    cut = Architecture("darts", V2.layers, [edge for edge in V2.edges if edge[1] != 5])
    with pytest.raises(InvalidArchitectureError, match="normal"):
        space.validate(cut)

    nasnet = PUBLISHED["NASNet"].architecture
    with pytest.raises(InvalidArchitectureError, match="must be of space darts, got nasnet"):
        space.validate(nasnet)

    with pytest.raises(
        InvalidArchitectureError,
        match=r"a node reads two different states, got "
        r"0 twice",
    ):
        relabelled = [Layer(layer.op) for layer in V2.layers]
        edges = [(1, 4) if edge == (2, 4) else edge for edge in V2.edges]
        space.validate(Architecture("darts", relabelled, edges))

    with pytest.raises(InvalidArchitectureError, match="must be of space darts or nasnet"):
        space.slots(Architecture("nasbench201", [Layer("ip"), Layer("op")], []))


def test_a_network_without_a_genotype_is_no_member():
    """A space whose networks have no codec says so like every other reason."""
    space = spaces.get("darts")
    space.name = "nasbench201"
    network = Architecture("nasbench201", [Layer("ip"), Layer("op")], [])
    with pytest.raises(InvalidArchitectureError, match="must be of space darts or nasnet"):
        space.validate(network)

    assert not space.contains(network)


def test_without_zeros():
    space = spaces.get("darts", none=False)
    rng = np.random.default_rng(0)
    zero = PUBLISHED["BANANAS_2"].architecture
    assert space_of("darts").contains(zero)
    for one in (zero, zero.functional):
        with pytest.raises(InvalidArchitectureError, match="the space has no operation none"):
            space.validate(one)

    walked = space.sample(rng)
    for _ in range(40):
        walked = space.mutate(walked, rng).child
        space.validate(walked)

    assert all(".none" not in one.child.layers[3].op for one in space.neighbours(walked))
    assert {
        len(decision.choices)
        for decision in space.decisions().decisions
        if "operation" in decision.name
    } == {7}


def test_settings():
    with pytest.raises(SettingsError, match="none must be true or false, got 'no'"):
        spaces.get("darts", none="no")

    with pytest.raises(UnknownNameError, match="setting of space darts 'nodes'"):
        spaces.get("darts", nodes=5)

    assert spaces.get("darts").vertices == len(V2.layers)
