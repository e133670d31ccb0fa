"""Trees of runs: who came from whom, the way to the best, and what is left out."""

import pytest

from archive.errors import UnknownNameError
from archive.queries.tried.tree import read_tree
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs
from archive.store.records import Result
from tests.support.stores import Suggestion, answer, cells, study

MAPPING = RunMapping("loss", "minimise", identity="id", parent="up", values=("width",))


def fill(archive, parents, losses=None):
    """Store a run for each parent, which is a number or None."""
    rows = []
    for number, parent in enumerate(parents):
        loss = number if losses is None else losses[number]
        rows.append({"id": number, "up": parent, "width": number, "loss": loss})

    import_runs(archive, "s", rows, MAPPING)


def edges(tree):
    """Return the number of each run with the number above it."""
    numbers = {run.run: int(run.run[-5:]) for run in tree.runs}
    return {numbers[run.run]: numbers.get(run.above) for run in tree.runs}


@pytest.mark.every_server
def test_runs_stand_below_what_they_came_from(archive):
    fill(archive, [None, 0, 0, 2, None], [3.0, 3.5, 2.0, 1.0, None])
    tree = read_tree(archive.connection, "s")
    assert edges(tree) == {0: None, 1: 0, 2: 0, 3: 2, 4: None}
    assert (tree.total, tree.trees, tree.hidden_trees) == (5, 2, 0)
    assert (tree.best, tree.best_path) == ("s#00003", ["s#00000", "s#00002", "s#00003"])
    runs = {run.run: run for run in tree.runs}
    assert [runs[f"s#{number:05d}"].gain for number in range(5)] == [None, -0.5, 1.0, 1.0, None]
    assert [run.run for run in tree.runs if run.is_on_best_path] == tree.best_path
    assert runs["s#00002"].operations == ["width: 0 -> 2"]
    assert runs["s#00004"].state == "failed"
    assert runs["s#00000"].children == 2


def test_the_best_runs_are_shown_with_all_that_they_came_from(archive):
    # 0 -> 1 -> 2 (best); 0 -> 3 -> 4; 5 alone
    fill(archive, [None, 0, 1, 0, 3, None], [9, 8, 1, 3, 4, 5])
    tree = read_tree(archive.connection, "s", most=4)
    assert edges(tree) == {0: None, 1: 0, 2: 1, 3: 0}
    runs = {int(run.run[-5:]): run for run in tree.runs}
    assert (runs[3].hidden, runs[3].hidden_best) == (1, 4)
    assert (runs[0].hidden, tree.hidden_trees) == (0, 1)
    assert sum(run.hidden for run in tree.runs) + len(tree.runs) + 1 == tree.total


def test_the_middle_of_a_long_lineage_is_left_out(archive):
    fill(archive, [None, 0, 1, 2, 3, 4, 5, 3], [9, 8, 7, 6, 5, 4, 3, 20])
    tree = read_tree(archive.connection, "s", most=4)
    assert edges(tree) == {0: None, 1: 0, 5: 1, 6: 5}
    runs = {int(run.run[-5:]): run for run in tree.runs}
    assert (runs[5].skipped, runs[5].parent, runs[1].hidden) == (3, "s#00004", 1)


def test_the_tree_of_a_run_is_what_it_came_from_and_what_came_from_it(archive):
    fill(archive, [None, 0, 1, 1, 0, 3])
    assert edges(read_tree(archive.connection, "s", 3)) == {0: None, 1: 0, 3: 1, 5: 3}
    with pytest.raises(UnknownNameError, match="unknown run 's#00009'"):
        read_tree(archive.connection, "s", 9)


def test_a_circle_of_parents_has_a_first_run(archive):
    fill(archive, [2, 0, 1, 3, 2])
    tree = read_tree(archive.connection, "s")
    assert edges(tree) == {0: None, 1: 0, 2: 1, 3: None, 4: 2}


@pytest.mark.every_server
def test_the_parent_in_a_search_is_the_proposal_of_the_network_before(archive):
    first, second, third = cells(3)
    archive.studies.create(study("s", objective="accuracy"))
    agent = archive.proposals.register_agent("evolution", {}, "1")
    answered = [
        (Suggestion(first), Result(0.5)),
        (Suggestion(second, parent=first, operations=("swap_label",)), Result(0.7)),
        (Suggestion(third, parent=second), Result(0.6)),
    ]
    for suggestion, result in answered:
        answer(archive, "s", agent, [(suggestion, result)])

    tree = read_tree(archive.connection, "s")
    assert edges(tree) == {0: None, 1: 0, 2: 1}
    assert [run.gain for run in tree.runs if run.run == "s#00001"] == [pytest.approx(0.2)]
    assert [run.operations for run in tree.runs if run.run == "s#00001"] == [["swap_label"]]


def test_a_study_without_runs_has_no_tree(archive):
    archive.studies.create(study("s"))
    tree = read_tree(archive.connection, "s")
    assert (tree.runs, tree.best, tree.total) == ([], None, 0)
