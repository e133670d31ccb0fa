"""Agents beside other optimisers on spaces of parameters: `python -m tests.benchmarks parameters`.

| result    | recommended configuration after a number of evaluations                             |
|-----------|-------------------------------------------------------------------------------------|
| `regrets` | what the optimiser itself delivers: Optuna its best observed trial, `random` too;   |
|           | BoTorch and the agents with a model the greatest posterior mean where there is noise|
| `judged`  | with noise: the greatest posterior mean of one model, the archive's, of the history |
|           | of each optimiser                                                                   |

All optimisers have the same noise by seed. Without noise every recommendation is the best observed
configuration.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

POINTS = (20, 50, 100)
"""Numbers of evaluations of the summary."""
EVERY = 10
"""Evaluations between two regrets of a curve."""

Curve = dict[int, float]
Curves = dict[tuple[str, int], Curve]
"""Curves by problem and seed."""


@click.command(short_help="Compare agents on spaces of parameters beside other optimisers.")
@click.argument("agents", nargs=-1, required=True)
@click.option("--problem", "problems", multiple=True, required=True, help="See `problems`.")
@click.option("--seeds", default=3, help="Number of searches of each, with the seeds 0, 1, …")
@click.option("--first-seed", default=0, help="The first of these seeds.")
@click.option("--queries", default=100, help="Evaluations of a search.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Tables.")
@click.option("--out", type=click.Path(path_type=Path), help="File of results: JSON lines.")
def parameters(
    agents: Sequence[str],
    problems: Sequence[str],
    seeds: int,
    first_seed: int,
    queries: int,
    folder: Path,
    out: Path | None,
) -> None:
    """Print regrets of the recommended configurations after 20, 50 and 100 evaluations.

    Searches that the file of results has are not run again. Differences are paired, from the first
    agent.
    """
    rows = read(out)
    for seed in range(first_seed, first_seed + seeds):
        for name in problems:
            for agent in agents:
                if (name, agent, seed) in rows:
                    continue

                start = time.process_time()
                result = run(agent, name, seed, queries, folder)
                seconds = round(time.process_time() - start, 1)
                row = {"problem": name, "agent": agent, "seed": seed, **result, "seconds": seconds}
                rows[name, agent, seed] = row
                text = json.dumps(row)
                click.echo(text)
                if out is not None:
                    with out.open("a") as file:
                        file.write(text + "\n")

    print_summary(list(rows.values()), agents[0])


def read(path: Path | None) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Return the rows of a file of results by problem, agent and seed; none without a file."""
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    if path is None or not path.exists():
        return rows

    for line in path.read_text().splitlines():
        row = json.loads(line)
        for kind in ("regrets", "judged"):
            row[kind] = {int(count): regret for count, regret in row[kind].items()}

        rows[row["problem"], row["agent"], row["seed"]] = row

    return rows


def run(agent: str, name: str, seed: int, queries: int, folder: Path) -> dict[str, Curve]:
    """Return the regrets of one search by the number of evaluations, own and judged by one model."""
    from tests.benchmarks.parameters.peers import make
    from tests.benchmarks.parameters.problems import problem

    task = problem(name, folder)
    optimiser = make(agent, task.space, seed, noisy=task.noisy, queries=queries)
    noise = np.random.default_rng([seed, 7])
    configurations = []
    scores = []
    regrets: Curve = {}
    judged: Curve = {}
    for query in range(1, queries + 1):
        configuration = dict(optimiser.ask())
        score = task.draw(configuration, noise)
        optimiser.tell([score])
        configurations.append(configuration)
        scores.append(score)
        if query % EVERY == 0:
            regrets[query] = task.best - task.truth(optimiser.recommended())
            if task.noisy:
                best = _judge(task.space, configurations, scores)
                judged[query] = task.best - task.truth(configurations[best])

    return {"regrets": regrets, "judged": judged}


def _judge(space: Any, configurations: Sequence[Mapping[str, Any]], scores: Sequence[float]) -> int:
    """Return the index of the greatest posterior mean of the archive's models."""
    from archive import spaces
    from archive.agents.base import Observation
    from archive.agents.configurations.search import estimate

    searched = spaces.get("parameters", parameters=space)
    networks = [searched.of_names(values) for values in configurations]
    observations = []
    for number, (network, score) in enumerate(zip(networks, scores, strict=True)):
        observations.append(Observation(network, score=score, id=str(number), seed=number))

    estimated = estimate(searched, observations, networks)
    assert estimated is not None, "all configurations are of the space"
    return int(np.argmax(estimated[0]))


def print_summary(rows: Sequence[Mapping[str, Any]], first: str) -> None:
    """Print mean regrets with standard errors, and paired differences from the first agent.

    A family is all problems of a kind with or without noise; its regrets are divided by the mean
    regret of `random` after 20 evaluations of the same problem. At the end of a line is how many
    times fewer evaluations the first agent needs to the mean regret of the other at the end.
    """
    for kind in ("regrets", "judged"):
        curves: dict[tuple[str, str], Curves] = {}
        for row in rows:
            if row[kind]:
                key = (str(row["problem"]), str(row["agent"]))
                curves.setdefault(key, {})[row["problem"], int(row["seed"])] = row[kind]

        if curves:
            click.echo(f"\n{kind}: mean +- standard error (paired difference from {first})")

        for name, agent in sorted(curves):
            if (name, first) in curves:
                click.echo(_summarise(name, agent, curves[name, agent], curves[name, first]))

        families = _families(curves)
        for name, agent in sorted(families):
            if (name, first) in families:
                click.echo(_summarise(name, agent, families[name, agent], families[name, first]))


def _families(curves: Mapping[tuple[str, str], Curves]) -> dict[tuple[str, str], Curves]:
    """Return the curves of families of problems, in units of random search on each problem."""
    families: dict[tuple[str, str], Curves] = {}
    for (name, agent), by_seed in curves.items():
        reference = curves.get((name, "random"), {})
        usual = [curve[POINTS[0]] for curve in reference.values() if POINTS[0] in curve]
        if not usual or not np.mean(usual):
            continue

        kind, _, rest = name.partition(":")
        _, plus, form = rest.partition("+")
        family = families.setdefault((f"all {kind}{plus}{form}", agent), {})
        for key, curve in by_seed.items():
            family[key] = {count: regret / np.mean(usual) for count, regret in curve.items()}

    return families


def _summarise(name: str, agent: str, curves: Curves, own: Curves) -> str:
    searches = sorted(set(curves) & set(own))
    cells = []
    for point in POINTS:
        pairs = []
        for search in searches:
            if point in curves[search] and point in own[search]:
                pairs.append((curves[search][point], own[search][point]))

        if pairs:
            regrets, others = np.array(pairs).T
            mean, error = _mean_and_error(regrets)
            difference, spread = _mean_and_error(regrets - others)
            cells.append(f"{mean:.3g} +- {error:.2g} ({difference:+.2g} +- {spread:.2g})")

    line = f"{name:26} {agent:12} {len(searches):2}  " + "  ".join(cells)
    return f"{line}  {_speedup(searches, curves, own)}" if searches else line


def _speedup(searches: Sequence[tuple[str, int]], curves: Curves, own: Curves) -> str:
    end = min(max(curves[search]) for search in searches)
    reached = np.mean([curves[search][end] for search in searches])
    for count in range(EVERY, end + 1, EVERY):
        if np.mean([own[search][count] for search in searches]) <= reached:
            return f"x{end / count:.1f}"

    return "not reached"


def _mean_and_error(values: Any) -> tuple[float, float]:
    deviation = values.std(ddof=min(1, len(values) - 1))
    return float(values.mean()), float(deviation / len(values) ** 0.5)
