"""Predictions and proposals of `portfolio` after thousands of evaluations of a table.

They are compared with those after a thousand.

    python docs/scripts/many_evaluations.py --evaluations 1000 --evaluations 10000 --steps 10 python
    docs/scripts/many_evaluations.py --task nb101~0.003 --evaluations 100000 --seed 1 --seed 2
    --seed 3

The evaluations are of random networks of the table without its best hundred and without 2,000
others, which the rank correlations of the agent's model are with: all of them, and their best
tenth, by values without noise. A table has fewer networks than 100,000: with noise, a task is
queried again and again for the same networks, with other seeds. Each step then proposes one network
and evaluates it. The last line is a proposal after an eighth more evaluations, with which the
models of more than a thousand are fitted again.
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import spearmanr

from archive import agents
from archive.agents.base import Agent, History, Observation
from archive.agents.bayesopt.model_based import ModelBased
from archive.architecture.graph import Architecture
from archive.objectives import sign
from archive.trainer.tasks import registry
from archive.trainer.tasks.tabular import TabularTask

HELD_OUT = 2000
BEST = 100


@dataclass
class Search:
    """A search of one seed.

    Attributes:
        task: The table's task.
        networks: Networks to evaluate, in turns.
        seen: The evaluations.
    """

    task: TabularTask
    networks: list[Architecture]
    seen: list[Observation] = field(default_factory=list)

    def evaluate(self, network: Architecture) -> None:
        """Append an evaluation of a network, with noise of its own."""
        name = f"s#{len(self.seen):06d}"
        result = self.task.answer(network, query=name)
        self.seen.append(
            Observation(network, sign(self.task.direction) * result.value, name, seed=result.seed)
        )

    def extend(self, count: int) -> None:
        """Evaluate the next networks until there are `count` evaluations."""
        for network in itertools.islice(itertools.cycle(self.networks), len(self.seen), count):
            self.evaluate(network)

    def propose(self, agent: Agent, seed: int) -> tuple[Architecture, float]:
        """Return the next network, and the processor seconds of the proposal."""
        history = History(tuple(self.seen))
        begin = time.process_time()
        [one] = agent.propose(history, 1, np.random.default_rng(seed))
        return one.architecture, time.process_time() - begin


def ranks(agent: Agent, history: History, networks: list[Architecture], truth: np.ndarray) -> str:
    """Return the name of the agent's model, and its rank correlations with the networks' values."""
    policy: ModelBased = agent._policies(history)[0]  # type: ignore[attr-defined]
    model = policy._learn(history, np.random.default_rng(0))
    blocks = [networks[at : at + 500] for at in range(0, len(networks), 500)]
    means = np.concatenate(
        [model.posterior([one.functional for one in block]).mean for block in blocks]
    )
    best = np.argsort(-truth)[: len(truth) // 10]
    place = np.mean([(truth > truth[at]).sum() + 1 for at in np.argsort(-means)[:10]])
    every = spearmanr(means, truth).statistic
    top = spearmanr(means[best], truth[best]).statistic
    inner = getattr(model, "fitted", model)
    return (
        f"{type(inner).__name__}: "
        f"{every:.3f}, best tenth {top:.3f}, mean place of its first ten {place:.0f}"
    )


def measure(task: TabularTask, seed: int, counts: list[int], steps: int) -> None:
    """Print some lines for each number of evaluations."""
    members = task.search_space().members() or ()
    keys = list(task.table.index)
    truth = sign(task.direction) * np.array([task.truth(key)[0] for key in keys])
    place = {keys[at]: rank + 1 for rank, at in enumerate(np.argsort(-truth).tolist())}
    order = [
        at for at in np.random.default_rng(seed).permutation(len(keys)) if place[keys[at]] > BEST
    ]
    other = order[-HELD_OUT:]
    networks = [members[at] for at in order[: min(max(counts) * 9 // 8, len(order) - HELD_OUT)]]
    for count in counts:
        agent = agents.get("portfolio", task.search_space())
        search = Search(task, networks)
        search.extend(count)
        distinct = len({one.architecture.key for one in search.seen})
        first = search.propose(agent, 0)[1]
        print(f"seed {seed}, {count} evaluations of {distinct} networks: first step {first:.1f} s")
        print(
            f"  {ranks(agent, History(tuple(search.seen)), [members[at] for at in other], truth[other])}",
            flush=True,
        )
        seconds = []
        places = []
        for step in range(steps):
            network, taken = search.propose(agent, step)
            seconds.append(taken)
            places.append(place[network.functional_key])
            search.evaluate(network)

        if seconds:
            print(f"  {steps} steps: best place {min(places)}, median {np.median(places):.0f}")
            print(f"  seconds a step: median {np.median(seconds):.2f}, greatest {max(seconds):.2f}")

        search.seen = search.seen[:count]
        search.extend(count * 9 // 8)
        print(f"  step after {len(search.seen)}: {search.propose(agent, 0)[1]:.1f} s", flush=True)


def main() -> None:
    """Measure each seed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="nb101")
    parser.add_argument("--evaluations", action="append", type=int, required=True)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", action="append", type=int)
    options = parser.parse_args()
    task = registry.get(options.task)
    if not isinstance(task, TabularTask):
        parser.error(f"{options.task} is no task of a table")

    most = len(task.table) - BEST - HELD_OUT
    if not task.noise and max(options.evaluations) * 9 // 8 > most:
        parser.error(
            f"{task.name} has {most} networks to evaluate; with noise, as in "
            f"{task.name}~0.003, more"
        )

    for seed in options.seed or [1]:
        measure(task, seed, options.evaluations, options.steps)


if __name__ == "__main__":
    main()
