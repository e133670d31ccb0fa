"""NSGA-II: the order of the population, and parents that are its best."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents
from archive.agents.base import History
from archive.agents.baselines.nsga2 import crowding_distances, order_by_crowding
from archive.agents.objectives.goals import Goals
from archive.errors import UsageError
from archive.store.records import Objective
from tests.support.histories import grown, units


def test_crowding_is_the_mean_side_of_the_box_between_the_neighbours():
    front = np.array([[0.0, 10.0], [1.0, 8.0], [2.0, 2.0], [4.0, 0.0]])
    assert crowding_distances(front) == pytest.approx(
        [np.inf, (2 / 4 + 8 / 10) / 2, (3 / 4 + 8 / 10) / 2, np.inf]
    )


def test_the_order_is_that_of_ranks_then_of_crowding():
    scores = np.array([[0.0, 0.0], [1.0, 8.0], [2.0, 2.0], [4.0, 0.0], [0.0, 10.0], [1.0, 1.0]])
    # The ends of the first front in the order of the rows, then the less crowded; then the second
    # and third front.
    assert order_by_crowding(scores) == [3, 4, 2, 1, 5, 0]


def test_parents_are_of_the_population(chains):
    history = grown(chains, 12)
    goals = Goals((Objective("a"), Objective("units", "minimise")), {"units": units})
    history = History(history.observations, goals=goals)
    agent = agents.get("nsga2", chains, population=1)
    parents = {one.parent for one in agent.propose(history, 5, np.random.default_rng(0))}
    best = max(history.observations, key=lambda one: one.score)
    smallest = min(history.observations, key=lambda one: units([one.architecture])[0])
    assert parents - {None} <= {best.architecture, smallest.architecture} and len(parents) > 0


def test_settings_are_checked(chains):
    with pytest.raises(UsageError, match="population must be >= 1, got 0"):
        agents.get("nsga2", chains, population=0)
