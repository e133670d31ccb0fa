"""Searches that start from published networks beside cold ones, on a table.

    ARCHIVE_HOME=… python docs/scripts/zoo_start.py --task nb201-cifar10 --seeds 20 --budget 40

The archive needs published results (`archive import zoo timm`); nothing is written to it. Each seed
has a cold start, one from published results, and one from the same results shuffled among the
networks, anew for each seed.

| column     | meaning                                                                              |
|------------|--------------------------------------------------------------------------------------|
| cold       | mean regret after so many evaluations, in the unit of the task                       |
| zoo        | mean of the paired differences to it, ± their standard error; less is better         |
| shuffled   | the same                                                                             |
| takes part | share of the proposals after the fifth that a source informed: zoo, shuffled         |
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from misfit import tabular
from scipy.stats import sem, spearmanr

import archive
from archive import agents
from archive.agents.base import Agent, History, Observation, SourceStudy
from archive.agents.prediction.process import ResultProcess
from archive.agents.provenance import correlations_of, generator
from archive.agents.transfer.evidence import FIRST
from archive.agents.transfer.zoo_source import (
    PREDICTED,
    ZooPredictions,
    common_protocol,
    predict_space,
    published_results,
)
from archive.objectives import sign
from archive.trainer.tasks.tabular import TabularTask


def source_of(predictions: ZooPredictions, values: Sequence[float]) -> SourceStudy:
    """Return predicted values as a source."""
    observations = []
    for number, (network, value) in enumerate(zip(predictions.networks, values, strict=True)):
        observations.append(Observation(network, value, f"zoo#{number:05d}"))

    space = predictions.networks[0].space
    protocol = predictions.predictor.protocol
    return SourceStudy("zoo", PREDICTED, protocol, space, tuple(observations))


def shuffled(predictions: ZooPredictions, seed: int) -> list[float]:
    """Return the values that the same results predict after a shuffle among their networks."""
    predictor = predictions.predictor
    results = np.random.default_rng(seed).permutation(predictor.table.values)
    process = ResultProcess(predictor.table.inputs, results, predictor.process.fitted)
    values = predictor._replace(process=process)
    return ZooPredictions(predictions.networks, predictions.features, values).values()


def search(
    agent: Agent, task: TabularTask, seed: int, budget: int, sources: Sequence[SourceStudy]
) -> tuple[list[float], list[bool]]:
    """Return the scores of a search, and whether a source informed each proposal."""
    seen: list[Observation] = []
    informed: list[bool] = []
    while len(seen) < budget:
        history = History(tuple(seen), sources=tuple(sources))
        suggestions = agent.propose(history, 1, generator(seed, history))
        couplings = correlations_of(suggestions).get("coupling", {})
        for suggestion in suggestions:
            network = suggestion.architecture
            score = sign(task.direction) * task.answer(network).value
            seen.append(Observation(network.canonical, score, f"search#{len(seen):05d}"))
            informed.append(any(couplings.values()))

    return [observed.score for observed in seen], informed


def main() -> None:
    """Search, and print a row for each number of evaluations."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", default="nb201-cifar10")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", type=int, default=40)
    asked = parser.parse_args()
    task = tabular(parser, asked.task)
    space = task.search_space()
    with archive.connect() as store:
        published = published_results(store)
        protocol = common_protocol(published)
        predictions = predict_space(store, space, published, protocol)

    values = predictions.values()
    truth = [sign(task.direction) * task.answer(network).value for network in predictions.networks]
    rank = spearmanr(values, truth).statistic
    print(f"{protocol}: {len(values)} predictions of {len(published)} results, rank {rank:.2f}")

    members = space.members() or ()
    best = max(sign(task.direction) * task.truth(member.functional_key)[0] for member in members)
    agent = agents.get("portfolio", space)
    arms: dict[str, list[tuple[list[float], list[bool]]]] = {"cold": [], "zoo": [], "shuffled": []}
    for seed in range(asked.seeds):
        sources = {
            "cold": [],
            "zoo": [source_of(predictions, values)],
            "shuffled": [source_of(predictions, shuffled(predictions, seed))],
        }
        for name, arm in arms.items():
            arm.append(search(agent, task, seed, asked.budget, sources[name]))

        for count in (10, 20, 30, 40):
            if count <= asked.budget and seed:
                print(f"seeds {seed + 1}, after {count}: {row(arms, count, best)}", flush=True)


def row(arms: dict[str, list[tuple[list[float], list[bool]]]], count: int, best: float) -> str:
    """Return the columns for a number of evaluations."""
    regrets = {}
    shares = {}
    for name, arm in arms.items():
        regrets[name] = np.array([best - max(scores[:count]) for scores, _ in arm])
        shares[name] = np.mean([informed[FIRST:count] for _, informed in arm])

    text = f"cold {regrets['cold'].mean():.4f}"
    for name in ("zoo", "shuffled"):
        differences = regrets[name] - regrets["cold"]
        text += f", {name} {differences.mean():+.4f} ± {sem(differences):.4f}"

    return f"{text}, takes part {shares['zoo']:.2f}, {shares['shuffled']:.2f}"


if __name__ == "__main__":
    main()
