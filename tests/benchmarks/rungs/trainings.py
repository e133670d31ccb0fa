"""Rules of the epochs of each trial: whole trainings, successive halving, Hyperband.

Each runs until epochs are spent.

| function           | rule                                                                                         |
|--------------------|----------------------------------------------------------------------------------------------|
| `whole`            | every trial is trained to the end                                                            |
| `halving`          | asynchronous successive halving, the rule of `archive search --rungs`                        |
| `halving_by_model` | the same, where the best of a rung are those of the greatest posterior mean of a surrogate   |
| `hyperband`        | brackets of synchronous successive halving, from the first rung to whole ones (Li et al.,    |
|                    | Hyperband, 2018), again and again                                                            |
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from archive.agents.surrogates.base import Surrogate
from tests.benchmarks.rungs.simulation import Floats, RungSearch, RungTrial, by_regression


def whole(search: RungSearch, source: Iterator[RungTrial]) -> None:
    """Train every proposal to the end."""
    for trial in source:
        search.train(trial, search.top)


def halving(search: RungSearch, source: Iterator[RungTrial]) -> None:
    """Train every proposal to the first rung, and those that are promoted to the next one."""
    for trial in source:
        search.train(trial)
        while promoted := search.promoted():
            for one in promoted:
                search.train(one)


def halving_by_model(search: RungSearch, source: Iterator[RungTrial], surrogate: Surrogate) -> None:
    """Promote the trials of the greatest posterior mean of a surrogate, which is fitted to
    projected scores.
    """
    for trial in source:
        search.train(trial)
        while promoted := search.promoted(_means(search, surrogate)):
            for one in promoted:
                search.train(one)


def hyperband(search: RungSearch, source: Iterator[RungTrial]) -> None:
    """Run the brackets one after the other, again and again."""
    rungs = search.top + 1
    reduction = search.rungs.reduction
    while True:
        for first in range(rungs):
            count = math.ceil(rungs / (rungs - first) * reduction ** (search.top - first))
            kept = [next(source) for _ in range(count)]
            for rung in range(first, rungs):
                for trial in kept:
                    search.train(trial, rung)

                kept.sort(key=lambda trial, rung=rung: -search.value(trial, rung))  # type: ignore[misc]
                kept = kept[: len(kept) // reduction]


def _means(search: RungSearch, surrogate: Surrogate) -> Floats:
    history = search.history(by_regression)
    networks = [one.architecture.functional for one in history.observations]
    scores = np.array([one.score for one in history.observations], np.float64)
    return (
        surrogate.fit(networks, scores, np.random.default_rng(0), history.variances)
        .posterior(networks)
        .mean
    )
