"""Benchmark of tree-Wasserstein's accuracy and speed: appendix F, and all cells of NAS-Bench-201.

The cells are enumerated here, so that no table is needed. The whole Gram matrix is computed in a
separate process, whose peak memory the system reports. References: the linear program of exact
transport, with the tree's metric as cost, pair by pair; equation (2) pair by pair in Python; and
scipy's `cdist` on dense embeddings, prepared before the timing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from archive.architecture.codec import from_nasbench201
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import vocabulary as operations_of
from archive.benchmarks.measurement import Figure
from archive.kernels.distances.tree_wasserstein.distance import TreeWasserstein
from archive.kernels.distances.tree_wasserstein.measures import (
    Gram,
    cumulate,
    degrees,
    gram_path,
    ngrams,
)
from archive.kernels.distances.tree_wasserstein.operation_trees import default_tree
from archive.kernels.features.embedding import Embedded, matrix, vocabulary

Floats = NDArray[np.float64]
S = TypeVar("S")

CELLS = 5**6
CHOICES = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
WEIGHTS = (0.25, 0.25, 0.25, 0.25)
SECONDS = "<= 30"
GIGABYTES = "<= 2.5"
BLOCK_SECONDS = "<= 1"
ERROR = "<= 1e-9"


def measure(cells: int = CELLS, rows: int = 1000, pairs: int = 200, seed: int = 0) -> list[Figure]:
    """Measure errors, seconds and memory.

    Args:
        cells: Number of cells, of the 15,625 of NAS-Bench-201.
        rows: Number of rows of the rectangular block; its columns are all cells.
        pairs: Number of random pairs that the pairwise references compute.
        seed: Seed of the pairs.

    Returns:
        The rows, in the order to show them.
    """
    kernel = TreeWasserstein(weights=WEIGHTS)
    architectures = nasbench201(cells)
    begin = time.perf_counter()
    networks = [kernel.prepare(architecture) for architecture in architectures]
    preparing = time.perf_counter() - begin
    chosen = np.random.default_rng(seed).integers(0, len(networks), size=(pairs, 2))
    naive_seconds, _ = _timed(lambda i, j: _equation_2(networks[i], networks[j]), chosen)
    _transported(architectures[0], architectures[-1])  # loads the solver
    exact_seconds, exact = _timed(
        lambda i, j: _transported(architectures[i], architectures[j]), chosen
    )
    actual = np.array(
        [kernel.distances([networks[i]], [networks[j]]).stack[0, 0, 0] for i, j in chosen]
    )
    size = f"nasbench201, {cells:,}"
    gram = _whole_gram(cells)
    block, reference, difference = _block(kernel, networks, min(rows, cells))
    return [
        Figure(
            "tree-wasserstein, appendix F: largest error of 1, 2, 2/35, 3/35",
            _appendix_f(),
            "",
            ERROR,
        ),
        Figure(
            f"tree-wasserstein, nasbench201: largest error, {pairs} pairs beside linear programs",
            _gap(actual, exact),
            "",
            ERROR,
        ),
        Figure("tree-wasserstein, nasbench201: preparing a cell", 1e6 * preparing / cells, "us"),
        Figure(
            "tree-wasserstein, nasbench201: a pair of a Gram matrix (reference: linear programs)",
            1e6 * gram["seconds"] / cells**2,
            "us",
            None,
            1e6 * exact_seconds,
        ),
        Figure(
            (
                f"tree-wasserstein, {size} x {cells:,}: seconds (reference: eq. 2 in Python, "
                "extrapolated)"
            ),
            gram["seconds"],
            "s",
            SECONDS,
            naive_seconds * cells * (cells - 1) / 2,
        ),
        Figure(
            (
                f"tree-wasserstein, {size} x {cells:,}: peak memory (reference: bytes of the "
                "result "
                "alone)"
            ),
            gram["gigabytes"],
            "GB",
            GIGABYTES,
            8e-9 * cells**2,
        ),
        Figure(
            (
                f"tree-wasserstein, nasbench201, {min(rows, cells):,} x {cells:,}: seconds "
                "(reference: scipy cdist)"
            ),
            block,
            "s",
            BLOCK_SECONDS,
            reference,
        ),
        Figure(
            "tree-wasserstein, nasbench201: largest difference from cdist", difference, "", ERROR
        ),
    ]


def nasbench201(cells: int = CELLS) -> list[Architecture]:
    """Return evenly spaced cells of NAS-Bench-201, all of them by default."""
    texts = map(
        "|{}~0|+|{}~0|{}~1|+|{}~0|{}~1|{}~2|".format, *zip(*product(CHOICES, repeat=6), strict=True)
    )
    # Neighbours in this order differ in one operation; evenly spaced cells are as diverse as all.
    chosen = set(np.linspace(0, CELLS - 1, min(cells, CELLS)).astype(int).tolist())
    return [from_nasbench201(text) for at, text in enumerate(texts) if at in chosen]


def report_whole_gram(cells: int) -> None:
    """Print seconds and peak memory of a whole Gram matrix as JSON; runs in a separate process."""
    kernel = TreeWasserstein(weights=WEIGHTS)
    networks = [kernel.prepare(architecture) for architecture in nasbench201(cells)]
    kernel.combine(networks[:300])  # loads the compiled code
    begin = time.perf_counter()
    out = kernel.combine(networks)
    seconds = time.perf_counter() - begin
    assert np.isfinite(out[-1]).all()
    print(json.dumps({"seconds": seconds, "gigabytes": _peak_bytes() / 1e9}))


def _peak_bytes() -> int:
    # The ru_maxrss of a child process is at least its parent's peak; Linux has the child's own in
    # /proc.
    status = Path("/proc/self/status")
    if status.is_file():
        return 1024 * next(
            int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line
        )

    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _whole_gram(cells: int) -> dict[str, float]:
    code = f"from {__name__} import report_whole_gram; report_whole_gram({cells})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _block(
    kernel: TreeWasserstein, networks: Sequence[Embedded], rows: int
) -> tuple[float, float, float]:
    """Return the kernel's seconds and cdist's for the first rows against all, and the largest
    difference.
    """
    from scipy.spatial.distance import cdist

    dense = np.hstack([weight * _dense(kernel, networks, at) for at, weight in enumerate(WEIGHTS)])
    begin = time.perf_counter()
    expected = cdist(dense[:rows], dense, "cityblock")
    reference = time.perf_counter() - begin
    best = np.inf
    actual = expected
    for _ in range(3):
        begin = time.perf_counter()
        actual = kernel.combine(networks[:rows], networks)
        best = min(best, time.perf_counter() - begin)

    return best, reference, _gap(actual, expected)


def _dense(kernel: TreeWasserstein, networks: Sequence[Embedded], at: int) -> Floats:
    if "degree" not in kernel.parts[at]:
        return matrix(networks, vocabulary(networks, at), at)

    functions = [cumulate(network.features[at]) for network in networks]
    places = np.array(sorted({place for own, _ in functions for place in own}))
    levels = [
        np.array([0.0, *values])[np.searchsorted(own, places, side="right")]
        for own, values in functions
    ]
    return np.array(levels)[:, :-1] * np.diff(places)


def _timed(compute: Callable[[int, int], float], pairs: NDArray[np.int64]) -> tuple[float, Floats]:
    """Return the seconds a pair and the distances."""
    begin = time.perf_counter()
    distances = [compute(i, j) for i, j in pairs.tolist()]
    return (time.perf_counter() - begin) / len(pairs), np.array(distances)


def _gap(actual: Floats, expected: Floats) -> float:
    return float(np.abs(actual - expected).max(initial=0.0))


def _equation_2(x: Embedded, z: Embedded) -> float:
    """The weighted sum of the parts as the paper writes it, one edge after the other."""
    total = 0.0
    for weight, first, second in zip(WEIGHTS, x.features, z.features, strict=True):
        if any("/" in place for place in (*first, *second)):
            total += weight * _on_a_chain(first, second)
        else:
            total += weight * sum(
                abs(first.get(v, 0.0) - second.get(v, 0.0)) for v in first.keys() | second.keys()
            )

    return total


def _on_a_chain(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    gaps: dict[float, float] = {}
    for sign, masses in ((1, first), (-1, second)):
        for name, mass in masses.items():
            gaps[_place(name)] = gaps.get(_place(name), 0.0) + sign * mass

    total = 0.0
    level = 0.0
    before = 0.0
    for place in sorted(gaps):
        total += abs(level) * (place - before)
        level = level + gaps[place]
        before = place

    return total


def _place(name: str) -> float:
    numerator, denominator = map(int, name.split("/"))
    return numerator / denominator


def _transported(x: Architecture, z: Architecture) -> float:
    """The weighted sum of the parts by linear programs."""
    tree = default_tree(x.space)
    counted = tree.operations(operations_of(x.space))

    def grams(architecture: Architecture, n: int) -> dict[Gram, float]:
        counts = ngrams(architecture, n, counted)
        return {gram: count / sum(counts.values()) for gram, count in counts.items()} or {(): 1.0}

    def apart(s: Gram, t: Gram) -> float:
        ways = [set(gram_path(gram, tree)) if gram else set() for gram in (s, t)]
        return sum(length for _, length in ways[0] ^ ways[1])

    total = 0.0
    for n, weight in zip((1, 2), WEIGHTS[:2], strict=True):
        total += weight * _solved(grams(x, n), grams(z, n), apart)

    for first, second, weight in zip(degrees(x), degrees(z), WEIGHTS[2:], strict=True):
        total += weight * _solved(first, second, lambda s, t: abs(_place(s) - _place(t)))

    return total


def _solved(
    first: Mapping[S, float], second: Mapping[S, float], apart: Callable[[S, S], float]
) -> float:
    from scipy.optimize import linprog

    costs = np.array([[apart(s, t) for t in second] for s in first])
    rows, columns = (np.eye(size) for size in costs.shape)
    sums = np.vstack([np.kron(rows, np.ones(len(columns))), np.kron(np.ones(len(rows)), columns)])
    return float(
        linprog(
            costs.ravel(), A_eq=sums, b_eq=[*first.values(), *second.values()], method="highs"
        ).fun
    )


def _appendix_f() -> float:
    """Return the largest error of the paper's example."""
    names = {
        "i": "ip",
        "1": "conv1x1-bn-relu",
        "3": "conv3x3-bn-relu",
        "m": "maxpool3x3",
        "o": "op",
    }
    x = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 5), (4, 5)]
    z = [(0, 1), (0, 2), (1, 4), (1, 5), (2, 3), (3, 4), (4, 5)]
    first, second = (
        Architecture("nasbench101", [Layer(names[letter]) for letter in word], edges)
        for word, edges in (("i1333o", x), ("i31mmo", z))
    )
    distances = TreeWasserstein().distances([first], [second]).stack[:, 0, 0]
    return _gap(distances, np.array([1, 2, 2 / 35, 3 / 35]))
