"""Fronts of language models: `python -m tests.benchmarks parameters-fronts`.

Perplexity against memory of HW-GPT-Bench (`transformers`), both learnt from the results: the share of
the hypervolume that a search reaches.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

if TYPE_CHECKING:
    from tests.benchmarks.parameters.transformers import Transformers

POINTS = (20, 40, 60, 100)
"""Numbers of evaluations of the summary."""


@click.command(short_help="Compare agents with two objectives beside other optimisers.")
@click.argument("agents", nargs=-1, required=True)
@click.option("--scale", type=click.Choice(["s", "m"]), default="s", show_default=True)
@click.option("--seeds", default=5, show_default=True, help="Number of searches of each.")
@click.option("--first-seed", default=0, help="The first of these seeds.")
@click.option("--queries", default=60, show_default=True, help="Evaluations of a search.")
@click.option("--folder", type=click.Path(path_type=Path), required=True, help="Tables.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="JSON lines.")
def parameters_fronts(
    agents: Sequence[str],
    scale: str,
    seeds: int,
    first_seed: int,
    queries: int,
    folder: Path,
    out: Path,
) -> None:
    """Print shares of the hypervolume after 20, 40 and 60 evaluations.

    Searches that the file of results has are not run again. Differences are paired, from the first
    agent.
    """
    from tests.benchmarks.parameters.transformers import Transformers

    rows = read(out)
    problem = Transformers(scale, folder)
    for seed in range(first_seed, first_seed + seeds):
        for agent in agents:
            if (scale, agent, seed) in rows:
                continue

            start = time.process_time()
            shares = search(problem, agent, seed, queries)
            seconds = round(time.process_time() - start, 1)
            row = {"scale": scale, "agent": agent, "seed": seed, "seconds": seconds}
            rows[scale, agent, seed] = {**row, "shares": shares}
            with out.open("a") as file:
                file.write(json.dumps(rows[scale, agent, seed]) + "\n")

    for agent in agents:
        click.echo(summarise(scale, agent, agents[0], rows))


def read(path: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Return the rows of a file of results by space, agent and seed; none without a file."""
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            rows[row["scale"], row["agent"], row["seed"]] = row

    return rows


def search(problem: Transformers, agent: str, seed: int, queries: int) -> list[float]:
    """Return the share of the hypervolume after each evaluation of one search."""
    from tests.benchmarks.parameters.peers import make

    optimiser = make(agent, problem.space, seed, noisy=False, queries=queries, objectives=2)
    scores = []
    for _ in range(queries):
        (score,) = problem.scores([optimiser.ask()])
        optimiser.tell(score.tolist())
        scores.append(score)

    shares: list[float] = problem.shares(np.array(scores)).round(6).tolist()
    return shares


def summarise(
    scale: str, agent: str, first: str, rows: Mapping[tuple[str, str, int], Mapping[str, Any]]
) -> str:
    """Return mean shares in percent with standard errors, and paired differences."""
    searches = [seed for space, name, seed in rows if (space, name) == (scale, agent)]
    pairs = sorted(seed for seed in searches if (scale, first, seed) in rows)
    if not pairs:
        return f"{agent:14}  0"

    shares = np.array([rows[scale, agent, seed]["shares"] for seed in pairs])
    others = np.array([rows[scale, first, seed]["shares"] for seed in pairs])
    cells = []
    for point in POINTS:
        if point <= shares.shape[1]:
            mean, error = _mean_and_error(100.0 * shares[:, point - 1])
            gap, spread = _mean_and_error(100.0 * (shares - others)[:, point - 1])
            cells.append(f"{mean:.2f} +- {error:.2f} ({gap:+.2f} +- {spread:.2f})")

    seconds = np.mean([rows[scale, agent, seed]["seconds"] for seed in pairs])
    return f"{agent:14} {len(pairs):2}  " + "  ".join(cells) + f"  {seconds:.0f} s"


def _mean_and_error(values: Any) -> tuple[float, float]:
    deviation = values.std(ddof=min(1, len(values) - 1))
    return float(values.mean()), float(deviation / len(values) ** 0.5)
