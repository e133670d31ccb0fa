"""How long agents take to decide, for `archive bench`."""

from __future__ import annotations

import statistics
import time

import numpy as np

from archive import agents, spaces
from archive.agents.base import History, Observation
from archive.figures import Figure
from archive.mass import total_mass
from archive.spaces.base import Space


def measure(observations: int = 20, repeats: int = 5, seed: int = 0) -> list[Figure]:
    """Measure the median time of one proposal.

    Every repeat asks a new agent, whose memory of distances is empty, and another seed: what a search pays that was
    just resumed. A first proposal that is not counted loads what is compiled.

    Args:
        observations: Size of the history; with a pool of ten, ten of them or more are mutations.
        repeats: Proposals a figure is the median of.
        seed: Seed of the histories and of the proposals.

    Returns:
        One row an agent and a space, in seconds; the goal is NASBOT's alone.
    """
    found = []
    for space in map(spaces.get, ("cnn", "mlp")):
        history = walk(space, observations, np.random.default_rng(seed))
        for kind in ("nasbot", "rand", "evolution", "random"):
            seconds = _median_seconds(kind, space, history, repeats, seed)
            name = f"one {kind} proposal on {space.name}, {observations} observations"
            found.append(Figure(name, seconds, "s", "<= 3" if kind == "nasbot" else None))
    return found


def walk(space: Space, observations: int, rng: np.random.Generator) -> History:
    """Return a history as a search leaves it: the initial pool, then mutations of what came before.

    Scores are noisy and favour networks of middling mass, so that there is something to learn.
    """
    found = {network.functional_key: network for network in space.initial_pool()[:observations]}
    while len(found) < observations:
        parent = list(found.values())[rng.integers(len(found))]
        child = space.mutate(parent, rng).child
        found.setdefault(child.functional_key, child)
    masses = np.log([total_mass(network) for network in found.values()])
    scores = 0.9 - 0.01 * np.square(masses - masses.mean()) + 0.005 * rng.standard_normal(len(masses))
    pairs = enumerate(zip(found.values(), scores, strict=True))
    return History(tuple(Observation(network, float(score), f"bench#{at:05d}") for at, (network, score) in pairs))


def _median_seconds(kind: str, space: Space, history: History, repeats: int, seed: int) -> float:
    agents.get(kind, space).propose(history, 1, np.random.default_rng(seed))
    return statistics.median(_seconds(kind, space, history, seed + 1 + turn) for turn in range(repeats))


def _seconds(kind: str, space: Space, history: History, seed: int) -> float:
    agent = agents.get(kind, space)
    begin = time.perf_counter()
    agent.propose(history, 1, np.random.default_rng(seed))
    return time.perf_counter() - begin
