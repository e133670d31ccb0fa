"""The sum of effects, and a Gaussian process of what it misses.

| symbol | meaning                                                        | shape  |
|--------|----------------------------------------------------------------|--------|
| f      | sum of effects (`archive.agents.additive.effects`)             | (m,)   |
| r      | residual y - f of the observed scores, of a Gaussian process   | (n,)   |

    mean = f + mean of r        variance = variance of f + variance of r

Networks without decisions have the mean score in place of f.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from archive.agents.additive.effects import Effects, learn
from archive.agents.additive.vectors import Vectors, VectorSpace, choose_parent, is_known
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate, check_scores
from archive.agents.surrogates.gp.fitted import Pairwise
from archive.architecture.graph import Architecture
from archive.kernels.base import Components


@final
class AdditiveResidual(Surrogate):
    """Effects of decisions, and a surrogate of their residuals.

    Args:
        vectors: Decisions of the space.
        residual: Fitted to the residuals.
        parent: The parent's decisions; None for `choose_parent`.
        prior: Effects in a source study; None without one.

    Attributes:
        pairwise: Distances of the residual's process; None without.
    """

    def __init__(
        self,
        vectors: VectorSpace,
        residual: Surrogate,
        parent: Sequence[int] | None = None,
        prior: Effects | None = None,
    ) -> None:
        self.vectors = vectors
        self.residual = residual
        self.parent = parent
        self.prior = prior
        self.pairwise: Pairwise | None = getattr(residual, "pairwise", None)

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedAdditive:
        """See `Surrogate.fit`."""
        check_scores(architectures, scores)
        encoded = self.vectors.encode(architectures)
        effects = learn_effects(encoded, scores, self.parent, self.prior)
        centre = float(scores.mean())
        sums = _sums(effects, encoded, centre)
        fitted = self.residual.fit(architectures, scores - sums, rng, variances)
        return FittedAdditive(self.vectors, effects, fitted, centre, float(scores.max()))


def learn_effects(
    encoded: Vectors,
    scores: Array,
    parent: Sequence[int] | None = None,
    prior: Effects | None = None,
) -> Effects | None:
    """Return the effects that scores tell; None where no network has decisions.

    Args:
        encoded: (n, D) networks.
        scores: (n,) their scores.
        parent: Decisions of the parent; None, or a parent without a score, for `choose_parent`.
        prior: Effects in a source study; None without one.
    """
    known = is_known(encoded)
    if not known.any():
        return None

    vectors = encoded[known]
    values = scores[known]
    if parent is None or not (vectors == np.asarray(parent)).all(axis=1).any():
        parent = vectors[choose_parent(vectors, values)].tolist()

    return learn(vectors, values, parent, prior)


@final
@dataclass(frozen=True, eq=False)
class FittedAdditive(Fitted):
    """A fitted `AdditiveResidual`.

    Attributes:
        vectors: Decisions of the space.
        effects: The effects; None where no network has decisions.
        residual: The process of the residuals.
        centre: Mean score.
        best: The incumbent's score, fantasies included.
    """

    vectors: VectorSpace
    effects: Effects | None
    residual: Fitted
    centre: float
    best: float

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        encoded = self.vectors.encode(architectures)
        inner = self.residual.posterior(architectures, joint=joint)
        means = inner.means + _sums(self.effects, encoded, self.centre)
        further = np.zeros((len(encoded), len(encoded))) if joint else np.zeros(len(encoded))
        rows = np.flatnonzero(is_known(encoded))
        if self.effects is not None and len(rows):
            if joint:
                further[np.ix_(rows, rows)] = self.effects.covariance(encoded[rows])
            else:
                further[rows] = self.effects.variance(encoded[rows])

        covariances = None
        added = further
        if joint:
            assert inner.covariances is not None
            covariances = inner.covariances + further
            added = np.clip(np.diagonal(further), 0.0, None)

        return Posterior(
            means,
            inner.variances + added,
            np.full(len(means), self.best),
            covariances,
            inner.weights,
            noises=self.noises(),
        )

    def noises(self) -> Array | None:
        """See `Fitted.noises`."""
        return self.residual.noises()

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedAdditive:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self

        best = max(self.best, float(self.posterior(architectures).mean.max()))
        encoded = self.vectors.encode(architectures)
        effects = self.effects
        if effects is not None:
            effects = effects.hallucinate(encoded[is_known(encoded)])

        residual = self.residual.hallucinate(architectures)
        return replace(self, effects=effects, residual=residual, best=best)


@final
class DecisionDistances:
    """Share of the decisions in which networks differ, a choice that one lacks included.

    For spaces whose networks tell a graph nothing, such as configurations of parameters.

    Args:
        vectors: Decisions of the space.
    """

    def __init__(self, vectors: VectorSpace) -> None:
        self._vectors = vectors

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """See `Distance.distances`."""
        left = self._vectors.encode(first)
        right = left if second is None else self._vectors.encode(second)
        total = np.zeros((len(left), len(right)))
        for row, column in zip(left.T, right.T, strict=True):
            total += row[:, None] != column[None, :]

        return Components.of_stack(total[None] / max(self._vectors.size, 1), 1)


def _sums(effects: Effects | None, encoded: Vectors, centre: float) -> Array:
    """Return f of networks: (m,)."""
    sums = np.full(len(encoded), centre)
    rows = np.flatnonzero(is_known(encoded))
    if effects is not None and len(rows):
        sums[rows] = effects.predict(encoded[rows])

    return sums
