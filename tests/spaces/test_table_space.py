"""Spaces over tables, and the spaces that can be listed."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from archive import spaces
from archive.architecture import codec
from archive.errors import InvalidArchitectureError, SettingsError
from archive.spaces.tables.space import TableSpace

SPACE = spaces.get("nasbench201")


@pytest.fixture
def table(tmp_path):
    """A table of every thirtieth cell."""
    path = tmp_path / "some.csv"
    lines = [f"{codec.to_nasbench201(cell)},{at}" for at, cell in enumerate(SPACE.members()[::30])]
    path.write_text("\n".join(["arch_str,accuracy", *lines]))
    return path


@pytest.fixture
def space(table) -> TableSpace:
    return spaces.get("nasbench201", table=str(table))


def test_the_cells_of_nasbench201_are_listed_once():
    members = SPACE.members()
    assert len(members) == len({cell.functional_key for cell in members}) == 8_765
    assert members is SPACE.members()
    assert all(SPACE.contains(cell) for cell in members[::100])
    rng = np.random.default_rng(0)
    keys = {cell.functional_key for cell in members}
    assert all(SPACE.sample(rng).functional_key in keys for _ in range(200))


def test_what_cannot_be_listed_says_so():
    assert spaces.get("cnn").members() is None


def test_a_space_over_a_table_is_remade_from_what_a_study_records(space, table, monkeypatch):
    assert space.name == "nasbench201"
    config = json.loads(json.dumps(space.config))
    again = spaces.get(space.name, **config)
    assert again == space != SPACE
    assert hash(again) == hash(space)
    monkeypatch.chdir(table.parent)
    assert spaces.get("nasbench201", table=table.name) == space


def test_every_way_to_move_stays_inside(space):
    members = {cell.functional_key: cell for cell in space.members()}
    assert len(members) == 293
    rng = np.random.default_rng(0)
    pool = space.initial_pool()
    assert len({cell.functional_key for cell in pool}) == 10
    assert pool == space.initial_pool()
    drawn = {space.sample(rng).functional_key for _ in range(3000)}
    assert drawn == members.keys()
    for cell in [*pool, space.members()[-1]]:
        mutation = space.mutate(cell, rng)
        assert mutation.child.functional_key in members
        assert mutation.operations
        assert space.contains(mutation.child)
        near = [m.child.functional_key for m in space.neighbours(cell)]
        whole = [m.child.functional_key for m in SPACE.neighbours(cell)]
        assert near == [key for key in whole if key in members]


def test_a_member_without_neighbours_is_left_by_a_draw(tmp_path):
    path = tmp_path / "far.csv"
    near = "nor_conv_3x3"
    far = "skip_connect"
    cells = [f"|{op}~0|+|{op}~0|{op}~1|+|{op}~0|{op}~1|{op}~2|" for op in (near, far)]
    path.write_text("\n".join(["arch_str", *cells]))
    space = spaces.get("nasbench201", table=str(path))
    one, other = space.members()
    for cell, expected in itertools.product((one, other), repeat=2):
        if cell is not expected:
            assert space.mutate(cell, np.random.default_rng(0)) == spaces.Mutation(
                expected, ("draw",)
            )

    path.write_text("\n".join(["arch_str", cells[0]]))
    alone = spaces.get("nasbench201", table=str(path))
    assert alone.mutate(one, np.random.default_rng(0)) == spaces.Mutation(one, ())


def test_what_a_table_does_not_hold_is_no_member(space):
    with pytest.raises(InvalidArchitectureError, match="does not hold the architecture"):
        space.validate(SPACE.members()[1])


def test_tables_that_do_not_fit(table, tmp_path):
    with pytest.raises(SettingsError, match="holds networks of nasbench201, not of nasbench101"):
        spaces.get("nasbench101", table=str(table))

    with pytest.raises(SettingsError, match="must be the name or path of a table, got 3"):
        spaces.get("nasbench201", table=3)

    table.write_text("arch_str,accuracy\n")
    with pytest.raises(SettingsError, match="has no rows"):
        spaces.get("nasbench201", table=str(table))


def test_decisions_make_members_only(space):
    decisions = space.decisions()
    whole = spaces.get(space.name).decisions()
    assert decisions.decisions == whole.decisions
    rng = np.random.default_rng(0)
    inside = decisions.encode(space.members()[3])
    assert decisions.decode(inside).functional_key == space.members()[3].functional_key
    outside = next(
        cell
        for cell in iter(lambda: spaces.get(space.name).sample(rng), None)
        if not space.contains(cell)
    )
    assert decisions.encode(outside) is None
    assert decisions.decode(whole.encode(outside)) is None
    assert whole.decode(whole.encode(outside)).functional_key == outside.functional_key
