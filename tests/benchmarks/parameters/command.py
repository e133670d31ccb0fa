"""Agents beside other optimisers on spaces of parameters: `python -m tests.benchmarks parameters`."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

POINTS = (20, 50, 100)


@click.command(short_help="Compare agents on spaces of parameters beside other optimisers.")
@click.argument("agents", nargs=-1, required=True)
@click.option("--problem", "problems", multiple=True, required=True, help="See `problems`.")
@click.option("--seeds", default=3, help="Number of searches of each, with the seeds 0, 1, …")
@click.option("--first-seed", default=0, help="The first of these seeds.")
@click.option("--queries", default=100, help="Evaluations of a search.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Tables.")
@click.option("--out", type=click.Path(path_type=Path), help="File of regrets: JSON lines.")
def parameters(
    agents: Sequence[str],
    problems: Sequence[str],
    seeds: int,
    first_seed: int,
    queries: int,
    folder: Path,
    out: Path | None,
) -> None:
    """Print regrets of the recommended configurations after 20, 50 and 100 evaluations."""
    regrets: dict[tuple[str, str], dict[int, list[float]]] = {}
    for name in problems:
        for seed in range(first_seed, first_seed + seeds):
            for agent in agents:
                start = time.process_time()
                row = run(agent, name, seed, queries, folder)
                regrets.setdefault((name, agent), {})[seed] = row
                line = {
                    "problem": name,
                    "agent": agent,
                    "seed": seed,
                    "regrets": row,
                    "seconds": round(time.process_time() - start, 1),
                }
                text = json.dumps(line)
                click.echo(text)
                if out is not None:
                    with out.open("a") as file:
                        file.write(text + "\n")

    print_summary(regrets, agents[0])


def run(agent: str, name: str, seed: int, queries: int, folder: Path) -> list[float]:
    """Return the regrets of one search at the points; all agents have the same noise by seed."""
    from tests.benchmarks.parameters.peers import make
    from tests.benchmarks.parameters.problems import problem

    task = problem(name, folder)
    optimiser = make(agent, task.space, seed, noisy=task.noisy)
    noise = np.random.default_rng([seed, 7])
    regrets = []
    for query in range(1, queries + 1):
        configuration = optimiser.ask()
        optimiser.tell(task.draw(configuration, noise))
        if query in POINTS:
            regrets.append(task.best - task.truth(optimiser.recommended()))

    return regrets


def print_summary(regrets: dict[tuple[str, str], dict[int, list[float]]], first: str) -> None:
    """Print means with standard errors, and paired differences from the first agent."""
    for (name, agent), by_seed in regrets.items():
        rows = np.array([by_seed[seed] for seed in sorted(by_seed)])
        own = regrets[(name, first)]
        apart = rows - np.array([own[seed] for seed in sorted(by_seed)])
        count = max(1, len(rows)) ** 0.5
        cells = []
        for point in range(rows.shape[1]):
            column = rows[:, point]
            error = column.std(ddof=min(1, len(rows) - 1)) / count
            difference = apart[:, point]
            spread = difference.std(ddof=min(1, len(rows) - 1)) / count
            cells.append(
                f"{column.mean():.4g} +- {error:.2g} ({difference.mean():+.3g} +- {spread:.2g})"
            )

        click.echo(f"{name:28} {agent:14} " + "  ".join(cells))
