"""Runs that a planned run repeats, or is near to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.queries.tried import matches
from archive.queries.tried.differences import changed_lines, count_lines, split_files
from archive.queries.tried.matches import PlannedRun, find_matches
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs
from archive.runs.told.telling import record_told
from archive.runs.told.told_run import ToldRun
from archive.store.studies.builds import Build
from tests.support.stores import cells

ROWS = [
    {"lr": 0.001, "width": 8, "act": "relu", "loss": 1.0},
    {"lr": 0.01, "width": 8, "act": "relu", "loss": 0.9},
    {"lr": 1.0, "width": 8, "act": "relu", "loss": 3.0},
    {"lr": 0.01, "width": 16, "act": "gelu", "loss": 0.8},
    {"width": 8, "act": "relu", "loss": 0.7},
]

DIFF = """\
--- a/train.py
+++ b/train.py
@@ -1,3 +1,3 @@
 import torch
-rate = 0.1
+rate = 0.3
@@ -9,2 +9,3 @@
 def step():
+    clip(1.0)
"""

AS_GIT = """\
diff --git a/train.py b/train.py
index 83db48f..bf269f4 100644
--- a/train.py\t2026-08-01
+++ b/train.py\t2026-08-02
@@ -2 +2 @@ import torch
-rate = 0.1
+rate = 0.3
@@ -9,0 +10 @@ def step():
+  clip(1.0)
"""


@pytest.mark.every_server
def test_the_nearest_values_come_first_and_equal_ones_are_named(archive):
    import_runs(archive, "s", ROWS, RunMapping("loss", "minimise", values=("lr", "width", "act")))
    planned = PlannedRun(values={"lr": 0.01, "width": 8, "act": "relu"})
    found, runs = find_matches(archive.connection, planned, study="s")
    assert [match.run[-1] for match in found] == ["1", "0", "2", "4", "3"]
    assert [run.run for run in runs] == [match.run for match in found]
    assert [match.same for match in found] == [["values"], [], [], [], []]
    # Logarithms of the rates; a value that one lacks counts 1, and so does another text.
    assert [match.distance for match in found] == pytest.approx([0, 1 / 3, 2 / 3, 1, 2])
    assert [str(change) for change in found[1].differs] == ["lr 0.001 -> 0.01"]
    assert find_matches(archive.connection, planned, study="other") == ([], [])
    assert len(find_matches(archive.connection, planned, most=2)[0]) == 2


@pytest.mark.every_server
def test_the_same_change_of_files_is_named_however_it_is_written(archive):
    first = record_told(archive, ToldRun("s", {"loss": 1.0}, diff=DIFF)).run
    other = DIFF.replace("+    clip(1.0)\n", "+    clip(2.0)\n")
    near = record_told(archive, ToldRun("s", {"loss": 2.0}, diff=other)).run
    record_told(archive, ToldRun("s", {"loss": 3.0}, diff=DIFF.replace("train.py", "model.py")))
    found, _ = find_matches(archive.connection, PlannedRun(diff=AS_GIT))
    assert [(match.run, match.same, match.shared) for match in found] == [
        (first.run, ["diff"], 1.0),
        (near.run, [], 0.5),
    ]
    code = first.values["code"]
    (same,) = find_matches(archive.connection, PlannedRun(code=code))[0]
    assert (same.run, same.same) == (first.run, ["code"])
    assert find_matches(archive.connection, PlannedRun(diff="no change"))[0] == []


@pytest.mark.every_server
def test_a_network_is_found_by_what_built_it_and_by_itself(archive):
    run = record_told(archive, ToldRun("s", {"loss": 1.0}, network=cells(1)[0])).run
    planned = PlannedRun(network=cells(1)[0].functional_key)
    assert [match.run for match in find_matches(archive.connection, planned)[0]] == [run.run]
    member = archive.architectures.get(archive.proposals.get(run.run).architecture_key)
    archive.builds.add([Build(member, cells(2)[1], "model", None, None, None)])
    other = PlannedRun(network=cells(2)[1].functional_key, values={})
    (match,), _ = find_matches(archive.connection, other)
    assert match.same == ["network", "values"]


def test_files_and_lines_of_a_difference():
    lines = {("train.py", "-rate = 0.1"): 1, ("train.py", "+rate = 0.3"): 1}
    assert changed_lines(DIFF) == {**lines, ("train.py", "+clip(1.0)"): 1}
    assert changed_lines(AS_GIT) == changed_lines(DIFF)
    new = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+a\n++++ b\n"
    assert {name: count_lines(text) for name, text in split_files(DIFF + new).items()} == {
        "train.py": (2, 1),
        "new.py": (2, 0),
    }
    assert split_files("prose without a change") == {}


values = st.dictionaries(
    st.sampled_from("abc"),
    st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=2), st.none()),
)


@given(st.lists(values, min_size=3, max_size=3))
def test_the_distance_of_values_is_a_metric(rows):
    ranges = matches._ranges(rows)
    first, second, third = rows

    def distance(one, two):
        return matches._distance(one, two, ranges)

    assert distance(first, first) == 0.0
    assert distance(first, second) == distance(second, first)
    assert distance(first, third) <= distance(first, second) + distance(second, third) + 1e-9
    assert 0.0 <= distance(first, second) <= 3.0
