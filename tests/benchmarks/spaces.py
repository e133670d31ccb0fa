"""Benchmark of mutations."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from archive import spaces
from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure

_SIZES = ((20, 30), (31, 45), (46, 60))


def measure(mutations: int = 1500, seed: int = 0) -> Iterator[Figure]:
    """Measure the mean time of one mutation, all its steps and the check of its result included.

    Args:
        mutations: Number of mutations for each mean.
        seed: Seed of the networks and of the mutations.

    Yields:
        One figure for each space and range of sizes, in milliseconds.
    """
    for name in ("cnn", "mlp"):
        for low, high in _SIZES:
            milliseconds = _mean_milliseconds(
                name, low, high, mutations, np.random.default_rng(seed)
            )
            yield Figure(f"one {name} mutation, {low} to {high} layers", milliseconds, "ms", "<= 1")


def _mean_milliseconds(
    name: str, low: int, high: int, mutations: int, rng: np.random.Generator
) -> float:
    space = spaces.get(name)
    parents = _networks(space, low, high, rng)
    for parent in parents:
        # Cached properties of the parents are computed before the measurement, as in a search.
        space.validate(parent)

    begin = time.perf_counter()
    for turn in range(mutations):
        space.mutate(parents[turn % len(parents)], rng)

    return (time.perf_counter() - begin) / mutations * 1000


def _networks(
    space: spaces.Space, low: int, high: int, rng: np.random.Generator, count: int = 50
) -> list[Architecture]:
    """Return networks of these sizes, from random walks that start in the initial pool."""
    networks: list[Architecture] = []
    pool = space.initial_pool()
    walker = pool[0]
    while len(networks) < count:
        walker = space.mutate(walker, rng).child
        size = len(walker.layers)
        if low <= size <= high:
            networks.append(walker)

        if size > high or rng.random() < 0.02:
            walker = pool[int(rng.integers(len(pool)))]

    return networks
