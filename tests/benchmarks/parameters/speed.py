"""Processor time of a proposal on forty parameters: `python -m tests.benchmarks parameters-speed`."""

from __future__ import annotations

import time

import click
import numpy as np

from archive import agents, space, spaces
from archive.agents.base import Agent, History
from archive.agents.observations import Observation
from archive.spaces.parameters import Parameters


@click.command("parameters-speed", short_help="Time proposals on forty mixed parameters.")
@click.option("--agent", default="portfolio", show_default=True, help="Name of the agent.")
@click.option("--rounds", default=3, show_default=True, help="Histories of each size.")
def parameters_speed(agent: str, rounds: int) -> None:
    """Print medians of the processor time of a proposal after 200 and 1,000 results.

    An agent is new for each proposal, as after a restart of a search.
    """
    searched = spaces.get("parameters", parameters=forty())
    assert isinstance(searched, Parameters), "the space of this name"
    _seconds(agents.get(agent, searched), _history(searched, 20, 0))
    for count in (200, 1000):
        seconds = []
        for seed in range(rounds):
            history = _history(searched, count, seed)
            seconds.append(_seconds(agents.get(agent, searched), history))

        click.echo(f"{agent} after {count} results: {np.median(seconds):.2f} s a proposal")


def forty() -> space.Space:
    """Return forty parameters: reals, logarithms, choices, and conditional whole numbers."""
    named = {}
    for index in range(14):
        named[f"real{index}"] = space.real(0.0, 1.0)
        named[f"log{index}"] = space.real(1e-5, 0.1, log=True)

    for index in range(6):
        named[f"choice{index}"] = space.choice(["a", "b", "c"])
        named[f"of{index}"] = space.integer(1, 12, when=f"choice{index} == 'a'")

    return space.Space(named)


def _history(searched: Parameters, count: int, seed: int) -> History:
    rng = np.random.default_rng(seed)
    observations = []
    for number in range(count):
        network = searched.sample(rng)
        score = float(searched.named(network)["real0"]) + float(rng.normal(0.0, 0.01))
        observations.append(Observation(network, score=score, id=str(number)))

    return History(tuple(observations))


def _seconds(agent: Agent, history: History) -> float:
    start = time.process_time()
    agent.propose(history, 1, np.random.default_rng(0))
    return time.process_time() - start
