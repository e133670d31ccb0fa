"""The benchmark of proposals: titles, goals, and agents that are kept between proposals."""

from __future__ import annotations

import pytest

from archive import agents
from tests.benchmarks.agents import proposals
from tests.benchmarks.agents.proposals import Case


@pytest.mark.whole
def test_figures(few_candidates):
    cases = [
        Case("nasbot", "cnn", 11, seconds=3.0, resumed=True),
        Case("tw", "nasbench101", 12, seconds=0.2),
        Case("bananas", "mlp", 12, batch=3),
    ]
    figures = list(proposals.measure(cases, repeats=1))
    assert [figure.name for figure in figures] == [
        "nasbot: one proposal on cnn, 11 observations, just resumed",
        "tw: one proposal on nasbench101, 12 observations",
        "bananas: 3 proposals on mlp, 12 observations",
    ]
    assert [figure.goal for figure in figures] == ["<= 3", "<= 0.2", None]
    assert all(figure.value > 0 and figure.unit == "s" for figure in figures)


def test_the_cases_name_agents_and_differ():
    names = [case.name for case in proposals.CASES]
    assert len(set(names)) == len(names)
    assert {case.kind for case in proposals.CASES} <= set(agents.names())


def test_an_agent_that_is_not_resumed_keeps_its_memory(monkeypatch):
    made = []
    get = agents.get
    monkeypatch.setattr(agents, "get", lambda kind, space: made.append(kind) or get(kind, space))
    list(
        proposals.measure(
            [Case("random", "mlp", 12), Case("rand", "mlp", 12, resumed=True)], repeats=3
        )
    )
    assert made == ["random", *["rand"] * 4]
