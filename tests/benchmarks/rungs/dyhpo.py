"""A search in the manner of DyHPO: the network, new or paused, whose next rung has the greatest
expected improvement.

| symbol | meaning                                                                              | shape  |
|--------|--------------------------------------------------------------------------------------|--------|
| d      | distance of two networks, in units of its median                                     |        |
| t      | logarithm of the epochs of a rung                                                    |        |
| y      | values at all finished rungs, of mean 0 and standard deviation 1                     | (n,)   |

    k = exp(-d / l - (t - t')^2 / (2 w^2)),    l, w and the noise of the greatest marginal likelihood on a grid

An improvement is one over the best value at the same rung. Wistuba, Kadra and Grabocka, Supervising
the multi-fidelity race of hyperparameter configurations (2022), have a deep kernel with the curve
so far as a further input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from scipy.linalg import cho_solve
from scipy.stats import norm

from archive.agents.surrogates.gp.exact import try_cholesky
from archive.agents.surrogates.gp.fitted import Pairwise
from tests.benchmarks.rungs.simulation import Floats, RungSearch, RungTrial

INITIAL = 4
CANDIDATES = 200
"""Random networks at the first rung before the first fit; random new networks among the
candidates."""

LENGTHS = (0.5, 2.0, 8.0)
WIDTHS = (1.0, 3.0)
NOISES = (0.01, 0.1)
"""The grid of l, w and the noise variance."""

Rung = tuple[int, int]


def dyhpo(search: RungSearch, source: Iterator[RungTrial], pairwise: Pairwise) -> None:
    """Search with the first networks of a source, then with random ones, until the epochs are
    spent.
    """
    order = [trial.network for trial in source]
    rng = np.random.default_rng(0)
    for network in order[:INITIAL]:
        search.train(RungTrial(network))

    while True:
        known = {one.network for one in search.trials}
        drawn = rng.choice(order, min(CANDIDATES, len(order)), replace=False).tolist()
        paused = [one for one in search.trials if one.rungs <= search.top]
        trials = [*paused, *(RungTrial(one) for one in drawn if one not in known)]
        search.train(trials[int(np.argmax(improvements(search, trials, pairwise)))])


def improvements(search: RungSearch, trials: Sequence[RungTrial], pairwise: Pairwise) -> Floats:
    """Return the expected improvement of each of m trials at its next rung: (m,) float64."""
    seen = [(one.network, rung) for one in search.trials for rung in range(one.rungs)]
    asked = [(one.network, one.rungs) for one in trials]
    raw = np.array([search.values[one] for one in seen])
    y = (raw - raw.mean()) / (raw.std() or 1.0)
    covariances, weights, factor = _fitted(search, seen, asked, y, pairwise)
    half = cho_solve((factor, True), covariances)
    std = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->j", covariances, half), 1e-9))
    rungs = np.array([rung for _, rung in seen])
    best = [
        float(y[rungs == rung].max()) if (rungs == rung).any() else float(y.max())
        for _, rung in asked
    ]
    z = (covariances.T @ weights - np.array(best)) / std
    gains: Floats = std * (z * norm.cdf(z) + norm.pdf(z))
    return gains


def _fitted(
    search: RungSearch, seen: Sequence[Rung], asked: Sequence[Rung], y: Floats, pairwise: Pairwise
) -> tuple[Floats, Floats, Floats]:
    """Return covariances of seen with asked rungs, the weights, and the Cholesky factor, at the
    best grid point.
    """
    rows, columns = ([search.networks[network] for network, _ in each] for each in (seen, asked))
    inner, cross = (pairwise.distances(rows, each).stack[0] for each in (rows, columns))
    levels, next_levels = (
        np.log([search.rungs.epochs[rung] for _, rung in each]) for each in (seen, asked)
    )
    unit = float(np.median(inner[inner > 0.0])) if inner.any() else 1.0
    fits = []
    for length, width, noise in product(LENGTHS, WIDTHS, NOISES):
        factor = try_cholesky(
            _covariance(inner / unit, levels, levels, length, width) + noise * np.eye(len(y))
        )
        if factor is not None:
            weights = cho_solve((factor, True), y)
            likelihood = -0.5 * float(y @ weights) - float(np.log(factor.diagonal()).sum())
            fits.append((likelihood, length, width, weights, factor))

    _, length, width, weights, factor = max(fits, key=lambda fit: fit[0])
    return _covariance(cross / unit, levels, next_levels, length, width), weights, factor


def _covariance(
    distances: Floats, first: Floats, second: Floats, length: float, width: float
) -> Floats:
    result: Floats = np.exp(
        -distances / length - 0.5 * ((first[:, None] - second[None]) / width) ** 2
    )
    return result
