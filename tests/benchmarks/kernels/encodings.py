"""Benchmark of the encodings' speed, relative to the pairwise computation of the papers' code.

Speeds are for blocks of 1,000 x 1,000 cells of NAS-Bench-101 and NAS-Bench-201, drawn from the
spaces, and for the preparation of one network. The reference has the same features and compares
pair by pair, as BANANAS' code does: numpy counts or sums the differences of two vectors, and the
Weisfeiler-Lehman distance sums over two dictionaries. It is timed on some of the pairs and
extrapolated to all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.kernels.base import Floats
from archive.kernels.features.adjacency import (
    AdjacencyEncoding,
    ContinuousAdjacencyEncoding,
    Hamming,
)
from archive.kernels.features.embedding import Embedded, EmbeddedDistance, matrix, vocabulary
from archive.kernels.features.paths import PathEncoding, every_path
from archive.kernels.features.weisfeiler_lehman import WeisfeilerLehman
from tests.benchmarks.kernels.samples import best_seconds, draw

SPACES = ("nasbench101", "nasbench201")
DIFFERENCE = 1e-9


def measure(networks: int = 1_000, pairs: int = 2_000, seed: int = 0) -> Iterator[Figure]:
    """Measure sizes, speeds, and the largest difference from the reference.

    Args:
        networks: Rows and columns of a block.
        pairs: Pairs that the reference is timed on.
        seed: Seed of the networks and of the pairs.

    Yields:
        The figures, in the order to show them.
    """
    yield Figure("path: features on nasbench101", len(every_path("nasbench101")), "", "= 364", 364)
    # Eight operations, the zero operation among them, four at most on a path; two cells of two
    # inputs each.
    yield Figure("path: features on darts", len(every_path("darts")), "", "= 18724", 18724)
    for space in SPACES:
        sample = draw(space, networks, np.random.default_rng(seed))
        for kernel in _kernels():
            yield from _figures(kernel, space, sample, pairs, np.random.default_rng(seed))


def _kernels() -> list[EmbeddedDistance]:
    return [
        PathEncoding(),
        AdjacencyEncoding(),
        ContinuousAdjacencyEncoding(),
        Hamming(),
        WeisfeilerLehman(),
    ]


def _figures(
    kernel: EmbeddedDistance,
    space: str,
    sample: Sequence[Architecture],
    pairs: int,
    rng: np.random.Generator,
) -> list[Figure]:
    # A cached canonical order would cost nothing.
    fresh = [Architecture(network.space, network.layers, network.edges) for network in sample]
    preparing = best_seconds(lambda: [kernel.prepare(network) for network in fresh], repeats=1)
    prepared = [kernel.prepare(network) for network in fresh]
    m = len(prepared)
    block = best_seconds(lambda: kernel.distances(prepared, prepared))
    chosen = rng.integers(m, size=(pairs, 2))
    compare = reference(kernel, prepared)
    expected = np.empty(pairs)

    def one_by_one() -> None:
        for at, (i, j) in enumerate(chosen):
            expected[at] = compare(i, j)

    naive = best_seconds(one_by_one, repeats=3) / pairs * m * m
    actual = kernel.distances(prepared, prepared).stack[0][chosen[:, 0], chosen[:, 1]]
    name = f"{kernel.name}, {space}"
    return [
        Figure(f"{name}: a block of {m} x {m}", block, "s", None, naive),
        Figure(f"{name}: preparing a network", 1e6 * preparing / m, "us"),
        Figure(
            f"{name}: largest difference from the reference",
            float(np.max(np.abs(actual - expected), initial=0.0)),
            "",
            f"<= {DIFFERENCE:g}",
        ),
    ]


def reference(
    kernel: EmbeddedDistance, prepared: Sequence[Embedded]
) -> Callable[[int, int], float]:
    """Return the distance of one pair as the papers' code computes it, from features made ready for
    that.
    """
    if isinstance(kernel, WeisfeilerLehman):
        counts = [network.features[0] for network in prepared]
        return lambda i, j: _dictionary_distance(counts[i], counts[j])

    dense = matrix(prepared, vocabulary(prepared))
    if kernel.norm == "l1":
        return lambda i, j: float(np.sum(np.abs(dense[i] - dense[j])))

    return lambda i, j: _euclidean(dense[i], dense[j])


def _dictionary_distance(x: Mapping[str, float], y: Mapping[str, float]) -> float:
    total = 0.0
    for name in {*x, *y}:
        total += (x.get(name, 0.0) - y.get(name, 0.0)) ** 2

    return math.sqrt(total)


def _euclidean(x: Floats, y: Floats) -> float:
    return float(np.sqrt(np.sum((x - y) ** 2)))
