"""Benchmark of the edit distance's and the Bourgain embedding's accuracy and speed.

Speeds are for one pair of networks, amortised over a Gram matrix of prepared networks, in the time
of one core. The reference computes equations (3) to (8) of the paper pair by pair: a dynamic
programme in Python, a matrix of d_s in Python, and scipy's `linear_sum_assignment`, with the common
parts of two networks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.kernels.distances.bourgain import Bourgain
from archive.kernels.distances.edit import EditDistance, Sequenced
from tests.benchmarks.kernels.samples import SPACES, best_seconds, walk

Floats = NDArray[np.float64]

RELATIVE_ERROR = "<= 1e-9"


def measure(networks: int = 60, seed: int = 0) -> Iterator[Figure]:
    """Measure errors and speeds.

    Args:
        networks: Networks of each space to time, the initial pool and mutations of it.
        seed: Seed of the mutations and of the choice of pairs.

    Yields:
        The rows, in the order to show them.
    """
    for space in SPACES:
        sample = walk(space, networks, np.random.default_rng(seed))
        yield from _speed_rows(space, sample, np.random.default_rng(seed))
        yield from _embedding_rows(space, sample)


def reference_distance(first: Sequenced, second: Sequenced, lam: float) -> float:
    """Return the distance of one pair by equations (3), (6) and (7), without shortcuts."""
    from scipy.optimize import linear_sum_assignment

    one = _layers(first)
    two = _layers(second)
    row = [float(j) for j in range(len(two) + 1)]
    for i, x in enumerate(one, 1):
        above = row
        row = [float(i)]
        for j, y in enumerate(two, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + _layer_distance(x, y)))

    skips = first.skips.tolist()
    other_skips = second.skips.tolist()
    cost = np.array([[_skip_distance(a, b) for b in other_skips] for a in skips]).reshape(
        len(skips), len(other_skips)
    )
    matched = float(cost[linear_sum_assignment(cost)].sum())
    return row[-1] + lam * (matched + abs(len(skips) - len(other_skips)))


def _layers(network: Sequenced) -> list[tuple[int, float, list[float]]]:
    return list(
        zip(
            network.kinds.tolist(),
            network.scales.tolist(),
            network.attributes.tolist(),
            strict=True,
        )
    )


def _layer_distance(x: tuple[int, float, list[float]], y: tuple[int, float, list[float]]) -> float:
    """Eq. (5), and 1 for layers of two kinds."""
    if x[0] != y[0]:
        return 1.0

    return x[1] * sum(abs(a - b) / max(a, b) for a, b in zip(x[2], y[2], strict=True) if a != b)


def _skip_distance(a: list[int], b: list[int]) -> float:
    """Eq. (8), and 1 for skips of two kinds."""
    if a[0] != b[0]:
        return 1.0

    below = max(a[1], b[1]) + max(a[2], b[2])
    return (abs(a[1] - b[1]) + abs(a[2] - b[2])) / below if below else 0.0


def _speed_rows(
    name: str, sample: Sequence[Architecture], rng: np.random.Generator
) -> list[Figure]:
    one = EditDistance(threads=1)
    prepared = [one.prepare(architecture) for architecture in sample]
    pairs = len(sample) * (len(sample) - 1) / 2
    single = best_seconds(lambda: one.distances(prepared), time.thread_time)
    preparing = best_seconds(
        lambda: [one.prepare(architecture) for architecture in sample], time.thread_time
    )
    seconds, difference = _naive(one, prepared, rng)
    return [
        Figure(f"edit, {name}: a pair, one core", 1e6 * single / pairs, "us", None, 1e6 * seconds),
        Figure(f"edit, {name}: preparing a network", 1e6 * preparing / len(sample), "us"),
        Figure(
            f"edit, {name}: largest relative difference from the reference",
            difference,
            "",
            RELATIVE_ERROR,
        ),
    ]


def _naive(
    edit: EditDistance, prepared: Sequence[Sequenced], rng: np.random.Generator, count: int = 100
) -> tuple[float, float]:
    """Return the reference's seconds a pair, and the largest relative difference between both."""
    every = list(combinations(range(len(prepared)), 2))
    chosen = [every[at] for at in rng.permutation(len(every))[:count]]
    reference_distance(prepared[0], prepared[1], edit.lam)
    begin = time.thread_time()
    expected = np.array([reference_distance(prepared[i], prepared[j], edit.lam) for i, j in chosen])
    seconds = (time.thread_time() - begin) / len(chosen)
    distances = edit.distances(prepared).unnormalised[0]
    actual = np.array([distances[i, j] for i, j in chosen])
    return seconds, float(np.max(np.abs(actual - expected) / np.where(expected > 0, expected, 1.0)))


def _embedding_rows(name: str, sample: Sequence[Architecture]) -> list[Figure]:
    distances = EditDistance(threads=1).distances(sample).unnormalised[0]
    embedding = Bourgain.fit(distances)
    seconds = best_seconds(lambda: Bourgain.fit(distances).kernel(), time.thread_time)
    title = f"bourgain, {len(sample)} {name} networks"
    smallest = float(np.linalg.eigvalsh(embedding.kernel())[0])
    raw = float(np.linalg.eigvalsh(np.exp(-(distances**2)))[0])
    return [
        Figure(f"{title}: fit and kernel", 1e3 * seconds, "ms"),
        Figure(
            f"{title}: distortion, beside ln n",
            embedding.distortion(distances),
            "",
            None,
            float(np.log(len(sample))),
        ),
        Figure(
            f"{title}: smallest eigenvalue, beside that of exp(-d^2)",
            smallest,
            "",
            ">= -1e-12",
            raw,
        ),
    ]
