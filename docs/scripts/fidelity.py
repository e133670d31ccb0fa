"""Epochs until equal regret, in searches of tables with results after several epochs.

    python docs/scripts/fidelity.py nb101 --seeds 5 --epochs 2000
    python docs/scripts/fidelity.py nb101 --errors

| contestant     | proposals | trainings (`tests.benchmarks.rungs`)                                      |
|----------------|-----------|------------------------------------------------------------------------------------|
| `random`       | random    | whole                                                                              |
| `AGENT`        | the agent | whole                                                                              |
| `hyperband`    | random    | brackets of successive halving                                                     |
| `asha`         | random    | asynchronous successive halving, as with `archive search --rungs`                  |
| `dyhpo`        | a Gaussian process over networks and epochs chooses the next rung of a network, new or paused |
| `AGENT+median` | the agent | as `asha`; the agent is told partial scores plus the median gains of the promoted  |
| `AGENT+rungs`  | the agent | as `asha`; the agent is told `archive.agents.rungs`, as with `--rungs`             |
| `AGENT+model`  | the agent | the same, but the best of a rung are those of the greatest posterior mean          |

A training is charged in full, as each entry of a table has a schedule of its own. Regret is that of
the best whole training, in accuracy points; `equal` is the number of epochs at which its mean over
the seeds has reached that of `asha` at the end. With `--errors`: how far the scores that an agent
is told of paused networks are from the values of their whole trainings, after 100 random networks
of `asha`.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

from archive import agents, kernels
from archive.agents.bayesopt.model_based import ModelBased
from archive.agents.rungs import ProjectedScore, score_after
from archive.benchmarks.measurement import significant
from archive.kernels.gram import Gram
from archive.rungs import REDUCTION, Rungs
from archive.spaces.base import Space
from archive.store.records import Evaluation
from archive.trainer.tasks import registry
from archive.trainer.tasks.tabular import TabularTask
from tests.benchmarks.rungs.dyhpo import dyhpo
from tests.benchmarks.rungs.simulation import (
    OBJECTIVE,
    EpochsSpentError,
    Projection,
    RungSearch,
    by_regression,
    proposals,
)
from tests.benchmarks.rungs.trainings import halving, halving_by_model, hyperband, whole

COLUMNS = {
    "nb101": {4: "val_acc_4ep", 12: "val_acc_12ep", 36: "val_acc_36ep", 108: "val_acc_108ep"},
    "nb201-cifar10": {12: "cifar10_valid_12ep", 200: "cifar10_valid_200ep"},
    "nb201-cifar100": {12: "cifar100_valid_12ep", 200: "cifar100_test_200ep"},
}
NETWORKS = 100

Contestant = tuple[str | None, Projection, Callable[..., None]]


def by_median_gain(evaluations: Sequence[Evaluation]) -> list[ProjectedScore]:
    """Return scores plus the median gains of the networks that were trained to both rungs.

    A score is at most the best one at the next rung.
    """
    levels = sorted({float(one.epochs or 0) for one in evaluations})
    columns = {
        level: [score_after(one, level, OBJECTIVE) for one in evaluations] for level in levels
    }
    gains = {}
    best = {}
    for low, high in pairwise(levels):
        pairs = zip(columns[low], columns[high], strict=True)
        gains[low] = statistics.median(
            [b - a for a, b in pairs if a is not None and b is not None] or [0.0]
        )
        best[low] = max(score for score in columns[high] if score is not None)

    told = []
    for one in evaluations:
        score = one.score
        for level in levels[levels.index(float(one.epochs or 0)) : -1]:
            score = max(score, min(score + gains[level], best[level]))

        told.append(ProjectedScore(score, 0.0))

    return told


def opened(name: str) -> tuple[Space, np.ndarray]:
    """Return the space of a table, and the accuracies of its networks by number of epochs.

    Accuracies are in points.
    """
    task = registry.get(name)
    assert isinstance(task, TabularTask)
    space = task.search_space()
    rows = [task.table.index[one.functional_key] for one in space.members() or ()]
    values = np.column_stack(
        [np.asarray(task.table.column(column))[rows] for column in COLUMNS[name].values()]
    )
    return space, values * (100.0 if values.max() <= 1.0 else 1.0)


def contestants(name: str, space: Space) -> dict[str, Contestant]:
    """Return agent, projection and trainings of each contestant."""
    pairwise_distances = Gram(kernels.get("path"), max_networks=4096)
    every: dict[str, Contestant] = {
        "random": (None, by_regression, whole),
        name: (name, by_regression, whole),
        "hyperband": (None, by_regression, hyperband),
        "asha": (None, by_regression, halving),
        "dyhpo": (None, by_regression, partial(dyhpo, pairwise=pairwise_distances)),
        f"{name}+median": (name, by_median_gain, halving),
        f"{name}+rungs": (name, by_regression, halving),
    }
    agent = agents.get(name, space)
    if isinstance(agent, ModelBased):
        surrogate = agent.method.surrogate
        every[f"{name}+model"] = (
            name,
            by_regression,
            partial(halving_by_model, surrogate=surrogate),
        )

    return every


def regrets(asked: argparse.Namespace) -> None:
    """Search with every contestant and seed, and print a row each."""
    space, values = opened(asked.table)
    rungs = Rungs(tuple(COLUMNS[asked.table]), asked.reduction)
    every = contestants(asked.agent, space)
    grid = range(0, asked.epochs + 1, max(asked.epochs // 400, 1))
    curves: dict[str, np.ndarray] = {}
    for name in asked.only or every:
        kind, projection, trainings = every[name]
        agent = None if kind is None else agents.get(kind, space)
        began = time.process_time()
        runs = []
        for seed in range(asked.seeds):
            search = RungSearch(space.members() or (), values, rungs, asked.epochs)
            try:
                trainings(search, proposals(search, agent, seed, projection))
            except EpochsSpentError:
                runs.append([float(values[:, -1].max()) - search.best_after(at) for at in grid])

        curves[name] = np.array(runs)
        print(name, f"{time.process_time() - began:.0f} s", file=sys.stderr, flush=True)

    target = float(curves.get("asha", curves[next(iter(curves))]).mean(axis=0)[-1])
    print(
        f"{asked.table}, reduction {asked.reduction}, "
        f"{asked.seeds} seeds, {asked.epochs} epochs a search; ",
        end="",
    )
    print(f"equal: mean regret {significant(target)}")
    print(
        f"{'contestant':14} {'equal':>6} "
        + " ".join(f"{share:>5.0%}" for share in (0.25, 0.5, 1.0))
        + "  of epochs"
    )
    for name, curve in curves.items():
        mean = curve.mean(axis=0)
        error = curve.std(axis=0, ddof=1)[-1] / math.sqrt(len(curve))
        reached = np.flatnonzero(mean <= target + 1e-9)
        after = [mean[round(share * (len(mean) - 1))] for share in (0.25, 0.5, 1.0)]
        equal = str(grid[int(reached[0])]) if reached.size else "-"
        print(
            f"{name:14} {equal:>6} "
            + " ".join(significant(value) for value in after)
            + f" ± {significant(error)}"
        )


def errors(asked: argparse.Namespace) -> None:
    """Print mean and root mean square of the errors of the scores of paused networks.

    There is a line for each projection.
    """
    space, values = opened(asked.table)
    rungs = Rungs(tuple(COLUMNS[asked.table]), asked.reduction)
    rows: dict[str, list[list[float]]] = {"median": [], "rungs": []}
    for seed in range(asked.seeds):
        search = RungSearch(space.members() or (), values, rungs, sys.maxsize)
        halving(search, islice(proposals(search, None, seed, by_regression), NETWORKS))
        truth = values[[one.network for one in search.trials], -1]
        paused = np.array([one.rungs <= search.top for one in search.trials])
        good = paused & (truth >= np.quantile(truth, 0.7))
        for name, projection in (("median", by_median_gain), ("rungs", by_regression)):
            told: Any = np.array(projection(search.evaluations()))
            error = told[:, 0] - truth
            z = error / np.where(told[:, 1] > 0.0, np.sqrt(told[:, 1]), math.nan)
            rms = [
                math.sqrt(float(np.mean(each**2)))
                for each in (error[paused], error[good], z[paused], z[good])
            ]
            rows[name].append(
                [float(error[paused].mean()), rms[0], float(error[good].mean()), *rms[1:]]
            )

    print(
        f"{asked.table}, reduction {asked.reduction}, {asked.seeds} seeds, {NETWORKS} "
        "networks; paused, best 30 %"
    )
    for name, of_seeds in rows.items():
        bias, rms_all, bias_good, rms_good, z_all, z_good = np.mean(of_seeds, axis=0)
        print(
            f"{name:7} mean error {bias:6.2f} {bias_good:6.2f} "
            f"  rms {rms_all:6.2f} {rms_good:6.2f}   ",
            end="",
        )
        print(f"rms of error / sd {z_all:5.2f} {z_good:5.2f}")


def main() -> None:
    """Parse the arguments, and print regrets or errors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=COLUMNS)
    parser.add_argument("--agent", default="gp-path")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=2000, help="Epochs of a search.")
    parser.add_argument("--reduction", type=int, default=REDUCTION)
    parser.add_argument("--only", nargs="+", help="Contestants; all of them by default.")
    parser.add_argument("--errors", action="store_true", help="Print errors of projections.")
    asked = parser.parse_args()
    (errors if asked.errors else regrets)(asked)


if __name__ == "__main__":
    main()
