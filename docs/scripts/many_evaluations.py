"""Predictions and proposals of `portfolio` after thousands of evaluations of a table, beside those after a thousand.

    python docs/scripts/many_evaluations.py --task nb101 --evaluations 1000 --evaluations 10000 --steps 10

The evaluations are random networks of the table without its best hundred. The model is that of the agent; its rank
correlations are with 2,000 other networks, and with the best tenth of these. Each step then proposes one network and
evaluates it. The table has no noise.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.stats import spearmanr

from archive import agents
from archive.agents.base import Agent, History, Observation
from archive.agents.bayesopt.model_based import ModelBased
from archive.architecture.graph import Architecture
from archive.store.records import sign
from archive.trainer.tasks import registry

HELD_OUT, BEST = 2000, 100


def ranks(agent: Agent, history: History, networks: list[Architecture], truth: np.ndarray) -> str:
    """Return the name of the agent's model, and its rank correlations with the values of networks."""
    policy: ModelBased = agent._policies(history)[0]  # type: ignore[attr-defined]
    model = policy._learn(history, np.random.default_rng(0))
    blocks = [networks[at : at + 500] for at in range(0, len(networks), 500)]
    means = np.concatenate([model.posterior([one.functional for one in block]).mean for block in blocks])
    best = np.argsort(-truth)[: len(truth) // 10]
    first = np.argsort(-means)[:10]
    place = np.mean([(truth > truth[at]).sum() + 1 for at in first])
    every, top = spearmanr(means, truth).statistic, spearmanr(means[best], truth[best]).statistic
    return f"{type(model).__name__}: {every:.3f}, best tenth {top:.3f}, mean place of its first ten {place:.0f}"


def main() -> None:
    """Measure, and print some lines for each number of evaluations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="nb101")
    parser.add_argument("--evaluations", action="append", type=int, required=True)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    task = registry.get(options.task)
    space = task.search_space()
    members = space.members()
    truth = sign(task.direction) * np.array([task.truth(one.functional_key)[0] for one in members])
    place = {members[at].functional_key: rank + 1 for rank, at in enumerate(np.argsort(-truth).tolist())}
    order = [
        at
        for at in np.random.default_rng(options.seed).permutation(len(members))
        if place[members[at].functional_key] > BEST
    ]
    other = order[-HELD_OUT:]
    agent = agents.get("portfolio", space)
    for count in options.evaluations:
        seen = [Observation(members[at], float(truth[at]), f"s#{n:06d}") for n, at in enumerate(order[:count])]
        begin, wall = time.process_time(), time.time()
        agent.propose(History(tuple(seen)), 1, np.random.default_rng(0))
        print(
            f"{count} evaluations: first step {time.process_time() - begin:.1f} s ({time.time() - wall:.0f} s elapsed)"
        )
        print(f"  {ranks(agent, History(tuple(seen)), [members[at] for at in other], truth[other])}", flush=True)
        seconds, places = [], []
        for step in range(options.steps):
            history, begin = History(tuple(seen)), time.process_time()
            [one] = agent.propose(history, 1, np.random.default_rng(step))
            seconds.append(time.process_time() - begin)
            value = sign(task.direction) * task.answer(one.architecture).value
            places.append(place[one.architecture.functional_key])
            seen.append(Observation(one.architecture, value, f"s#{len(seen):06d}"))
        shown = f"{np.median(seconds):.2f} s a step" if seconds else ""
        print(
            f"  {options.steps} steps: best place {min(places, default=0)}, median {np.median(places):.0f}; {shown}",
            flush=True,
        )


if __name__ == "__main__":
    main()
