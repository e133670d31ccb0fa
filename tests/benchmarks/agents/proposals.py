"""Benchmark of the time of agents' proposals.

As in a search, one agent is called repeatedly, and its history grows by one evaluation between two
proposals: distances of earlier calls are cached. The first proposal of a resumed search, without a
cache, is measured for NASBOT, whose distances are expensive. All times are of one process with its
default number of threads.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from archive import agents, spaces
from archive.agents.base import Agent, History, Observation
from archive.architecture.layer_mass import total_mass
from archive.benchmarks.measurement import Figure
from archive.spaces.base import Space


@dataclass(frozen=True)
class Case:
    """One proposal to time.

    Attributes:
        kind: The agent.
        space: Its search space.
        observations: Size of the history: the initial pool of ten, the rest mutations.
        batch: Networks to suggest at once.
        seconds: Goal of the time of a proposal; None for no goal.
        resumed: Whether the agent is new, with an empty cache.
    """

    kind: str
    space: str
    observations: int
    batch: int = 1
    seconds: float | None = None
    resumed: bool = False

    @property
    def name(self) -> str:
        """Title of the case in a report."""
        what = "one proposal" if self.batch == 1 else f"{self.batch} proposals"
        when = ", just resumed" if self.resumed else ""
        return f"{self.kind}: {what} on {self.space}, {self.observations} observations{when}"


CASES = (
    Case("nasbot", "cnn", 20, seconds=3.0, resumed=True),
    Case("nasbot", "mlp", 20, seconds=3.0, resumed=True),
    Case("nasbot", "cnn", 100, seconds=2.0),
    Case("tw", "nasbench201", 200, seconds=0.2),
    Case("tw", "nasbench201", 1000, seconds=1.0),
    Case("tw-kdpp", "nasbench201", 200, batch=5),
    Case("bananas", "nasbench201", 200, batch=10, seconds=0.5),
    Case("bananas", "nasbench201", 200, seconds=0.5),
    Case("bananas", "nasbench201", 1000, seconds=2.0),
    Case("portfolio", "nasbench201", 200),
    Case("gp-wl", "nasbench201", 200),
    Case("morphism", "cnn", 100, seconds=2.0),
    Case("evolution", "cnn", 20),
    Case("rand", "cnn", 20),
    Case("random", "cnn", 20),
)


def measure(cases: Sequence[Case] = CASES, repeats: int = 5, seed: int = 0) -> Iterator[Figure]:
    """Measure the median time of a proposal.

    Args:
        cases: The proposals to time.
        repeats: Number of proposals; a figure is their median.
        seed: Seed of the histories and of the proposals.

    Yields:
        One figure a case, in seconds.
    """
    for case in cases:
        goal = None if case.seconds is None else f"<= {case.seconds:g}"
        yield Figure(case.name, _median_seconds(case, repeats, seed), "s", goal)


def walk(space: Space, observations: int, rng: np.random.Generator) -> History:
    """Return a history like that of a search: the initial pool, then mutations of earlier networks.

    Scores are noisy and highest for networks of medium mass, so that a surrogate can learn them.
    """
    networks = {network.functional_key: network for network in space.initial_pool()[:observations]}
    while len(networks) < observations:
        parent = list(networks.values())[rng.integers(len(networks))]
        child = space.mutate(parent, rng).child
        networks.setdefault(child.functional_key, child)

    # A cell may have no layer.
    masses = np.log1p([total_mass(network) for network in networks.values()])
    scores = (
        0.9 - 0.01 * np.square(masses - masses.mean()) + 0.005 * rng.standard_normal(len(masses))
    )
    pairs = enumerate(zip(networks.values(), scores, strict=True))
    return History(
        tuple(
            Observation(network, float(score), f"bench#{at:05d}") for at, (network, score) in pairs
        )
    )


def _median_seconds(case: Case, repeats: int, seed: int) -> float:
    space = spaces.get(case.space)
    seen = walk(space, case.observations, np.random.default_rng(seed)).observations
    agent = agents.get(case.kind, space)
    # An untimed proposal loads compiled code and fills the agent's cache.
    agent.propose(
        History(seen[: max(len(seen) - repeats, 1)]), case.batch, np.random.default_rng(seed)
    )
    times = []
    for turn in range(1, repeats + 1):
        if case.resumed:
            agent = agents.get(case.kind, space)
            history = History(seen)
        else:
            history = History(seen[: max(len(seen) - repeats + turn, 1)])

        times.append(_seconds(agent, history, case.batch, seed + turn))

    return statistics.median(times)


def _seconds(agent: Agent, history: History, batch: int, seed: int) -> float:
    begin = time.perf_counter()
    agent.propose(history, batch, np.random.default_rng(seed))
    return time.perf_counter() - begin
