"""Hypervolume of searches for several objectives on a table, as a share of that of the whole table.

    python docs/scripts/fronts.py --cost latency_ms_raspi4 --agent portfolio --agent nsga2 --seeds 5 --budget 60

The task answers in this process, without an archive: the agents see the same histories as in `archive search` with one
proposal at a time. The reference point is the worst value of each objective in the table. A row has the median over the
seeds and the smallest share, after 20, 40, … evaluations.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence

import numpy as np

from archive import agents
from archive.agents.base import History, Observation
from archive.agents.objectives.goals import Goals
from archive.agents.provenance import generator
from archive.queries import hypervolume
from archive.store.records import Objective, sign
from archive.trainer.tasks import known_costs, registry
from archive.trainer.tasks.tabular import TabularTask


def goals_of(task: TabularTask, costs: Sequence[str]) -> Goals:
    """Return the goals of a search for the task's objective and these costs of its table, to minimise."""
    objectives = (Objective(task.objective, task.direction), *(Objective(name, "minimise") for name in costs))
    return Goals(objectives, known_costs.of_task(task, task.protocol().name))


def search(kind: str, task: TabularTask, goals: Goals, seed: int, budget: int) -> np.ndarray:
    """Return the scores of a search in the order of its evaluations: (budget, objectives) float64."""
    agent = agents.get(kind, task.search_space())
    seen: list[Observation] = []
    while len(seen) < budget:
        history = History(tuple(seen), goals=goals)
        for one in agent.propose(history, 1, generator(seed, history)):
            score = sign(task.direction) * task.answer(one.architecture).value
            seen.append(Observation(one.architecture, score, f"search#{len(seen):05d}"))
    return goals.scores(seen)


def table_scores(task: TabularTask, goals: Goals) -> np.ndarray:
    """Return the scores of all networks of the table: (n, objectives) float64."""
    networks = task.search_space().members() or ()
    scores = goals.known_scores(networks)
    scores[:, 0] = [sign(task.direction) * task.truth(each.functional_key)[0] for each in networks]
    return scores[np.isfinite(scores).all(axis=1)]


def main() -> None:
    """Search, and print one row an agent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="nb201-cifar10")
    parser.add_argument("--cost", action="append", required=True)
    parser.add_argument("--agent", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=60)
    options = parser.parse_args()
    task = registry.get(options.task)
    goals = goals_of(task, options.cost)
    every = table_scores(task, goals)
    reference = every.min(axis=0)
    whole = hypervolume.hypervolume(every, reference)
    print(f"{hypervolume.nondominated(every).sum()} of {len(every)} networks on the front")
    for kind in options.agent:
        begin = time.process_time()
        runs = [search(kind, task, goals, seed, options.budget) for seed in range(options.seeds)]
        shares = [hypervolume.history(run, reference) / whole for run in runs]
        counts = [*range(20, options.budget + 1, 20)]
        row = ", ".join(
            f"{count}: {100 * statistics.median(at):.1f} ({100 * min(at):.1f})"
            for count in counts
            if (at := [share[count - 1] for share in shares])
        )
        print(f"{kind}: {row}; {(time.process_time() - begin) / options.seeds:.1f} s a search", flush=True)


if __name__ == "__main__":
    main()
