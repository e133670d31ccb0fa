"""Importance near the best results: by the densities of the best results and of all (PED-ANOVA).

| symbol | meaning                                                                    | shape  |
|--------|----------------------------------------------------------------------------|--------|
| gamma  | share of the results that count as the best ones                           | scalar |
| k      | cells of a column: options, levels, or `STEPS` intervals of a number       | (k,)   |
| p, q   | density of the best results, and of all results, over the cells            | (k,)   |
| I      | importance, gamma^2 sum_k q_k (p_k / q_k - 1)^2                            | scalar |

S. Watanabe, A. Bansal, F. Hutter, PED-ANOVA: efficiently quantifying hyperparameter importance in
arbitrary subspaces, IJCAI 2023, with all results as the region. The densities are
Parzen estimates: of numbers with discretised normal kernels of Scott's bandwidth, of options their
shares. One further result is shared by all cells of a column.

I is small for every column that does not tell the best results from the others. Its scale has no
meaning, so that the columns of a study share 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from archive.plots.anova.measures import CodeMeasure
from archive.plots.data.results import Floats

BEST = 0.1
"""Share gamma of the results."""
LEAST_BEST = 5
"""Fewest best results; with fewer, gamma is greater."""
LEAST = 20
"""Fewest results for an importance near the best."""
STEPS = 50
REPEATS = 200
"""Bootstrap samples of the results."""

_NARROWEST = 0.5 / 1.64
"""Least bandwidth in cells: 90 % of a kernel is then in its cell."""


def importances(
    codes: Floats, scores: Floats, measures: Sequence[CodeMeasure], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return I of each column, of all results and of bootstrap samples.

    Args:
        codes: (n, D) float64 without NaN.
        scores: (n,) float64, larger is better.
        measures: D distributions.
        rng: Source of the bootstrap samples.

    Returns:
        (D,) float64 of all results, and (`REPEATS`, D) of the samples.
    """
    count = len(scores)
    top = min(count, max(LEAST_BEST, round(BEST * count)))
    order = np.argsort(-scores, kind="stable")
    best = codes[order[:top]]
    rest = codes[order[top:]]
    # Samples have as many best results as the study.
    of_best = rng.multinomial(top, np.full(top, 1.0 / top), REPEATS)
    of_rest = np.zeros((REPEATS, 0), np.int64)
    if len(rest):
        of_rest = rng.multinomial(len(rest), np.full(len(rest), 1.0 / len(rest)), REPEATS)

    share = top / count
    whole = np.empty(len(measures))
    repeated = np.empty((REPEATS, len(measures)))
    for column, measure in enumerate(measures):
        cells = _count_cells(measure)
        inside = _indicators(best[:, column], measure, cells)
        outside = _indicators(rest[:, column], measure, cells)
        counts = inside.sum(axis=0)
        kernels = (_kernel(counts, measure), _kernel(counts + outside.sum(axis=0), measure))
        counted = (counts[None], outside.sum(axis=0)[None])
        whole[column] = share**2 * _divergence(*counted, kernels)[0]
        samples = (of_best @ inside, of_rest @ outside)
        repeated[:, column] = share**2 * _divergence(*samples, kernels)

    return whole, repeated


def _count_cells(measure: CodeMeasure) -> int:
    return measure.options or min(measure.levels or STEPS, STEPS)


def _indicators(codes: Floats, measure: CodeMeasure, cells: int) -> Floats:
    """Return the cell of each code: (n, cells) float64 of 0 and 1."""
    positions = codes if measure.options else np.rint(codes * (cells - 1))
    marks: Floats = (positions[:, None] == np.arange(cells)).astype(np.float64)
    return marks


def _kernel(counts: Floats, measure: CodeMeasure) -> Floats:
    """Return the density that a result of each cell contributes: (k, k) float64."""
    cells = len(counts)
    if measure.options or cells == 1:
        return np.eye(cells)

    places = np.arange(cells)
    total = counts.sum()
    mean = float(counts @ places) / total
    deviation = float(np.sqrt(counts @ np.square(places - mean) / max(1.0, total - 1)))
    quartiles = np.searchsorted(np.cumsum(counts), [total * 0.25, total * 0.75])
    width = float(quartiles[1] - quartiles[0])
    bandwidth = 1.059 * min(width / 1.34, deviation) * total**-0.2
    return _normals(places, max(bandwidth, _NARROWEST), cells)


def _normals(centres: NDArray[np.int64], width: float, cells: int) -> Floats:
    """Return normal distributions as probabilities of the cells: (m, cells) float64."""
    from scipy.special import ndtr

    edges = np.arange(cells + 1) - 0.5
    below = ndtr((edges - centres[:, None]) / width)
    parts = np.diff(below, axis=1)
    normalised: Floats = parts / parts.sum(axis=1, keepdims=True)
    return normalised


def _divergence(best: Floats, rest: Floats, kernels: tuple[Floats, Floats]) -> Floats:
    """Return sum_k q_k (p_k / q_k - 1)^2 of (B, k) counts: (B,) float64."""
    cells = best.shape[1]
    prior = np.full(cells, 1.0 / cells)
    inner, whole = kernels
    p = _density(best, inner, prior)
    q = _density(best + rest, whole, prior)
    divergence: Floats = (np.square(p - q) / q).sum(axis=1)
    return divergence


def _density(counts: Floats, kernel: Floats, prior: Floats) -> Floats:
    density: Floats = (counts @ kernel + prior) / (counts.sum(axis=1, keepdims=True) + 1.0)
    return density
