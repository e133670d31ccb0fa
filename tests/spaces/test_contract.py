"""Contract of a space, for all spaces; of a space that can be searched, for those."""

from __future__ import annotations

import json
import pickle
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, UnknownNameError
from archive.spaces.base import Mutation, Space
from tests.support import examples
from tests.support.strategies import generators, members, space_of

EVERY = spaces.names()
ALL = tuple(name for name in EVERY if space_of(name).searchable)


@pytest.fixture(params=ALL)
def space(request: pytest.FixtureRequest) -> Space:
    return space_of(request.param)


@pytest.mark.parametrize("name", EVERY)
def test_a_space_is_known_by_its_name(name: str) -> None:
    assert space_of(name).name == name
    assert name in repr(space_of(name))


@pytest.mark.parametrize("name", EVERY)
def test_the_configuration_makes_an_equal_space(name: str) -> None:
    space = space_of(name)
    config = json.loads(json.dumps(space.config))
    again = spaces.get(space.name, **config)
    assert again == space
    assert hash(again) == hash(space)
    assert pickle.loads(pickle.dumps(space)) == space
    assert space != "a space"


def test_the_initial_pool_is_ten_distinct_members(space: Space) -> None:
    pool = space.initial_pool()
    for member in pool:
        space.validate(member)

    assert len({member.functional_key for member in pool}) == len(pool) == 10
    assert spaces.get(space.name).initial_pool() == pool
    assert space.initial_pool(np.random.default_rng(3)) == space.initial_pool(
        np.random.default_rng(3)
    )
    pool.clear()
    assert len(space.initial_pool()) == 10


def test_one_seed_gives_one_result(space: Space) -> None:
    def walk(seed: int) -> list[Architecture]:
        rng = np.random.default_rng(seed)
        found = [space.sample(rng)]
        for _ in range(5):
            found.append(space.mutate(found[-1], rng).child)

        return found

    assert walk(3) == walk(3)
    assert walk(3) != walk(4)


def test_samples_are_members_and_vary(space: Space) -> None:
    rng = np.random.default_rng(1)
    samples = [space.sample(rng) for _ in range(60)]
    for sample in samples:
        space.validate(sample)

    assert len({sample.key for sample in samples}) > 30


@pytest.mark.parametrize("name", ALL)
@given(data=st.data(), rng=generators())
def test_every_mutation_of_a_member_is_a_member(
    name: str, data: st.DataObject, rng: np.random.Generator
) -> None:
    space = space_of(name)
    parent = data.draw(members(name))
    before = (parent.layers, parent.edges)
    mutation = space.mutate(parent, rng)
    space.validate(mutation.child)
    assert mutation.child.space == name
    assert mutation.child.functional_key != parent.functional_key
    assert mutation.operations
    assert all(isinstance(operation, str) for operation in mutation.operations)
    assert (parent.layers, parent.edges) == before


@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
@examples(0.5)
def test_neighbours_are_distinct_other_members(name: str, data: st.DataObject) -> None:
    space = space_of(name)
    parent = data.draw(members(name))
    found = list(islice(space.neighbours(parent), 60))
    for neighbour in found:
        assert isinstance(neighbour, Mutation)
        assert len(neighbour.operations) == 1
        space.validate(neighbour.child)

    keys = [neighbour.child.key for neighbour in found]
    assert len(set(keys)) == len(keys)
    assert parent.key not in keys


def test_neighbours_are_made_as_they_are_asked_for(space: Space) -> None:
    neighbours = space.neighbours(space.initial_pool()[-1])
    assert iter(neighbours) is neighbours
    assert next(neighbours) != next(neighbours)


@pytest.mark.parametrize("name", EVERY)
def test_a_network_of_another_space_is_no_member(name: str) -> None:
    space = space_of(name)
    other = next(other for other in ALL if other != name)
    stranger = space_of(other).initial_pool()[0]
    assert not space.contains(stranger)
    with pytest.raises(InvalidArchitectureError, match=f"of space {space.name}, got {other}"):
        space.validate(stranger)


def test_a_mutation_cannot_be_changed(space: Space) -> None:
    mutation = space.mutate(space.initial_pool()[0], np.random.default_rng(0))
    with pytest.raises(AttributeError):
        mutation.operations = ()  # type: ignore[misc]


def test_unknown_settings_are_named() -> None:
    with pytest.raises(
        UnknownNameError, match="setting of space cnn 'max_layer': did you mean max_layers"
    ):
        spaces.get("cnn", max_layer=3)

    for name in ("nasbench101", "nasbench201"):
        with pytest.raises(
            UnknownNameError,
            match=r"unknown setting of space "
            r"nasbench.*'max_layers': it has none",
        ):
            spaces.get(name, max_layers=3)


def test_cells_of_the_tables_have_their_limits() -> None:
    op = Layer("maxpool3x3")
    space = spaces.get("nasbench101")
    long = Architecture(
        "nasbench101", [Layer("ip"), *[op] * 6, Layer("op")], [(u, u + 1) for u in range(7)]
    )
    with pytest.raises(InvalidArchitectureError, match="at most 7 vertices, got 8"):
        space.validate(long)

    pairs = [(u, v) for u in range(5) for v in range(u + 1, 5)]
    with pytest.raises(InvalidArchitectureError, match="at most 9 edges, got 10"):
        space.validate(Architecture("nasbench101", [Layer("ip"), *[op] * 3, Layer("op")], pairs))

    with pytest.raises(InvalidArchitectureError, match="path from input to output"):
        space.validate(
            Architecture("nasbench101", [Layer("ip"), op, Layer("op")], [(0, 1), (0, 2)])
        )

    with pytest.raises(InvalidArchitectureError, match="no NAS-Bench-201 string"):
        spaces.get("nasbench201").validate(
            Architecture("nasbench201", [Layer("ip"), Layer("op")], [(0, 1)])
        )
