"""The best model of a class of large trainings, for a share of what training all of them costs.

| method     | what it trains                                                                        |
|------------|---------------------------------------------------------------------------------------|
| `forecast` | random small models, for `SMALL_SHARE` of the operations; then, one by one, the model  |
|            | of the class with the least forecast loss, whole                                      |
| `halving`  | random models of the class by asynchronous successive halving: checkpoints at 1/9, 1/3 |
|            | and the whole of the training, one of three promoted                                  |
| `random`   | random models of the class, whole                                                     |

A training continues from its checkpoint: only the further operations are charged. The answer is the
model of the class with the least loss at the longest trainings of the search; its loss counts after
its whole training, whether the search paid it or not. A training that costs more than what is left is
passed over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archive.agents.scaling import forecast, laws
from tests.benchmarks.scaling.scan_bench import ScanTable

SHARE = 0.05
"""Share of the operations of all trainings of the class that a search may spend."""
SMALL_SHARE = 0.2
RUNGS = (1 / 9, 1 / 3, 1.0)
REDUCTION = 3


@dataclass(frozen=True, eq=False)
class ModelClass:
    """Large models to choose among, and small ones.

    Attributes:
        table: All models.
        small: Positions of the small models.
        large: Positions of the models of the class.
    """

    table: ScanTable
    small: np.ndarray
    large: np.ndarray

    @property
    def limit(self) -> float:
        """Operations of a search."""
        return SHARE * float(self.table.flops[self.large].sum())

    def regret(self, position: int) -> float:
        """Return by which share the loss of a model is above the least one of the class."""
        losses = self.table.runs.losses
        return float(losses[position] / losses[self.large].min()) - 1.0


def by_forecast(models: ModelClass, seed: int) -> float:
    """Return the regret of the search by forecasts."""
    rng = np.random.default_rng(seed)
    table = models.table
    left = models.limit
    trained: list[int] = []
    for position in rng.permutation(models.small).tolist():
        if left - table.flops[position] >= (1.0 - SMALL_SHARE) * models.limit:
            trained.append(position)
            left -= table.flops[position]

    large: list[int] = []
    while True:
        runs = table.runs.take(np.array(trained))
        form = laws.get("chinchilla")
        model = forecast.fit(table.space, runs, form, rng, calibrate=False)
        affordable = [
            position
            for position in models.large.tolist()
            if position not in large and table.flops[position] <= left
        ]
        if not affordable:
            return models.regret(min(large, key=table.runs.losses.__getitem__))

        centre, _ = model.moments(table.runs.take(np.array(affordable)))
        best = affordable[int(centre.argmin())]
        large.append(best)
        trained.append(best)
        left -= table.flops[best]


def by_halving(models: ModelClass, seed: int) -> float:
    """Return the regret of asynchronous successive halving."""
    table = models.table
    left = models.limit
    order = np.random.default_rng(seed).permutation(models.large).tolist()
    levels: list[list[tuple[float, int]]] = [[] for _ in RUNGS]
    promoted: list[set[int]] = [set() for _ in RUNGS]
    paid: dict[int, float] = {}

    def next_step() -> tuple[int, int] | None:
        for rung in reversed(range(len(RUNGS) - 1)):
            ranked = sorted(levels[rung])
            for _, position in ranked[: len(ranked) // REDUCTION]:
                if position not in promoted[rung]:
                    promoted[rung].add(position)
                    return position, rung + 1

        return (order.pop(0), 0) if order else None

    while (step := next_step()) is not None:
        position, rung = step
        curve = table.curves[position]
        share = min(share for share in curve if share >= RUNGS[rung] - 1e-6)
        cost = table.flops[position] * (share - paid.get(position, 0.0))
        if cost <= left:
            left -= cost
            paid[position] = share
            levels[rung].append((curve[share], position))

    highest = max(rung for rung, level in enumerate(levels) if level)
    return models.regret(min(levels[highest])[1])


def by_chance(models: ModelClass, seed: int) -> float:
    """Return the regret of random whole trainings."""
    table = models.table
    left = models.limit
    trained = []
    for position in np.random.default_rng(seed).permutation(models.large).tolist():
        if table.flops[position] <= left:
            left -= table.flops[position]
            trained.append(position)

    return models.regret(min(trained, key=table.runs.losses.__getitem__))


METHODS = {"forecast": by_forecast, "halving": by_halving, "random": by_chance}
