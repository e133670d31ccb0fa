"""The tree of runs: lines to the best one, sides, circles of parents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from archive.queries.tried.lines import RunLines

PARENTS = {1: 0, 2: 1, 3: 1, 4: 0, 5: 4, 7: 6}
SCORES = {0: 0.5, 1: 0.6, 2: 0.7, 3: 0.55, 4: None, 5: 0.65, 6: 0.1, 7: 0.2, 8: 0.9}


def test_a_line_leads_to_the_best_run_and_sides_are_sorted():
    tree = RunLines(PARENTS, SCORES)
    assert (tree.roots, tree.lone) == ([0, 6], 1)
    assert tree.line(0) == [0, 1, 2]
    assert (tree.sides(0), tree.line(4)) == ([4], [4, 5])
    assert (tree.sides(1), tree.sides(2)) == ([3], [])
    assert (tree.size(0), tree.best(4), tree.parent(5)) == (6, 5, 4)


def test_the_best_run_ends_its_line_though_others_came_from_it():
    tree = RunLines({1: 0, 2: 0}, {0: 0.9, 1: 0.8, 2: 0.85})
    assert tree.line(0) == [0]
    assert tree.sides(0) == [2, 1]


def test_a_circle_is_cut_at_its_first_run():
    tree = RunLines({5: 6, 6: 7, 7: 5, 8: 6}, dict.fromkeys((5, 6, 7, 8), 0.5))
    assert tree.roots == [5]
    assert tree.parent(5) is None
    assert (tree.parent(7), tree.parent(6), tree.parent(8)) == (5, 7, 6)


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.none() | st.floats(allow_infinity=False)), max_size=20
    )
)
def test_lines_and_sides_have_every_run_once(runs):
    parents = {number: parent for number, (parent, _) in enumerate(runs)}
    tree = RunLines(parents, {number: score for number, (_, score) in enumerate(runs)})
    seen = []
    heads = list(tree.roots)
    while heads:
        line = tree.line(heads.pop())
        seen += line
        for number in line:
            heads += [side for side in tree.sides(number) if side not in line]

    assert len(seen) == len(set(seen)) == len(runs) - tree.lone
    assert sum(map(tree.size, tree.roots)) == len(seen)
