"""The contract of the agents that search every space of parameters."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents import registry
from archive.agents.base import History, Pending
from archive.errors import UsageError
from tests.agents.configurations.test_search import SPACES, keys, observed
from tests.support import installed_agents

AGENTS = {
    "portfolio": {},
    "random-forest": {"trees": 5},
    "arc": {"samples": 2, "burn_in": 2},
    "tpe": {},
    "gp-optuna": {"startup": 12},
    "smac": {"challengers": 20},
    "evolution": {},
    "random": {},
}


KINDS = sorted({*AGENTS} & {*installed_agents()})


# Its parameters are numbers and choices; `test_search` has the other spaces.
@pytest.fixture(
    params=[
        pytest.param(make, id=name, marks=() if name == "conditional" else pytest.mark.whole)
        for name, make in SPACES.items()
    ]
)
def searched(request):
    return spaces.get("parameters", parameters=request.param())


@pytest.mark.parametrize("kind", KINDS)
def test_suggestions_are_new_members_and_depend_on_the_seed_alone(kind, searched):
    history = observed(searched, 13)
    first, *rest = history.observations
    history = History(tuple(rest), (Pending(first.architecture),))
    suggestions = []
    for _ in range(2):
        agent = agents.get(kind, searched, **AGENTS[kind])
        suggestions.append(agent.propose(history, 2, np.random.default_rng(3)))

    one, other = suggestions
    assert keys(one) == keys(other)
    assert len(set(keys(one))) == 2
    assert not set(keys(one)) & set(history.known)
    for suggestion in one:
        searched.validate(suggestion.architecture)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_history_has_suggestions(kind, searched):
    agent = agents.get(kind, searched, **AGENTS[kind])
    suggestions = agent.propose(History(), 12, np.random.default_rng(0))
    assert len(set(keys(suggestions))) == 12


def test_agents_of_decisions_refuse_numbers_and_name_others():
    searched = spaces.get("parameters", parameters=SPACES["numbers"]())
    with pytest.raises(UsageError, match="portfolio, random-forest, arc"):
        agents.get("treebo", searched)


GRAPHS = [
    "bananas",
    "gp",
    "gp-adjacency",
    "gp-gromov-wasserstein",
    "gp-hamming",
    "gp-path",
    "gp-wasserstein",
    "gp-wl",
    "morphism",
    "nasbot",
    "tw",
    "tw-kdpp",
]
"""Agents that compare networks as graphs."""

DECISIONS = ["block-additive", "reinforce", "treebo"]
"""Agents of decisions with few choices."""

WALKERS = [
    "bfs",
    "hill-climbing",
    "local-search",
    "nsga2",
    "rand",
    "regularized-evolution",
    "source-best",
]
"""Agents that need no model of the values."""


def test_the_table_has_every_agent():
    table = [*AGENTS, *GRAPHS, *DECISIONS, *WALKERS]
    assert sorted(table) == sorted(registry.registry.built_in)


@pytest.mark.parametrize("kind", GRAPHS)
def test_agents_that_compare_graphs_are_refused_with_the_others(kind, searched):
    with pytest.raises(UsageError, match="does not know the values of parameters") as refused:
        agents.get(kind, searched)

    message = str(refused.value)
    assert message.startswith(f"the agent {kind} compares networks as graphs")
    assert "\n" not in message
    named = message.rpartition("choose one of ")[2].split(", ")
    assert sorted(named) == sorted([*AGENTS, *DECISIONS, *WALKERS])


@pytest.mark.parametrize("kind", [*WALKERS, *DECISIONS])
def test_agents_without_a_model_of_values_suggest_new_members(kind):
    searched = spaces.get("parameters", parameters=SPACES["grid"]())
    history = observed(searched, 8)
    agent = agents.get(kind, searched)
    suggestions = agent.propose(history, 2, np.random.default_rng(3))
    assert len(set(keys(suggestions)) - set(history.known)) == 2
    for suggestion in suggestions:
        searched.validate(suggestion.architecture)


def test_the_default_agent_knows_values():
    assert registry.default_agent("parameters") in AGENTS
    assert registry.default_agent("mlp") == "nasbot"
