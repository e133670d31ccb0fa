"""A search of a table with results after several numbers of epochs, and the epochs that it spends.

Every entry of such a table is a training with a schedule of its own, so that each is charged in
full: a network that goes from 4 to 12 epochs costs 16. One network trains at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archive.agents.base import Agent, History
from archive.agents.provenance import generator
from archive.agents.rungs import ProjectedScore, project_scores
from archive.agents.transfer.source_tasks import observation
from archive.architecture.graph import Architecture
from archive.queue.successive_halving import RungStanding, promotable
from archive.rungs import Rungs
from archive.store.records import Evaluation, State

Floats = NDArray[np.float64]
Projection = Callable[[Sequence[Evaluation]], list[ProjectedScore]]

OBJECTIVE = "value"


class EpochsSpentError(Exception):
    """The next training would exceed the epochs of the search."""


@dataclass
class RungTrial:
    """A network of the table in a search.

    Attributes:
        network: Its position in the table.
        rungs: Number of its finished rungs.
    """

    network: int
    rungs: int = 0


class RungSearch:
    """The trials of one search.

    Args:
        networks: The m networks of the table.
        values: (m, rungs) float64: their values at each rung, larger is better.
        rungs: The rungs; the last one is the whole training.
        limit: Epochs of the search.

    Attributes:
        trials: All trials, in the order of their first training.
        spent: Epochs so far.
        steps: Epochs and value of each whole training that was the best one so far.
    """

    def __init__(
        self, networks: Sequence[Architecture], values: Floats, rungs: Rungs, limit: int
    ) -> None:
        """Begin without trials."""
        self.networks = networks
        self.values = values
        self.rungs = rungs
        self.limit = limit
        self.trials: list[RungTrial] = []
        self.spent = 0
        self.steps: list[tuple[int, float]] = []

    @property
    def top(self) -> int:
        """Index of the rung of the whole training."""
        return len(self.rungs.epochs) - 1

    def train(self, trial: RungTrial, rung: int | None = None) -> None:
        """Train to the next rung, or to the given one, and charge it; a new trial is added.

        Raises:
            EpochsSpentError: Too few epochs are left.
        """
        if all(trial is not one for one in self.trials):
            self.trials.append(trial)

        rung = trial.rungs if rung is None else rung
        if self.spent + self.rungs.epochs[rung] > self.limit:
            raise EpochsSpentError

        self.spent += self.rungs.epochs[rung]
        trial.rungs = rung + 1
        if rung == self.top and (not self.steps or self.value(trial, rung) > self.steps[-1][1]):
            self.steps.append((self.spent, self.value(trial, rung)))

    def value(self, trial: RungTrial, rung: int) -> float:
        """Return the value of a trial at a rung."""
        return float(self.values[trial.network, rung])

    def best_after(self, epochs: int) -> float:
        """Return the best value of a whole training within a number of epochs; the table's worst
        one without any.
        """
        known = [value for spent, value in self.steps if spent <= epochs]
        return known[-1] if known else float(self.values[:, -1].min())

    def evaluations(self) -> list[Evaluation]:
        """Return the trained trials as evaluations; their curves have the values at rungs, and NaN
        between.
        """
        return [self._evaluation(at, trial) for at, trial in enumerate(self.trials) if trial.rungs]

    def history(self, projection: Projection) -> History:
        """Return the history of an agent."""
        seen = self.evaluations()
        return History(
            tuple(
                observation(one, *score) for one, score in zip(seen, projection(seen), strict=True)
            )
        )

    def promoted(self, means: Floats | None = None) -> list[RungTrial]:
        """Return the trials that successive halving promotes now, by their values or by one mean
        for each trial.
        """
        standings = []
        for at, one in enumerate(self.trials):
            values = (
                self.values[one.network, : one.rungs] if means is None else [means[at]] * one.rungs
            )
            standings.append(
                RungStanding(str(at), at, State.PRUNED, one.rungs - 1, tuple(map(float, values)))
            )

        return [self.trials[one.number] for one in promotable(self.rungs, standings, maximise=True)]

    def _evaluation(self, at: int, trial: RungTrial) -> Evaluation:
        epochs = self.rungs.epochs[trial.rungs - 1]
        curve = [math.nan] * epochs
        for rung in range(trial.rungs):
            curve[self.rungs.epochs[rung] - 1] = self.value(trial, rung)

        return Evaluation(
            id=f"search#{at:05d}",
            study="search",
            number=at,
            task="table",
            protocol="table",
            architecture=self.networks[trial.network].canonical,
            value=self.value(trial, trial.rungs - 1),
            curve={OBJECTIVE: curve},
            epochs=epochs,
            partial=trial.rungs <= self.top,
        )


def by_regression(evaluations: Sequence[Evaluation]) -> list[ProjectedScore]:
    """Return the scores that agents of the archive are told."""
    return project_scores(evaluations, OBJECTIVE)


def proposals(
    search: RungSearch, agent: Agent | None, seed: int, projection: Projection
) -> Iterator[RungTrial]:
    """Yield a trial of each network that an agent proposes after the results so far; of random ones
    for None.
    """
    if agent is None:
        yield from map(
            RungTrial, np.random.default_rng(seed).permutation(len(search.networks)).tolist()
        )
        return

    position = {one.functional_key: at for at, one in enumerate(search.networks)}
    while True:
        history = search.history(projection)
        for one in agent.propose(history, 1, generator(seed, history)):
            yield RungTrial(position[one.architecture.functional_key])
