"""Suggestions for several objectives: the greatest expected hypervolume improvement, and batches of
different ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import agents
from archive.agents.acquisition.ehvi import LogEhvi, free_boxes
from archive.agents.base import History, Pending
from archive.agents.objectives import selection
from archive.agents.objectives.front import reference_point
from archive.agents.objectives.goals import Goals, points
from archive.store.records import Objective
from tests.support.histories import observed, units

KNOWN = Goals((Objective("accuracy"), Objective("units", "minimise")), {"units": units})


@pytest.fixture
def agent(chains, monkeypatch):
    # Every network of the space is a candidate.
    monkeypatch.setattr(type(chains), "members", lambda self: self.every())
    return agents.get("gp", chains, n_initial=3, candidates="members", kernel="topology")


def scored(networks):
    """Larger networks are better, with diminishing returns."""
    return [np.log(value) for value in units(networks)]


def test_the_suggestion_is_the_best_of_all_candidates(agent, chains):
    every = chains.every()
    history = History(observed(every[:6], scored(every[:6])), goals=KNOWN)
    (suggestion,) = agent.propose(history, 1, np.random.default_rng(0))
    _, scores = points(history)
    models = selection.ObjectiveModels.fit(
        agent.method, agent.method.surrogate, history, KNOWN, np.random.default_rng(0)
    )
    posterior = models.fitted[0].posterior([each.functional for each in every[6:]]).in_scores()
    gains = LogEhvi(*free_boxes(scores, reference_point(scores)))([posterior, -units(every[6:])])
    assert suggestion.architecture == every[6 + int(np.argmax(gains))]
    assert suggestion.acquisition == pytest.approx(np.exp(gains.max()))


def test_a_batch_and_pending_proposals_take_different_parts_of_the_front(agent, chains):
    every = chains.every()
    history = History(observed(every[:6], scored(every[:6])), goals=KNOWN)
    rng = np.random.default_rng
    first, second = agent.propose(history, 2, rng(0))
    assert [first, second] == agent.propose(history, 2, rng(0))
    assert agent.propose(history, 1, rng(0))[0].architecture == first.architecture
    pending = replace(history, pending=(Pending(first.architecture),))
    assert agent.propose(pending, 1, rng(0))[0].architecture == second.architecture
    # A pending network counts at its expected score: what is left to gain beside it is less.
    assert second.acquisition < first.acquisition


def test_recorded_values_of_a_known_cost_are_not_used(agent, chains):
    every = chains.every()
    history = History(observed(every[:6], scored(every[:6])), goals=KNOWN)
    wrong = tuple(replace(seen, further=(1e9,)) for seen in history.observations)
    suggestions = [
        agent.propose(each, 2, np.random.default_rng(0))
        for each in (history, replace(history, observations=wrong))
    ]
    assert suggestions[0] == suggestions[1]


def test_an_objective_that_is_not_known_is_learnt_from_the_results(agent, chains):
    every = chains.every()
    goals = Goals(KNOWN.objectives)
    cost = -units(every)
    seen = tuple(
        replace(one, further=(cost[at],))
        for at, one in enumerate(observed(every[:9], scored(every[:9])))
    )
    history = History(
        (*seen, replace(observed(every[9:10], [9.0])[0], id="x", further=(np.nan,))), goals=goals
    )
    models = selection.ObjectiveModels.fit(
        agent.method, agent.method.surrogate, history, goals, np.random.default_rng(0)
    )
    expected = models.expect(every[:9])[:, 1]
    assert np.corrcoef(expected, cost[:9])[0, 1] > 0.8
    # The result without this objective is no point of the front, and informs the model of the other
    # one.
    assert len(points(history)[0]) == 9
