"""Networks and clocks that the benchmarks of kernels share."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from archive import spaces
from archive.architecture.graph import Architecture

SPACES = ("cnn", "mlp", "nasbench101", "nasbench201")


def walk(name: str, count: int, rng: np.random.Generator) -> list[Architecture]:
    """Return networks like those of a search: the space's initial pool, then mutations of earlier
    networks.
    """
    space = spaces.get(name)
    networks = space.initial_pool()[:count]
    while len(networks) < count:
        networks.append(space.mutate(networks[int(rng.integers(len(networks)))], rng).child)

    return networks


def draw(name: str, count: int, rng: np.random.Generator) -> list[Architecture]:
    """Return independent draws from a space."""
    space = spaces.get(name)
    return [space.sample(rng) for _ in range(count)]


def relabelled(architecture: Architecture, rng: np.random.Generator) -> Architecture:
    """Return the same network with its layers in a random order."""
    order = rng.permutation(len(architecture.layers)).tolist()
    position = {old: new for new, old in enumerate(order)}
    edges = [(position[tail], position[head]) for tail, head in architecture.edges]
    return Architecture(architecture.space, [architecture.layers[old] for old in order], edges)


def best_seconds(
    work: Callable[[], object], clock: Callable[[], float] = time.perf_counter, repeats: int = 7
) -> float:
    """Return the least time of several runs: the time without other load on the machine."""
    times = []
    for _ in range(repeats):
        begin = clock()
        work()
        times.append(clock() - begin)

    return min(times)
