"""A Gaussian process over decisions that form a tree (Jenatton et al., 2017).

Notation:

    symbol   meaning                                                                shape
    x        decisions of a network (`archive.agents.encodings`)          (D,)
    leaf     the root decisions, on which the others depend: the depth of a chain   (roots,)
    F        features of the decisions made, of norm sqrt(2) at most                (n, q)
    h        fraction of a leaf's decisions in which two networks differ            (n, n)
    eta2     noise variance                                                         scalar

    f(x)  = c^T F(x) + g_leaf(x),   c ~ N(0, a_c I),   g_leaf ~ GP(0, a_g exp(-h / s)), independent by leaf
    K     = a_c F F^T + a_g [same leaf] exp(-h / s)

The linear part shares information between leaves through the decisions that they have in common;
the processes of the leaves are independent. As in NASBOT (appendix C.1) the whole matrix is built
and inference is standard. The four hyperparameters are the maximum a posteriori under a log-normal
prior centred in `_BOUNDS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from archive.agents.encodings import ABSENT, Decision, Decisions, Vector
from archive.agents.surrogates.base import Array, Posterior
from archive.agents.surrogates.gp.exact import GaussianProcess, try_cholesky
from archive.agents.surrogates.gp.likelihood import some_of
from archive.agents.surrogates.outcome_transforms import Scale
from archive.agents.surrogates.threads import one_thread
from archive.architecture.networks import take

Integers = NDArray[np.int64]

_BOUNDS = np.log([(1e-2, 1e1), (1e-2, 1e1), (2e-2, 5.0), (1e-3, 1.0)])
"""(4, 2) bounds of log(a_c, a_g, s, eta2), for standardised scores."""
_STARTS = 3
_WALL = 1e12

OBSERVATIONS = 300
"""Most observations that hyperparameters are optimised on; predictions use all."""


@dataclass(frozen=True)
class Blocks:
    """The parts of the covariance of m with n networks.

    Attributes:
        linear: (m, n) float64: F F^T.
        same: (m, n) float64: 1 where the leaves are equal, else 0.
        differences: (m, n) float64: h.
    """

    linear: Array
    same: Array
    differences: Array

    def value(self, theta: Array) -> Array:
        """Return K: (m, n) float64."""
        a_c, a_g, s = np.exp(theta[:3])
        value: Array = a_c * self.linear + a_g * self.same * np.exp(-self.differences / s)
        return value

    def derivatives(self, theta: Array) -> Array:
        """Return dK / dtheta of square blocks, noise included: (4, n, n) float64."""
        a_c, a_g, s, noise = np.exp(theta)
        leaf = a_g * self.same * np.exp(-self.differences / s)
        return np.stack(
            [a_c * self.linear, leaf, leaf * self.differences / s, noise * np.eye(len(leaf))]
        )


class TreeFeatures:
    """Maps decisions to the parts of a covariance; immutable.

    Args:
        decisions: The decisions of the space.
    """

    def __init__(self, decisions: Decisions) -> None:
        """Lay out the features: one a choice, or a constant and a slope if ordered."""
        self.roots = decisions.roots
        self._decisions = decisions.decisions
        self._codes = [_codes(decision) for decision in self._decisions]
        self._ordered = np.array([decision.ordered for decision in self._decisions])
        self._steps = np.array([max(len(decision.choices) - 1, 1) for decision in self._decisions])

    def blocks(self, first: Sequence[Vector], second: Sequence[Vector]) -> Blocks:
        """Return the blocks of m with n lists of decisions."""
        a = np.array(first, dtype=np.int64)
        b = np.array(second, dtype=np.int64)
        same = (a[:, None, : self.roots] == b[None, :, : self.roots]).all(axis=2).astype(np.float64)
        return Blocks(self._linear(a) @ self._linear(b).T, same, self._differences(a, b))

    def variance(self, vectors: Sequence[Vector], theta: Array) -> Array:
        """Return the prior variances: (m,) float64."""
        a_c, a_g = np.exp(theta[:2])
        lengths = np.square(self._linear(np.array(vectors, dtype=np.int64))).sum(axis=1)
        variance: Array = a_c * lengths + a_g
        return variance

    def _linear(self, vectors: Integers) -> Array:
        parts = [codes[vectors[:, d]] for d, codes in enumerate(self._codes)]
        # Deep networks make more decisions; without the division their prior variance would be
        # larger.
        linear: Array = np.hstack(parts) / np.sqrt((vectors != ABSENT).sum(axis=1))[:, None]
        return linear

    def _differences(self, a: Integers, b: Integers) -> Array:
        total = np.zeros((len(a), len(b)))
        decided = np.zeros((len(a), len(b)))
        for d in range(self.roots, a.shape[1]):
            x = a[:, d, None]
            y = b[None, :, d]
            if self._ordered[d]:
                apart = np.where(
                    (x == ABSENT) | (y == ABSENT), x != y, np.abs(x - y) / self._steps[d]
                )
            else:
                apart = x != y

            total += apart
            decided += (x != ABSENT) | (y != ABSENT)

        differences: Array = total / np.maximum(decided, 1.0)
        return differences


@dataclass(frozen=True, eq=False)
class FittedTree:
    """A fitted tree GP; immutable.

    Attributes:
        features: Features of the space.
        vectors: The rows of the process: observations, then fantasies.
        theta: (4,) float64, log-hyperparameters.
        process: The Gaussian process, on standardised values.
        scale: Maps scores to standardised values.
    """

    features: TreeFeatures
    vectors: tuple[Vector, ...]
    theta: Array
    process: GaussianProcess
    scale: Scale

    def posterior(self, vectors: Sequence[Vector]) -> Posterior:
        """Return the posterior of the scores of m networks, in score units."""
        cross = self.features.blocks(self.vectors, vectors).value(self.theta)
        with one_thread(len(self.vectors)):
            mean, variance = self.process.predict(
                cross, self.features.variance(vectors, self.theta)
            )

        centre = self.scale.centre
        spread = self.scale.spread
        best = centre + spread * self.process.values.max()
        return Posterior(centre + spread * mean[None], spread**2 * variance[None], np.array([best]))

    def hallucinate(self, vectors: Sequence[Vector]) -> FittedTree:
        """Return the model conditioned on fantasy scores, equal to the posterior means."""
        if not vectors:
            return self

        cross = self.features.blocks(self.vectors, vectors).value(self.theta)
        prior = self.features.blocks(vectors, vectors).value(self.theta)
        return replace(
            self, vectors=(*self.vectors, *vectors), process=self.process.extend(cross, prior)
        )


def fit(
    features: TreeFeatures, vectors: Sequence[Vector], scores: Array, rng: np.random.Generator
) -> FittedTree:
    """Fit the model to n observations, at least one.

    Args:
        features: Features of the space.
        vectors: The decisions of each; replicates of a network are allowed.
        scores: (n,) float64, finite.
        rng: Draws the starts of the hyperparameter optimisation, and the observations that it uses
            if there are many.
    """
    scale = Scale.of(scores)
    values = scale.standardise(scores)
    rows = some_of(len(vectors), OBSERVATIONS, rng)
    some = take(vectors, rows)
    blocks = features.blocks(some, some)
    with one_thread():
        theta = _most_probable(blocks, values[rows], rng)

    if len(rows) < len(vectors):
        blocks = features.blocks(vectors, vectors)

    process = GaussianProcess.condition(blocks.value(theta), values, float(np.exp(theta[3])))
    return FittedTree(features, tuple(vectors), theta, process, scale)


def objective(theta: Array, blocks: Blocks, values: Array) -> tuple[float, Array]:
    """Return minus the log posterior density of theta, up to a constant, and its gradient."""
    noise = float(np.exp(theta[3]))
    gram = blocks.value(theta)
    gram[np.diag_indices(len(gram))] += noise
    factor = try_cholesky(gram)
    if factor is None:
        return _WALL, np.zeros(4)

    process = GaussianProcess(factor, values, noise)
    centre = _BOUNDS.mean(axis=1)
    width = 0.25 * (_BOUNDS[:, 1] - _BOUNDS[:, 0])
    z = (theta - centre) / width
    gradient = process.log_likelihood_gradient(blocks.derivatives(theta)) - z / width
    return 0.5 * float(z @ z) - process.log_likelihood, -gradient


def _most_probable(blocks: Blocks, values: Array, rng: np.random.Generator) -> Array:
    drawn = rng.uniform(_BOUNDS[:, 0], _BOUNDS[:, 1], (_STARTS - 1, len(_BOUNDS)))
    climb = partial(minimize, objective, jac=True, bounds=_BOUNDS, options={"maxiter": 50})
    optima = []
    for start in (_BOUNDS.mean(axis=1), *drawn):
        optima.append(climb(x0=start, args=(blocks, values)))

    theta: Array = min(optima, key=lambda optimum: float(optimum.fun)).x
    return theta


def _codes(decision: Decision) -> Array:
    """Return the features of each choice, and a last row of zeros, which `ABSENT` indexes."""
    count = len(decision.choices)
    if decision.ordered:
        codes = np.stack(
            [np.ones(count), np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(1)], axis=1
        )
    else:
        codes = np.eye(count)

    return np.vstack([codes, np.zeros(codes.shape[1])])
