"""Benchmark of the Wasserstein and Gromov-Wasserstein distances' speed.

Figures are for one pair of networks with all components of the distance, amortised over a matrix of
all pairs of prepared networks. The reference follows the papers' authors: it calls POT pair by pair
from the architectures, without a cache.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.kernels.base import Distance
from archive.kernels.distances.gromov_wasserstein import GromovWasserstein
from archive.kernels.distances.wasserstein import Wasserstein, pot
from tests.benchmarks.kernels.samples import SPACES, best_seconds, draw

DIFFERENCE = "<= 1e-9"


def measure(networks: int = 30, seed: int = 0, pairs: int = 60) -> Iterator[Figure]:
    """Measure both distances in every space.

    Args:
        networks: Networks of each space, random members.
        seed: Seed of the members.
        pairs: Pairs that the reference computes.

    Returns:
        The figures, in the order to show them.
    """
    # The import, and compilation without a cache, do not belong to the time of a pair.
    pot()
    for space in SPACES:
        sample = draw(space, networks, np.random.default_rng(seed))
        every = list(combinations(range(len(sample)), 2))
        chosen = [every[at] for at in np.random.default_rng(seed).permutation(len(every))[:pairs]]
        yield from _wasserstein(space, sample, chosen)
        yield from _gromov(space, sample, chosen)


def _wasserstein(
    space: str, sample: Sequence[Architecture], chosen: Sequence[tuple[int, int]]
) -> list[Figure]:
    distance = Wasserstein(threads=1)
    prepared = [distance.prepare(network) for network in sample]
    stack = distance.distances(prepared).stack
    seconds = best_seconds(lambda: distance.distances(prepared), time.thread_time, repeats=5)
    reference, expected = _reference(Wasserstein(solver="pot"), sample, chosen)
    difference = max(
        float(np.abs(stack[:, i, j] - e).max()) for (i, j), e in zip(chosen, expected, strict=True)
    )
    count = len(sample) * (len(sample) - 1) / 2
    name = f"wasserstein, {space}: {len(distance.components)} nu_str"
    return [
        Figure(f"{name}, a pair, one core", 1e6 * seconds / count, "us", None, 1e6 * reference),
        Figure(f"{name}, largest difference from POT", difference, "", DIFFERENCE),
    ]


def _gromov(
    space: str, sample: Sequence[Architecture], chosen: Sequence[tuple[int, int]]
) -> list[Figure]:
    distance = GromovWasserstein()
    prepared = [distance.prepare(network) for network in sample]
    seconds = best_seconds(lambda: distance.distances(prepared), time.thread_time, repeats=1)
    begin = time.thread_time()
    for i, j in chosen:
        # A new instance has an empty cache.
        GromovWasserstein().distances([sample[i]], [sample[j]])

    reference = (time.thread_time() - begin) / len(chosen)
    count = len(sample) * (len(sample) - 1) / 2
    name = f"gromov-wasserstein, {space}: {distance.starts} starts, a pair"
    return [Figure(name, 1e6 * seconds / count, "us", None, 1e6 * reference)]


def _reference(
    distance: Distance[Any], sample: Sequence[Architecture], chosen: Sequence[tuple[int, int]]
) -> tuple[float, list[Any]]:
    """Return the mean seconds of a pair from the architectures, and the distances."""
    begin = time.thread_time()
    distances = [distance.distances([sample[i]], [sample[j]]).stack[:, 0, 0] for i, j in chosen]
    return (time.thread_time() - begin) / len(chosen), distances
