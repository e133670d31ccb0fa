"""Simulated searches of a table with several rungs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from archive.agents.base import History
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.likelihood import FixedHyperparameters
from archive.kernels.base import Components
from archive.kernels.covariance.base import exponential
from archive.rungs import Rungs
from tests.benchmarks.rungs.dyhpo import dyhpo, improvements
from tests.benchmarks.rungs.simulation import (
    EpochsSpentError,
    RungSearch,
    RungTrial,
    by_regression,
    proposals,
)
from tests.benchmarks.rungs.trainings import halving, halving_by_model, hyperband, whole
from tests.support.histories import Chains

RUNGS = Rungs((1, 3, 9), 3)
EARLY = np.linspace(0.0, 1.0, 20)
VALUES = np.column_stack([EARLY, EARLY + 0.5, EARLY + 1.0])


class Ladder:
    """A distance: how far apart two networks are in the table."""

    def distances(self, first, second=None):
        place = {one.key: at for at, one in enumerate(Chains().every())}
        rows, columns = (
            [place[one.canonical.key] for one in each] for each in (first, second or first)
        )
        return Components.of_stack(np.abs(np.subtract.outer(rows, columns))[None].astype(float), 1)


def searched(trainings, limit, *further, order=range(20), values=VALUES):
    search = RungSearch(Chains().every(), values, RUNGS, limit)
    with pytest.raises(EpochsSpentError):
        trainings(search, map(RungTrial, order), *further)

    return search


def test_each_training_is_charged_in_full():
    search = searched(whole, 20)
    assert (search.spent, [one.rungs for one in search.trials[:2]]) == (18, [3, 3])
    assert search.steps == [(9, 1.0), (18, pytest.approx(1.0 + 1 / 19))]
    assert [search.best_after(epochs) for epochs in (8, 9, 17)] == [1.0, 1.0, 1.0]
    # Nine networks at the first rung, three of which go on, and one of these.
    assert searched(halving, 27, order=reversed(range(20))).spent == 9 * 1 + 3 * 3 + 1 * 9


def test_brackets_of_hyperband():
    orders = itertools.cycle(range(20))
    search = searched(hyperband, 9 + 3 * 3 + 9 + 5 * 3 + 9 + 3 * 9, order=orders)
    assert [one.rungs for one in search.trials[:9]] == [1] * 6 + [2, 2, 3]
    assert [one.rungs for one in search.trials[9:14]] == [2] * 4 + [3]
    assert [one.rungs for one in search.trials[14:17]] == [3] * 3


def test_the_model_promotes_the_networks_that_it_prefers():
    surrogate = DistanceGP(
        Ladder(), exponential(1), FixedHyperparameters(np.array([0.0, -1.0, -4.0]))
    )
    search = RungSearch(Chains().every(), VALUES, RUNGS, 100)
    for network in (4, 19, 9):
        search.train(RungTrial(network))

    assert [one.network for one in search.promoted()] == [19]
    assert [one.network for one in search.promoted(np.array([3.0, 1.0, 2.0]))] == [4]
    assert searched(halving_by_model, 60, surrogate).steps


def test_agents_are_told_projected_scores():
    search = searched(halving, 30, order=reversed(range(20)))
    history = search.history(by_regression)
    assert isinstance(history, History)
    assert [seen.variance > 0.0 for seen in history.observations] == [
        one.rungs < 3 for one in search.trials
    ]
    best = history.observations[0]
    second = history.observations[1]
    assert best.score == 2.0 and EARLY[18] < second.score <= 2.0
    drawn = [one.network for one in proposals(search, None, 0, by_regression)]
    assert sorted(drawn) == list(range(20)) != drawn


def test_dyhpo_prefers_the_neighbour_of_good_networks(monkeypatch):
    monkeypatch.setattr("tests.benchmarks.rungs.dyhpo.CANDIDATES", 20)
    search = RungSearch(Chains().every(), VALUES, RUNGS, 100)
    for network in (0, 5, 10, 15):
        search.train(RungTrial(network))

    gains = improvements(search, [RungTrial(1), RungTrial(16), RungTrial(9)], Ladder())
    assert int(np.argmax(gains)) == 1
    assert searched(dyhpo, 80, Ladder(), order=(0, 10, 5, 14, *range(20))).best_after(80) > 1.8
