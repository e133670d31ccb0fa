"""Runs on record by words, values and kinds, beside their parents."""

import pytest

from archive.architecture.parameter_operations import graph_of_values
from archive.errors import UnknownNameError
from archive.parameters.expressions import ExpressionError
from archive.parameters.parser import parse
from archive.queries.runs import search_runs
from archive.queries.tried.filters import RunFilter
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs
from archive.store.records import State
from archive.store.studies.builds import Build
from tests.support.stores import cells

ROWS = [
    {"id": "a", "up": None, "why": "first", "lr": 0.1, "act": "relu", "loss": 1.0, "day": 1},
    {"id": "b", "up": None, "why": "again", "lr": 0.1, "act": "relu", "loss": 1.2, "day": 2},
    {"id": "c", "up": "a", "why": "faster", "lr": 0.3, "act": "relu", "loss": 0.5, "day": 3},
    {"id": "d", "up": "b", "why": "faster", "lr": 0.3, "act": "relu", "loss": 0.4, "day": 4},
    {"id": "e", "up": "c", "why": "wild", "lr": "auto", "act": "gelu", "loss": None, "day": 5},
    {"id": "f", "up": "a", "why": "repeat", "lr": 0.1, "act": "relu", "loss": 0.9, "day": 6},
]
MAPPING = RunMapping(
    "loss",
    "minimise",
    identity="id",
    parent="up",
    motivation="why",
    started="day",
    values=("lr", "act"),
)


@pytest.fixture
def filled(archive):
    import_runs(archive, "s", ROWS, MAPPING)
    return archive


def names(archive, **sought):
    """Return the ids in the table of the runs that are found, oldest first."""
    found = search_runs(archive.connection, RunFilter(**sought))
    rows = [ROWS[int(run.run.rpartition("#")[2])]["id"] for run in found.runs]
    assert found.total == len(rows)
    return "".join(sorted(rows))


@pytest.mark.every_server
def test_a_run_stands_beside_its_parent_with_what_it_changed_and_brought(filled):
    runs = search_runs(filled.connection, RunFilter()).runs
    repeat, wild, faster, *_ = runs
    assert (faster.repeats, faster.parent_repeats) == (2, 3)
    assert faster.gain == pytest.approx(31 / 30 - 0.45)
    assert faster.gain_low < faster.gain < faster.gain_high
    assert [str(change) for change in faster.changes] == ["lr 0.1 -> 0.3"]
    assert (wild.gain, wild.parent_value, wild.repeats) == (None, 0.5, 0)
    assert [str(change) for change in wild.changes] == ["lr 0.3 -> auto", "act relu -> gelu"]
    assert (repeat.gain, repeat.gain_low, repeat.changes) == (None, None, [])


@pytest.mark.every_server
@pytest.mark.parametrize(
    ("sought", "expected"),
    [
        ({}, "abcdef"),
        ({"words": ["FASTER"]}, "cd"),
        ({"state": State.FAILED}, "e"),
        ({"program": "s"}, "abcdef"),
        ({"program": "t"}, ""),
        ({"study": "t"}, ""),
        ({"since": 3000, "until": 5000}, "cd"),
        ({"where": parse("lr < 0.2 and act == 'relu'")}, "abf"),
        ({"where": parse("loss <= 0.5 or act == 'gelu'")}, "cde"),
        ({"where": parse("value > 1"), "words": ["first"]}, ""),
        ({"where": parse("not (lr > 0.2)")}, "abf"),
    ],
)
def test_runs_are_found_by_words_values_and_kinds(filled, sought, expected):
    assert names(filled, **sought) == expected


def test_runs_are_counted_by_what_they_are(filled):
    found = search_runs(filled.connection, RunFilter(), most=1)
    assert (len(found.runs), found.total) == (1, 6)
    assert found.facets.states == {"complete": 5, "failed": 1}
    assert (found.facets.studies, found.facets.programs) == ({"s": 6}, {"s": 6})


def test_a_condition_that_no_run_can_meet_is_a_mistake(filled):
    with pytest.raises(UnknownNameError, match="unknown value 'l_r'"):
        names(filled, where=parse("l_r > 1"))

    with pytest.raises(ExpressionError, match="act"):
        names(filled, where=parse("act < 3"))


@pytest.mark.every_server
def test_networks_of_a_run_and_of_its_parent_are_compared(filled):
    first, second = cells(3)[1:]
    builds = []
    for network, values in ((first, ROWS[0]), (second, ROWS[2])):
        given = {name: values[name] for name in ("lr", "act")}
        graph = graph_of_values(given, name="program")
        builds.append(Build(graph, network, "m", None, None, None))

    filled.builds.add(builds)
    sought = RunFilter(network=second.functional_key)
    found = search_runs(filled.connection, sought).runs
    assert {run.motivation for run in found} == {"faster"}
    assert {run.network for run in found} == {second.key}
    assert all(len(run.network_changes) > 0 for run in found)
