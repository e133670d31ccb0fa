"""Several objectives over parameters: combined scores, and searches that find compromises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import agents, space, spaces
from archive.agents.base import History, Observation
from archive.agents.configurations.scalarisation import RHO, combine, scalarise
from archive.agents.constraints.slacks import StudyConstraints
from archive.agents.objectives.goals import Goals
from archive.constraints import Constraint
from archive.store.records import Objective

GOALS = Goals((Objective("near", "maximise"), Objective("far", "maximise")))

rows = st.lists(st.tuples(*[st.floats(-100, 100)] * 3), min_size=1, max_size=6)


@given(rows, st.tuples(*[st.floats(0.0, 1.0)] * 3))
def test_a_combined_score_is_the_papers(scores, weights):
    found = combine(np.array(scores), np.array(weights))
    for row, score in zip(scores, found, strict=True):
        costs = []
        for column, value in enumerate(row):
            values = [other[column] for other in scores]
            spread = max(values) - min(values)
            costs.append(weights[column] * (max(values) - value) / spread if spread else 0.0)

        assert score == pytest.approx(-(max(costs) + RHO * sum(costs)))


def observe(searched, network, number):
    values = searched.named(network)
    near = -((values["x"] - 0.2) ** 2) - values["loss"]
    far = -((values["x"] - 0.8) ** 2) - values["loss"]
    return Observation(network, near, str(number), further=(far,))


@pytest.mark.parametrize(
    ("kind", "settings"), [("portfolio", {}), ("random-forest", {"trees": 20})]
)
def test_a_search_for_two_objectives_finds_compromises(kind, settings):
    parameters = space.Space(x=space.real(0, 1), loss=space.real(0, 1))
    searched = spaces.get("parameters", parameters=parameters.json()["parameters"])
    rng = np.random.default_rng(5)
    observations = []
    for number in range(10):
        observations.append(observe(searched, searched.sample(rng), number))

    agent = agents.get(kind, searched, **settings)
    proposed = []
    for number in range(10, 22):
        history = History(tuple(observations), goals=GOALS)
        (suggestion,) = agent.propose(history, 1, rng)
        observations.append(observe(searched, suggestion.architecture, number))
        proposed.append(searched.named(suggestion.architecture))

    last = proposed[4:]
    # Random proposals would have a fifth of them below .2.
    assert sum(values["loss"] < 0.2 for values in last) >= len(last) / 2
    compromises = [values["x"] for values in proposed if 0.1 <= values["x"] <= 0.9]
    assert len(compromises) >= 8
    assert max(compromises) - min(compromises) > 0.3


@pytest.mark.parametrize("goals", [None, GOALS], ids=["one objective", "two objectives"])
@pytest.mark.parametrize(
    ("kind", "settings"), [("portfolio", {}), ("random-forest", {"trees": 20})]
)
def test_results_that_violate_a_measured_constraint_are_left(kind, settings, goals):
    parameters = space.Space(x=space.real(0, 1), loss=space.real(0, 1))
    searched = spaces.get("parameters", parameters=parameters.json()["parameters"])
    limits = StudyConstraints((Constraint("size", "<=", 0.5),))
    rng = np.random.default_rng(6)
    observations = []
    for number in range(12):
        observations.append(observe_size(searched, searched.sample(rng), number))

    agent = agents.get(kind, searched, **settings)
    sizes = []
    for number in range(12, 22):
        history = History(tuple(observations), goals=goals, constraints=limits)
        (suggestion,) = agent.propose(history, 1, rng)
        observations.append(observe_size(searched, suggestion.architecture, number))
        sizes.append(observations[-1].measured[0])

    # The best scores are at x = 1, where no result meets the constraint.
    assert sum(size <= 0.5 for size in sizes) >= 7


def observe_size(searched, network, number):
    x = searched.named(network)["x"]
    return Observation(network, x, str(number), further=(x,), measured=(x,))


def test_observations_without_an_objective_have_no_score_and_stay_known():
    searched = spaces.get(
        "parameters", parameters=space.Space(x=space.real(0, 1)).json()["parameters"]
    )
    rng = np.random.default_rng(0)
    whole, other = [searched.sample(rng) for _ in range(2)]
    history = History(
        (
            Observation(whole, 1.0, "0", further=(2.0,)),
            Observation(other, 1.0, "1", further=(math.nan,)),
        ),
        goals=GOALS,
    )
    single = scalarise(history, rng)
    assert single.goals is None
    assert [observation.id for observation in single.usable] == ["0"]
    assert single.known.keys() == history.known.keys()
