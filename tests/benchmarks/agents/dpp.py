"""Benchmark of k-DPP sampling: speed relative to the textbook's algorithm, and errors relative to
enumeration.
"""

from __future__ import annotations

import itertools
import time

import numpy as np

from archive.agents.surrogates.base import Array
from archive.benchmarks.measurement import Figure
from archive.kernels.covariance.dpp import KDPP


def measure(items: int = 1_000, k: int = 10, samples: int = 20, seed: int = 0) -> list[Figure]:
    """Measure the decomposition, one sample, and the largest errors against enumeration.

    Args:
        items: Size of the similarity matrix.
        k: Items of a subset.
        samples: Number of samples; times are means over them.
        seed: Seed of the matrices and of the samples.

    Returns:
        Seconds and pure numbers. The reference of a sample is algorithm 8 of Kulesza & Taskar
        (2012) unchanged: without logarithms of the polynomials, and with a new orthonormal basis
        after each item.
    """
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((items, items // 2))
    similarity = factor @ factor.T / items
    begin = time.perf_counter()
    process = KDPP(similarity, k)
    process.sample(rng)
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(samples):
        process.sample(rng)

    each = (time.perf_counter() - begin) / samples
    values, vectors = np.linalg.eigh(similarity)
    begin = time.perf_counter()
    for _ in range(samples):
        _textbook(values, vectors, k, rng)

    reference = (time.perf_counter() - begin) / samples
    return [
        Figure(f"first k-DPP sample, {k} of {items}, decomposition included", first, "s"),
        Figure(
            f"each further k-DPP sample, {k} of {items}", 1e3 * each, "ms", None, 1e3 * reference
        ),
        Figure(
            "k-DPP, largest error of a probability, all subsets of 3 of 7",
            _largest_error(rng),
            "",
            "<= 1e-10",
        ),
    ]


def _textbook(values: Array, vectors: Array, k: int, rng: np.random.Generator) -> list[int]:
    n = len(values)
    polynomials = np.zeros((k + 1, n + 1))
    polynomials[0] = 1.0
    for degree in range(1, k + 1):
        for m in range(1, n + 1):
            before = polynomials[degree - 1, m - 1]
            polynomials[degree, m] = polynomials[degree, m - 1] + values[m - 1] * before

    chosen = []
    missing = k
    for m in range(n, 0, -1):
        if not missing:
            break

        share = values[m - 1] * polynomials[missing - 1, m - 1] / polynomials[missing, m]
        if rng.random() < share:
            chosen.append(m - 1)
            missing -= 1

    basis = vectors[:, chosen]
    items = []
    while basis.shape[1]:
        weights = np.square(basis).sum(axis=1)
        item = int(rng.choice(n, p=weights / weights.sum()))
        items.append(item)
        pivot = int(np.abs(basis[item]).argmax())
        rest = basis - np.outer(basis[:, pivot] / basis[item, pivot], basis[item])
        basis = np.linalg.qr(np.delete(rest, pivot, axis=1))[0]

    return items


def _largest_error(rng: np.random.Generator) -> float:
    factor = rng.standard_normal((7, 5))
    similarity = factor @ factor.T
    process = KDPP(similarity, 3)
    subsets = list(itertools.combinations(range(7), 3))
    determinants = np.array(
        [np.linalg.det(similarity[np.ix_(subset, subset)]) for subset in subsets]
    )
    probabilities = np.exp([process.log_probability(subset) for subset in subsets])
    return float(np.abs(probabilities - determinants / determinants.sum()).max())
