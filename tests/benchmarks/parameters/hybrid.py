"""Searches of `portfolio` with a proposer beside it: `python -m tests.benchmarks hybrid`.

The proposer stands for a language model with partial knowledge. In 30 % of the turns, by a coin of
the seed, it does not take the suggestion of `portfolio`. It sees three suggestions and ten random
changes of the best network so far, each of one to three steps, and their predictions.

| rule    | what the proposer takes                                                       |
|---------|-------------------------------------------------------------------------------|
| `right` | the best of the thirteen in two cases of three, by another coin; else the     |
|         | worst                                                                         |
| `wrong` | the worst of the thirteen                                                     |

Its network is evaluated where `archive.agents.advice.override_trust` accepts it, and the first
suggestion otherwise.

| table    | score                                                              |
|----------|--------------------------------------------------------------------|
| `nb201`  | accuracy of NAS-Bench-201, CIFAR-10, 12 epochs, in points          |
| `hw-gpt` | perplexity of HW-GPT-Bench S with a minus sign, by its surrogate   |
| `fcnet`  | loss of FCNet with a minus sign, protein structure, mean of seeds  |
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from archive import agents
from archive.agents.advice import study_surrogate
from archive.agents.advice.override_trust import Expectation, OverrideTrust, OverrideVerdict
from archive.agents.base import Agent, History, Observation
from archive.agents.provenance import generator
from archive.architecture.graph import Architecture
from archive.objectives import sign
from archive.spaces.base import Space
from archive.spaces.parameters import Parameters
from tests.benchmarks.parameters.transformers import Transformers

SHARE = 0.3
"""Share of the turns in which the proposer overrides the agent."""
RIGHT = 2.0 / 3.0
SUGGESTIONS = 3
CHANGES = 10
STEPS = 3
RESTARTS = 30
"""Local searches for the least perplexity."""
POINTS = (10, 20, 50)
"""Numbers of evaluations of the summary."""
ARMS = ("portfolio", "right", "wrong")

Rows = dict[tuple[str, str, int], dict[str, Any]]
"""Finished searches by table, arm and seed."""


@dataclass(frozen=True, eq=False)
class Table:
    """A space whose networks have known scores.

    Attributes:
        space: The space.
        score: Score of a network, larger is better.
        best: The best score.
        agent: The agent of all searches.
    """

    space: Space
    score: Callable[[Architecture], float]
    best: float
    agent: Agent


@dataclass(frozen=True, eq=False)
class Override:
    """What the proposer takes in place of a suggestion.

    Attributes:
        network: The network.
        expected: Its prediction; None without a model.
        verdict: Whether it is trusted; None without a model, when it is evaluated.
    """

    network: Architecture
    expected: Expectation | None = None
    verdict: OverrideVerdict | None = None

    @property
    def accepted(self) -> bool:
        """Whether the network is evaluated."""
        return self.verdict is None or self.verdict.accepted


@click.command(short_help="Search with a proposer that overrides some of the agent's proposals.")
@click.option("--table", "names", multiple=True, help="One of the tables; all by default.")
@click.option("--seeds", default=20, help="Number of searches of each, with the seeds 0, 1, …")
@click.option("--first-seed", default=0, help="The first of these seeds.")
@click.option("--queries", default=50, help="Evaluations of a search.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Tables.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Results, JSON lines.")
def hybrid(
    names: Sequence[str], seeds: int, first_seed: int, queries: int, folder: Path, out: Path
) -> None:
    """Print regrets with a right and with a wrong proposer, paired with the agent alone.

    Searches that the file of results has are not run again.
    """
    rows = read(out)
    for name in names or TABLES:
        table = None
        for seed in range(first_seed, first_seed + seeds):
            for arm in ARMS:
                if (name, arm, seed) in rows:
                    continue

                table = table or TABLES[name](folder)
                row = {"table": name, "arm": arm, "seed": seed, "best": table.best}
                row |= search(table, arm, seed, queries)
                rows[name, arm, seed] = row
                with out.open("a") as file:
                    file.write(json.dumps(row) + "\n")

    print_summary(rows)


def read(path: Path) -> Rows:
    """Return the searches of a file of results; none without a file."""
    rows: Rows = {}
    if not path.exists():
        return rows

    for line in path.read_text().splitlines():
        row = json.loads(line)
        rows[row["table"], row["arm"], row["seed"]] = row

    return rows


def search(table: Table, arm: str, seed: int, queries: int) -> dict[str, Any]:
    """Return the scores of a search, and the numbers of overrides made and accepted."""
    coins = np.random.default_rng([seed, 1])
    draws = np.random.default_rng([seed, 2])
    trust = OverrideTrust()
    observations: list[Observation] = []
    made = 0
    accepted = 0
    while len(observations) < queries:
        history = History(tuple(observations))
        overrides = coins.random() < SHARE and arm != "portfolio" and bool(observations)
        prefers_best = coins.random() < RIGHT and arm == "right"
        count = SUGGESTIONS if overrides else 1
        proposals = table.agent.propose(history, count, generator(seed, history))
        suggestions = [proposal.architecture for proposal in proposals]
        network = suggestions[0]
        expected = None
        if overrides:
            preference = 1.0 if prefers_best else -1.0
            override = propose(table, history, suggestions, preference, trust, draws)
            made += 1
            if override.accepted:
                accepted += 1
                network = override.network
                expected = override.expected

        score = table.score(network)
        if expected is not None:
            trust = trust.with_result(expected, score)

        observations.append(Observation(network, score, f"search#{len(observations)}"))

    scores = [observation.score for observation in observations]
    return {"scores": scores, "overrides": {"made": made, "taken": accepted}}


def propose(
    table: Table,
    history: History,
    suggestions: Sequence[Architecture],
    preference: float,
    trust: OverrideTrust,
    rng: np.random.Generator,
) -> Override:
    """Return the override of a proposer.

    Args:
        table: The table.
        history: The results so far.
        suggestions: Suggestions of the agent, the first one is to be overridden.
        preference: 1 for the best network that the proposer sees, -1 for the worst.
        trust: How earlier overrides did.
        rng: Randomness of the changes.
    """
    best = history.usable[int(np.argmax(history.scores))].architecture
    candidates = {network.functional_key: network for network in suggestions}
    for number in range(CHANGES):
        child = best
        for _ in range(1 + number % STEPS):
            child = table.space.mutate(child, rng).child

        if child.functional_key not in history.known:
            candidates.setdefault(child.functional_key, child)

    networks = list(candidates.values())
    preferences = [preference * table.score(network) for network in networks]
    index = int(np.argmax(preferences))
    surrogate = study_surrogate.fit(table.space, history.usable).surrogate
    if surrogate is None:
        return Override(networks[index])

    means, stds = surrogate.predict(networks)
    expected = Expectation(float(means[index]), float(stds[index]))
    suggested = Expectation(float(means[0]), float(stds[0]))
    verdict = trust.judge(expected, suggested, float(history.scores.max()))
    return Override(networks[index], expected, verdict)


def _nb201(folder: Path) -> Table:
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.tabular import TabularTask

    os.environ["ARCHIVE_DATA_DIR"] = str(folder)
    task = registry.get("nb201-cifar10")
    assert isinstance(task, TabularTask)
    space = task.search_space()

    def score(network: Architecture) -> float:
        return 100.0 * sign(task.direction) * task.answer(network).value

    truths = [task.truth(member.functional_key)[0] for member in space.members() or ()]
    return Table(space, score, 100.0 * max(truths), agents.get("portfolio", space))


def _hw_gpt(folder: Path) -> Table:
    transformers = Transformers("s", folder)
    space = Parameters(transformers.space)

    def score(network: Architecture) -> float:
        return float(transformers.scores([space.named(network)])[0, 0])

    best = max(_climb(transformers, seed) for seed in range(RESTARTS))
    return Table(space, score, best, agents.get("portfolio", space))


def _climb(transformers: Transformers, seed: int) -> float:
    """Return the score at the end of a local search from a random transformer."""
    values = transformers.space.sample(np.random.default_rng(seed))
    score = -np.inf
    while True:
        neighbours = list(transformers.space.neighbours(values))
        scores = transformers.scores(neighbours)[:, 0]
        best = int(np.argmax(scores))
        if scores[best] <= score:
            return float(score)

        values = neighbours[best]
        score = scores[best]


def _fcnet(folder: Path) -> Table:
    from tests.benchmarks.parameters.problems import problem

    losses = problem("fcnet:protein_structure", folder)
    space = Parameters(losses.space)

    def score(network: Architecture) -> float:
        return losses.truth(space.named(network))

    return Table(space, score, losses.best, agents.get("portfolio", space))


TABLES: Mapping[str, Callable[[Path], Table]] = {
    "nb201": _nb201,
    "hw-gpt": _hw_gpt,
    "fcnet": _fcnet,
}


def print_summary(rows: Rows) -> None:
    """Print mean regrets, and paired differences from the agent alone with standard errors."""
    for name in TABLES:
        for arm in ARMS:
            pairs = []
            for (table, other, seed), row in sorted(rows.items()):
                alone = rows.get((name, "portfolio", seed))
                if table == name and other == arm and alone is not None:
                    pairs.append((row, alone))

            if len(pairs) > 1:
                click.echo(f"{name:8} {arm:10} {len(pairs):2}  {_summarise(pairs)}")


def _summarise(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    cells = []
    for count in POINTS:
        regrets = []
        for pair in pairs:
            regrets.append([row["best"] - max(row["scores"][:count]) for row in pair])

        values = np.array(regrets)
        differences = values[:, 0] - values[:, 1]
        error = differences.std(ddof=1) / len(differences) ** 0.5
        cells.append(f"{values[:, 0].mean():.3g} ({differences.mean():+.2g} +- {error:.2g})")

    made = sum(row["overrides"]["made"] for row, _ in pairs)
    accepted = sum(row["overrides"]["taken"] for row, _ in pairs)
    return f"{'  '.join(cells)}  {accepted} of {made} accepted"
