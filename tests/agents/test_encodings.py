"""Decisions of a space: encoding and decoding of its networks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from archive import spaces
from archive.agents.encodings import ABSENT, decisions_of
from archive.architecture.codec import from_nasbench101
from archive.architecture.genotypes.codec import from_genotype
from archive.architecture.graph import Architecture, Layer
from archive.errors import UsageError
from archive.spaces.darts.published import PUBLISHED
from tests.support.histories import Chains
from tests.support.networks.genotypes import disguised

NAMES = ("choices", "cnn", "darts", "mlp", "nasbench101", "nasbench201", "nasnet")


@pytest.fixture(params=NAMES)
def decisions(request):
    return decisions_of(spaces.get(request.param), "tpe")


def drawn(decisions, rng):
    return decisions.complete([ABSENT] * len(decisions.decisions), rng)


def members(decisions, count, seed=0):
    rng = np.random.default_rng(seed)
    made = (decisions.decode(drawn(decisions, rng)) for _ in itertools.count())
    return list(itertools.islice((each for each in made if each is not None), count))


def test_what_is_decoded_is_encoded_as_the_same_network(decisions):
    for architecture in members(decisions, 20):
        made = decisions.encode(architecture)
        again = decisions.decode(made)
        assert again.functional_key == architecture.functional_key
        assert decisions.encode(again) == made


def test_only_needed_decisions_are_made(decisions):
    rng = np.random.default_rng(1)
    for _ in range(20):
        made = drawn(decisions, rng)
        for at, (decision, choice) in enumerate(zip(decisions.decisions, made, strict=True)):
            assert (choice != ABSENT) == decisions.needed(made[:at])
            assert choice < len(decision.choices)


def test_names_are_unique(decisions):
    names = [decision.name for decision in decisions.decisions]
    assert len(names) == len(set(names))


def test_relabelled_cells_have_one_encoding():
    decisions = decisions_of(spaces.get("nasbench101"), "tpe")
    labels = ["input", "conv3x3-bn-relu", "maxpool3x3", "output"]
    first = from_nasbench101([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], labels)
    second = Architecture("nasbench101", [first.layers[at] for at in (0, 2, 1, 3)], first.edges)
    assert first != second
    made = decisions.encode(first)
    assert made == decisions.encode(second)
    # Two of five vertices, hence two labels.
    assert sum(choice != ABSENT for choice in made[21:]) == 2


def test_isomorphic_genotypes_have_one_encoding():
    decisions = decisions_of(spaces.get("darts"), "tpe")
    # Eight choices of operations a cell, and the states of three nodes: the first node reads both
    # entries.
    assert [len(one.choices) for one in decisions.decisions] == 2 * [
        8,
        8,
        3,
        8,
        8,
        6,
        8,
        8,
        10,
        8,
        8,
    ]
    for name in ("DARTS_V1", "BANANAS_4"):
        genotype = PUBLISHED[name].genotype
        made = decisions.encode(from_genotype(genotype))
        assert {
            decisions.encode(from_genotype(disguised(genotype, seed))) for seed in range(5)
        } == {made}
        assert decisions.decode(made).key == from_genotype(genotype).key


def test_too_many_edges_are_no_cell():
    decisions = decisions_of(spaces.get("nasbench101"), "tpe")
    assert decisions.decode((*[1] * 21, *[0] * 5)) is None
    assert decisions.decode((*[0] * 21, *[ABSENT] * 5)) is None


def test_chain_of_vgg_is_exact():
    space = spaces.get("cnn")
    decisions = decisions_of(space, "tpe")
    vgg = space.initial_pool()[0]
    made = decisions.encode(vgg)
    assert decisions.decode(made) == vgg
    # 15 layers of images, of which 5 pools decide on no units; 3 fc layers.
    assert (decisions.decisions[0].choices[made[0]], made[1]) == ("15", 3)
    assert sum(choice != ABSENT for choice in made) == 2 + 15 + 10 + 3


def test_units_count_as_the_nearest_choice():
    space = spaces.get("mlp")
    decisions = decisions_of(space, "tpe")
    layers = [Layer("ip"), Layer("relu", 72), Layer("tanh", 1000), Layer("linear"), Layer("op")]
    decoded = decisions.decode(
        decisions.encode(Architecture("mlp", layers, itertools.pairwise(range(5))))
    )
    assert [layer.units for layer in decoded.layers[1:3]] == [64, 1024]


def test_branches_are_not_described():
    space = spaces.get("mlp")
    layers = [Layer("ip"), Layer("relu", 64), Layer("relu", 64), Layer("linear"), Layer("op")]
    branched = Architecture("mlp", layers, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
    assert space.contains(branched)
    assert decisions_of(space, "tpe").encode(branched) is None


def test_limits_of_the_space_bound_the_choices():
    decisions = decisions_of(spaces.get("mlp", max_layers=6, min_units=10, max_units=70), "tpe")
    assert [
        decision.name for decision in decisions.decisions if decision.name.startswith("operation")
    ] == [
        "operation 1",
        "operation 2",
        "operation 3",
    ]
    assert decisions.units == (16, 32, 64)
    assert decisions_of(spaces.get("mlp", min_units=20, max_units=30), "tpe").units == (20, 30)


def test_other_spaces_are_refused(monkeypatch):
    space = Chains()
    monkeypatch.setattr(Chains, "decisions", lambda self: None)
    with pytest.raises(
        UsageError,
        match="agent tpe needs networks made of decisions, which space mlp does not offer",
    ):
        decisions_of(space, "tpe")
