"""The integer program gives the solutions of brute force, in their order."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archive.agents.additive.program import ChoiceProgram, Limit


@st.composite
def problems(draw):
    """Values and weights of up to three groups of up to four choices, and a bound; whole numbers,
    so that sums have no rounding."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    number = st.integers(-20, 20)
    values = [draw(st.lists(number, min_size=size, max_size=size)) for size in sizes]
    weights = [draw(st.lists(number, min_size=size, max_size=size)) for size in sizes]
    return values, weights, draw(st.integers(-30, 30))


@given(problems())
def test_all_solutions_in_order(problem):
    values, weights, bound = problem
    allowed = []
    for choices in itertools.product(*(range(len(group)) for group in values)):
        if sum(weights[group][choice] for group, choice in enumerate(choices)) <= bound:
            value = sum(values[group][choice] for group, choice in enumerate(choices))
            allowed.append((value, choices))

    program = ChoiceProgram(
        [np.array(group, float) for group in values],
        [Limit([np.array(group, float) for group in weights], bound)],
    )
    found = []
    for _ in range(min(len(allowed), 6)):
        solution = program.solve()
        found.append((sum(values[group][c] for group, c in enumerate(solution)), solution))

    assert {*found} <= {*allowed}
    assert len({*found}) == len(found)
    best = sorted((value for value, _ in allowed), reverse=True)[: len(found)]
    assert [value for value, _ in found] == best
    if len(found) == len(allowed):
        assert program.solve() is None


def test_choices_that_cannot_be_taken():
    values = [np.array([5.0, 1.0, 0.0])]
    program = ChoiceProgram(values, [Limit([np.array([np.inf, 1.0, 1.0])], 1.0)])
    assert [program.solve(), program.solve(), program.solve()] == [(1,), (2,), None]


def test_a_lower_bound_between_solutions():
    values = [np.array([3.0, 2.0, 1.0])]
    program = ChoiceProgram(values, [Limit([np.array([30.0, 20.0, 10.0])], 40.0)])
    assert program.solve() == (0,)
    program.limits[0].bound = 15.0
    assert program.solve() == (2,)
