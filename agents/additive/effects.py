"""Effects of single decisions on the score, by ridge regression.

| symbol | meaning                                                                        | shape    |
|--------|--------------------------------------------------------------------------------|----------|
| p      | the parent's vector of decisions                                               | (D,)     |
| x      | a network's vector                                                             | (D,)     |
| C(x)   | decisions of x that are changed (`archive.agents.additive.vectors`)            | set      |
| g(d,c) | effect of the choice c of the decision d: score of the parent with it, minus   | scalar   |
|        | the parent's                                                                   |          |
| f(x)   | sum of g(d, x_d) over C(x)                                                     | scalar   |
| y      | scores minus the parent's                                                      | (n,)     |
| V      | variances of y - f(x), relative to lambda: 1 + rho m (m - 1) / 2 for m = |C(x)|| (n, n)   |

An effect is a common change of all replacements, plus one of the decision, plus one of the choice,
each normal with equal variance, so that f is a Gaussian process with the covariance

    k(x, x') = sum over d in C(x), d' in C(x') of 1 + [d = d'] + [d = d', x_d = x'_d]

and a choice that no network has is expected to change the score as the others do. With one
replacement each and lambda near 0, g is the score of the replacement, and f adds these scores up
(Puzzle, section 3). With several replacements the least squares share out what the sum misses; a
sum of m replacements has m (m - 1) / 2 pairs that may interact, hence V. lambda and rho have the
least squared leave-one-out error over the networks of which each replacement has another score, too;
before there are `FEW` of these, the least lambda and the largest rho.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from archive.agents.additive.vectors import Vectors, changed
from archive.agents.observations import fences

Array = NDArray[np.float64]

RIDGES = (1e-6, 1e-3, 1e-2, 0.1, 1.0)
"""Values of lambda."""
INTERACTIONS = (10.0, 1.0, 0.0)
"""Values of rho."""
FEW = 8
MOST_CHOSEN = 300
"""Least and most networks that the choice of lambda and rho looks at."""
_EQUAL = 1e-3
"""Relative difference of two errors that count as equal."""


@dataclass(frozen=True, eq=False)
class SourceEffects:
    """Effects that other results tell beforehand.

    Attributes:
        effects: Effects in a source study.
        slope: Factor between the scores of the source and of the study.
    """

    effects: Effects
    slope: float

    def predict(self, vectors: Vectors, parent: Vectors) -> Array:
        """Return the expected difference from the parent: (m,).

        Args:
            vectors: (m, D) networks.
            parent: (1, D) the study's parent.
        """
        start = self.effects.predict(parent)[0]
        predicted: Array = self.slope * (self.effects.predict(vectors) - start)
        return predicted


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects that scores tell; `learn` makes them.

    Attributes:
        parent: (D,) the parent.
        centre: Score of the parent.
        vectors: (n, D) networks.
        weights: (n,) the solution of the ridge equations.
        noise: (n,) diagonal of lambda V.
        scale: Variance of one part of an effect, in squared score units.
        prior: Effects from a source; None without one.
        fantasies: (k, D) further networks, with their expected scores.
    """

    parent: NDArray[np.int64]
    centre: float
    vectors: Vectors
    weights: Array
    noise: Array
    scale: float
    prior: SourceEffects | None
    fantasies: Vectors

    def predict(self, vectors: Vectors) -> Array:
        """Return the scores that the sums predict: (m,) float64."""
        predicted: Array = self.centre + self._kernel(vectors, self.vectors) @ self.weights
        if self.prior is not None:
            predicted = predicted + self.prior.predict(vectors, self.parent[None])

        return predicted

    def covariance(self, vectors: Vectors) -> Array:
        """Return the posterior covariance of f: (m, m) float64, in squared score units."""
        inner = self._kernel(vectors, vectors)
        return self.scale * (inner - self._explained(vectors))

    def variance(self, vectors: Vectors) -> Array:
        """Return the posterior variance of f: (m,) float64, never negative."""
        counts = changed(vectors, self.parent).sum(axis=1)
        cross = self._kernel(self._conditioned, vectors)
        explained = np.einsum("nm,nm->m", cross, self._inverse @ cross)
        variances: Array = self.scale * np.clip(_diagonal(counts) - explained, 0.0, None)
        return variances

    def hallucinate(self, vectors: Vectors) -> Effects:
        """Return the effects after these networks had their expected scores."""
        return replace(self, fantasies=np.concatenate([self.fantasies, vectors]))

    def _explained(self, vectors: Vectors) -> Array:
        cross = self._kernel(self._conditioned, vectors)
        explained: Array = cross.T @ self._inverse @ cross
        return explained

    @cached_property
    def _conditioned(self) -> Vectors:
        return np.concatenate([self.vectors, self.fantasies])

    @cached_property
    def _inverse(self) -> Array:
        noise = np.concatenate([self.noise, np.full(len(self.fantasies), self.noise.min())])
        rows = self._conditioned
        return _invert(self._kernel(rows, rows), noise)

    def _kernel(self, first: Vectors, second: Vectors) -> Array:
        return kernel(first, second, self.parent)


def kernel(first: Vectors, second: Vectors, parent: NDArray[np.int64]) -> Array:
    """Return k of networks: (m, n) float64."""
    left = changed(first, parent)
    right = changed(second, parent)
    counts = np.outer(left.sum(axis=1), right.sum(axis=1))
    both = left.astype(np.float64) @ right.T.astype(np.float64)
    same = np.zeros_like(both)
    for column in np.flatnonzero(left.any(axis=0) & right.any(axis=0)).tolist():
        equal = first[:, column, None] == second[None, :, column]
        same += equal & left[:, column, None] & right[None, :, column]

    total: Array = counts + both + same
    return total


def _diagonal(counts: NDArray[np.int64]) -> Array:
    """Return k(x, x) of networks with this many changed decisions: m (m + 2)."""
    diagonal: Array = counts * (counts + 2.0)
    return diagonal


def learn(
    vectors: Vectors, scores: Array, parent: Sequence[int], prior: Effects | None = None
) -> Effects:
    """Return the effects that scores tell.

    Args:
        vectors: (n, D) networks with decisions; the parent is one of them.
        scores: (n,) float64, finite, larger is better. Outliers count as the least usual score.
        parent: (D,) the parent.
        prior: Effects in a source study; None without one.
    """
    parent_vector = np.asarray(parent, np.int64)
    usual: Array = np.maximum(scores, fences(scores))
    is_parent = ~changed(vectors, parent_vector).any(axis=1)
    centre = float(usual[is_parent].mean())
    differences: Array = usual - centre
    from_source = None
    if prior is not None:
        from_source = _scaled(prior, vectors, differences, parent_vector)
        differences = differences - from_source.predict(vectors, parent_vector[None])

    counts = changed(vectors, parent_vector).sum(axis=1)
    pairs = counts * (counts - 1) / 2.0
    matrix = kernel(vectors, vectors, parent_vector)
    shared = _are_shared(vectors, parent_vector) & (counts > 0)
    ridge, interaction = _choose(matrix, differences, pairs, shared)
    noise: Array = ridge * (1.0 + interaction * pairs)
    weights = _invert(matrix, noise) @ differences
    others = counts > 0
    scale = 0.0
    if others.any():
        scale = float(np.mean(differences[others] ** 2 / _diagonal(counts[others])))

    nothing = np.empty((0, vectors.shape[1]), np.int64)
    return Effects(
        parent_vector, centre, vectors, weights, noise, scale, from_source, fantasies=nothing
    )


def _scaled(
    prior: Effects, vectors: Vectors, differences: Array, parent: NDArray[np.int64]
) -> SourceEffects:
    """Return a prior with the slope of least squares; one more result says that the slope is 1."""
    expected = SourceEffects(prior, 1.0).predict(vectors, parent[None])
    power = float(expected @ expected)
    several = int((expected != 0).sum())
    if not power or not several:
        return SourceEffects(prior, 1.0)

    further = power / several
    slope = (float(expected @ differences) + further) / (power + further)
    return SourceEffects(prior, max(slope, 0.0))


def _choose(
    matrix: Array, differences: Array, pairs: Array, shared: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return lambda and rho with the least leave-one-out error.

    Args:
        matrix: (n, n) k of the networks.
        differences: (n,) scores minus the parent's.
        pairs: (n,) pairs of replacements of each network.
        shared: (n,) whether the network counts in the error.
    """
    if shared.sum() < FEW or not differences[shared].any():
        return RIDGES[0], INTERACTIONS[0]

    rows = np.arange(len(matrix))
    if len(rows) > MOST_CHOSEN:
        rows = np.linspace(0, len(rows) - 1, MOST_CHOSEN).astype(int)

    part = matrix[np.ix_(rows, rows)]
    values = differences[rows]
    counted = shared[rows]
    best = (RIDGES[0], INTERACTIONS[0])
    least = math.inf
    for interaction in INTERACTIONS:
        for ridge in RIDGES:
            inverse = _invert(part, ridge * (1.0 + interaction * pairs[rows]))
            left_out = ((inverse @ values) / np.diagonal(inverse))[counted]
            error = float(left_out @ left_out)
            if error < least * (1.0 - _EQUAL):
                least = error
                best = (ridge, interaction)

    return best


def _are_shared(vectors: Vectors, parent: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether every changed choice of a network is one of another network, too: (n,)."""
    is_changed = changed(vectors, parent)
    shared: NDArray[np.bool_] = np.ones(len(vectors), np.bool_)
    for column, mask in zip(vectors.T, is_changed.T, strict=True):
        _, groups, counts = np.unique(column, return_inverse=True, return_counts=True)
        shared &= ~mask | (counts[groups] > 1)

    return shared


def _invert(matrix: Array, noise: Array) -> Array:
    """Return the inverse of a covariance with noise on its diagonal."""
    return np.asarray(np.linalg.inv(matrix + np.diag(noise)), np.float64)
