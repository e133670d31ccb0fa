"""Gaussian process on codes of configurations: Matern-5/2 covariance with learnt weights.

| symbol    | meaning                                                                  | shape   |
|-----------|--------------------------------------------------------------------------|---------|
| u, z      | different configurations; their standardised values, replicates averaged | (u,)    |
| c         | number of evaluations of each                                            | (u,)    |
| E, r      | embedding (`embedding`), of theta; Euclidean distance of embeddings      | (u, q)  |
| alpha     | signal variance                                                          | scalar  |
| eta2      | noise variance of one evaluation                                         | scalar  |
| B         | covariance of the values with noise                                      | (u, u)  |
| a         | B^-1 z                                                                   | (u,)    |
| phi       | theta, log alpha, log eta2                                               | (p + 2,)|

    k(x, x') = 1 + alpha (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r)
    B        = k(X, X) + diag(eta2 / c)

The constant 1 is the prior variance of the mean. phi maximises the log marginal likelihood plus the
log density of a normal prior. Further processes have draws of phi from a normal approximation of
its posterior, with the Fisher information: a parameter that few evaluations have, as in a branch of
which little is known, then has short length scales too, and its branch is not given up. With h = dk/dr^2 = -5/6 alpha (1 + sqrt(5) r) exp(-sqrt(5) r),
M = 1/2 (a a^T - B^-1) and V = M o h, the derivative by the embedding is

    dL/dE = 4 (diag(V 1) - V) E

so that all derivatives together cost one more product of a (u, u) matrix with E.

The leave-one-out density is of Rasmussen and Williams (2006), eqs. (5.10) to (5.12).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg import lapack, solve_triangular
from scipy.optimize import minimize

from archive.agents.configurations.embedding import ArcEmbedding
from archive.agents.surrogates.base import Array, square_root
from archive.agents.surrogates.gp.exact import LOG_TWO_PI, leave_one_out, try_cholesky
from archive.agents.surrogates.gp.likelihood import some_of
from archive.errors import NumericalError

_ROOT = float(np.sqrt(5.0))
_JITTER = 1e-7
_WALL = 1e12
_ALPHA = (np.log(1e-2), np.log(1e2))
_NOISE = (np.log(1e-6), np.log(2.0))
_LOG_NOISE = {True: np.log(3e-2), False: np.log(1e-3)}
"""Centre of the prior of log eta2, with noise and without."""
_STD_NOISE = 2.0
_STARTS = 2
_MOST_STARTED = 120
_MOST_FITTED = 300
"""Most configurations of the fits from each start, and of the refinement of the best one."""
_MOST_DRAWS = 3
_COST_OF_DRAWS = 120_000
"""Most draws of hyperparameters, and most draws times the square of the configurations."""


@dataclass(frozen=True)
class CodedScores:
    """Different configurations with the means of their standardised scores.

    Attributes:
        codes: (u, D) float64.
        values: (u,) float64.
        counts: (u,) float64, number of evaluations of each.
    """

    codes: Array
    values: Array
    counts: Array

    def take(self, rows: Array) -> CodedScores:
        """Return some of the configurations."""
        return CodedScores(self.codes[rows], self.values[rows], self.counts[rows])


@final
@dataclass(frozen=True, eq=False)
class FittedCodeProcess:
    """A Gaussian process with its data.

    Attributes:
        embedding: The embedding.
        phi: Hyperparameters.
        data: The observed configurations, fantasies included.
        embedded: (u, q) their embeddings.
        factor: (u, u) lower Cholesky factor of B.
        weights: (u,) a.
    """

    embedding: ArcEmbedding
    phi: Array
    data: CodedScores
    embedded: Array
    factor: Array
    weights: Array

    @property
    def noise(self) -> float:
        """Noise variance of one evaluation: eta2."""
        return float(np.exp(self.phi[-1]))

    def predict(self, codes: Array) -> tuple[Array, Array]:
        """Return means and variances of the noise-free values of (m, D) codes: (m,), (m,)."""
        alpha = float(np.exp(self.phi[-2]))
        embedded = self.embedding.embed(self.phi[:-2], codes)
        cross = 1.0 + _matern(_squares(self.embedded, embedded), alpha)
        half = solve_triangular(self.factor, cross, lower=True, check_finite=False)
        variances = 1.0 + alpha - np.square(half).sum(axis=0)
        return cross.T @ self.weights, np.maximum(variances, 1e-12)

    def joint(self, codes: Array) -> tuple[Array, Array]:
        """Return means, (m,), and covariances, (m, m), of the noise-free values of (m, D) codes."""
        alpha = float(np.exp(self.phi[-2]))
        embedded = self.embedding.embed(self.phi[:-2], codes)
        cross = 1.0 + _matern(_squares(self.embedded, embedded), alpha)
        half = solve_triangular(self.factor, cross, lower=True, check_finite=False)
        covariance: Array = 1.0 + _matern(_squares(embedded, embedded), alpha) - half.T @ half
        return cross.T @ self.weights, covariance

    def loo_log_densities(self) -> Array:
        """Return the log density of each value given the others: (u,) float64."""
        return loo_log_densities(self.factor, self.weights)

    def left_out(self) -> tuple[Array, Array]:
        """Return means and variances of each value given the others: (u,), (u,)."""
        return left_out(self.factor, self.weights, self.data.values)

    def sample(self, codes: Array, count: int, rng: np.random.Generator) -> Array:
        """Draw the noise-free values of (m, D) codes jointly: (count, m) float64."""
        means, covariance = self.joint(codes)
        return draw(means, covariance, count, rng)

    def hallucinate(self, codes: Array) -> FittedCodeProcess:
        """Return the process conditioned on its means at (k, D) codes."""
        means, _ = self.predict(codes)
        return condition(self.embedding, self.phi, extend(self.data, codes, means))


def fit(
    embedding: ArcEmbedding, data: CodedScores, *, noisy: bool, rng: np.random.Generator
) -> tuple[FittedCodeProcess, ...]:
    """Return processes with hyperparameters from their posterior; the first has its maximum.

    Args:
        embedding: The embedding of the space.
        data: The observed configurations, at least one.
        noisy: Whether evaluations are known to have noise: decides the prior of eta2.
        rng: Source of the starts, of the draws, and of the configurations of the fit where there
            are many.
    """
    prior = _prior_of(embedding, noisy=noisy)
    started = _some(data, _MOST_STARTED, rng)
    fitted = _some(data, _MOST_FITTED, rng)
    optima = []
    for number in range(_STARTS):
        start = prior.centre
        if number:
            moved = prior.centre + 0.7 * prior.stds * rng.standard_normal(len(start))
            start = np.clip(moved, prior.lower, prior.upper)

        optima.append(_climb(embedding, started, prior, start, 40))

    best = max(optima, key=lambda optimum: optimum[0])
    if len(fitted.values) > len(started.values):
        best = _climb(embedding, fitted, prior, best[1], 15)

    count = int(np.clip(_COST_OF_DRAWS / len(data.values) ** 2, 0, _MOST_DRAWS))
    processes = [condition(embedding, best[1], data)]
    for phi in _draw(embedding, started, prior, best[1], count, rng):
        processes.append(condition(embedding, phi, data))

    return tuple(processes)


def _prior_of(embedding: ArcEmbedding, *, noisy: bool) -> _NormalPrior:
    """Return the prior of phi."""
    precision = np.diag([0.0] * len(embedding.centre) + [1.0, _STD_NOISE**-2])
    precision[:-2, :-2] = embedding.precision
    return _NormalPrior(
        np.concatenate([embedding.centre, [0.0, _LOG_NOISE[noisy]]]),
        precision,
        np.concatenate([embedding.stds, [1.0, _STD_NOISE]]),
        np.concatenate([embedding.bounds.lower, [_ALPHA[0], _NOISE[0]]]),
        np.concatenate([embedding.bounds.upper, [_ALPHA[1], _NOISE[1]]]),
    )


def _draw(
    embedding: ArcEmbedding,
    data: CodedScores,
    prior: _NormalPrior,
    phi: Array,
    count: int,
    rng: np.random.Generator,
) -> list[Array]:
    """Return draws of the normal approximation of the posterior of phi at its maximum."""
    if not count:
        return []

    factor = try_cholesky(information(embedding, data, phi) + prior.precision)
    if factor is None:
        return []

    draws = []
    for _ in range(count):
        step = solve_triangular(factor, rng.standard_normal(len(phi)), lower=True, trans="T")
        draws.append(np.clip(phi + step, prior.lower, prior.upper))

    return draws


def information(embedding: ArcEmbedding, data: CodedScores, phi: Array) -> Array:
    """Return the Fisher information of phi, F_ij = tr(B^-1 B_i B^-1 B_j) / 2: (p + 2, p + 2).

    B_i is the derivative of B by the entry i of phi.
    """
    alpha = float(np.exp(phi[-2]))
    noise = float(np.exp(phi[-1])) / data.counts
    embedded, bends = embedding.embed_with_slopes(phi[:-2], data.codes)
    squares = _squares(embedded, embedded)
    scaled = _ROOT * np.sqrt(squares)
    pull = -5.0 / 6.0 * alpha * (1.0 + scaled) * np.exp(-scaled)
    signal = _matern(squares, alpha)
    steps = embedded.T[:, :, None] - embedded.T[:, None]
    by_rho = steps * (bends.T[:, :, None] - bends.T[:, None])
    derivatives = list(2.0 * pull * embedding.collect(np.square(steps), by_rho))
    derivatives.append(signal)
    derivatives.append(np.diag(noise))
    noisy = 1.0 + signal
    noisy[np.diag_indices(len(noisy))] += noise + _JITTER
    solved = np.linalg.solve(noisy, np.stack(derivatives))
    rows = solved.reshape(len(solved), -1)
    columns = solved.transpose(0, 2, 1).reshape(len(solved), -1)
    fisher: Array = 0.5 * (rows @ columns.T)
    return fisher


def condition(embedding: ArcEmbedding, phi: Array, data: CodedScores) -> FittedCodeProcess:
    """Return the process of hyperparameters and data.

    Raises:
        NumericalError: The covariance is not positive definite.
    """
    embedded = embedding.embed(phi[:-2], data.codes)
    signal = covariance(embedded, embedded, float(np.exp(phi[-2])))
    factor, weights = solve(signal, float(np.exp(phi[-1])), data)
    return FittedCodeProcess(embedding, phi, data, embedded, factor, weights)


def covariance(rows: Array, columns: Array, alpha: float) -> Array:
    """Return k of (u, q) and (m, q) embeddings: (u, m) float64."""
    return 1.0 + _matern(_squares(rows, columns), alpha)


def solve(signal: Array, noise: float, data: CodedScores) -> tuple[Array, Array]:
    """Return the Cholesky factor of B and a.

    Args:
        signal: (u, u) covariance without noise.
        noise: eta2.
        data: The values.

    Raises:
        NumericalError: B is not positive definite.
    """
    variances = noise / data.counts
    for jitter in (_JITTER, 1e-5, 1e-3):
        noisy = signal.copy()
        noisy[np.diag_indices(len(noisy))] += variances + jitter
        factor = try_cholesky(noisy)
        if factor is not None:
            weights, _ = lapack.dpotrs(factor, data.values, lower=1)
            return factor, weights

    raise NumericalError("the covariance of the configurations is not positive definite")


def loo_log_densities(factor: Array, weights: Array) -> Array:
    """Return the log density of each value given the others: (u,) float64."""
    errors, precision = leave_one_out(factor, weights)
    logs: Array = 0.5 * (np.log(precision) - LOG_TWO_PI - np.square(errors) * precision)
    return logs


def left_out(factor: Array, weights: Array, values: Array) -> tuple[Array, Array]:
    """Return means and variances of each value, noise included, given the others: (u,), (u,)."""
    errors, precision = leave_one_out(factor, weights)
    return values - errors, 1.0 / precision


def draw(means: Array, covariance: Array, count: int, rng: np.random.Generator) -> Array:
    """Draw from a normal distribution: (count, m) float64.

    Args:
        means: (m,) float64.
        covariance: (m, m) float64.
        count: Number of draws.
        rng: Source of randomness.
    """
    normals = rng.standard_normal((count, len(means)))
    drawn: Array = means + normals @ square_root(covariance).T
    return drawn


def extend(data: CodedScores, codes: Array, values: Array) -> CodedScores:
    """Return data with values of further configurations, each evaluated once."""
    return CodedScores(
        np.vstack([data.codes, codes]),
        np.concatenate([data.values, values]),
        np.concatenate([data.counts, np.ones(len(codes))]),
    )


@dataclass(frozen=True)
class _NormalPrior:
    """Normal prior of phi, cut at bounds.

    Attributes:
        centre: (p + 2,) its mean.
        precision: (p + 2, p + 2) inverse of its covariance.
        stds: (p + 2,) standard deviations.
        lower: (p + 2,) lower bounds.
        upper: (p + 2,) upper bounds.
    """

    centre: Array
    precision: Array
    stds: Array
    lower: Array
    upper: Array


def _climb(
    embedding: ArcEmbedding, data: CodedScores, prior: _NormalPrior, start: Array, steps: int
) -> tuple[float, Array]:
    """Return the log posterior and the hyperparameters of an optimum."""

    def negative(phi: Array) -> tuple[float, Array]:
        value, slope = log_likelihood_with_slope(embedding, data, phi)
        if not np.isfinite(value):
            return _WALL, np.zeros_like(phi)

        pull = prior.precision @ (phi - prior.centre)
        return 0.5 * float(pull @ (phi - prior.centre)) - value, pull - slope

    box = np.stack([prior.lower, prior.upper], axis=1)
    options = {"maxiter": steps, "ftol": 1e-6, "gtol": 1e-3}
    result = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=box, options=options)
    return -float(result.fun), np.asarray(result.x, dtype=np.float64)


def log_likelihood_with_slope(
    embedding: ArcEmbedding, data: CodedScores, phi: Array
) -> tuple[float, Array]:
    """Return L and dL/dphi, (p + 2,) float64; -inf where B is not positive definite."""
    alpha = float(np.exp(phi[-2]))
    noise = float(np.exp(phi[-1]))
    embedded, bends = embedding.embed_with_slopes(phi[:-2], data.codes)
    scaled = _ROOT * np.sqrt(_squares(embedded, embedded))
    decay = alpha * np.exp(-scaled)
    signal = (1.0 + scaled + np.square(scaled) / 3.0) * decay
    noisy = 1.0 + signal
    noisy[np.diag_indices(len(noisy))] += noise / data.counts + _JITTER
    factor = try_cholesky(noisy)
    if factor is None:
        return -np.inf, np.zeros_like(phi)

    weights, _ = lapack.dpotrs(factor, data.values, lower=1)
    value = -0.5 * float(data.values @ weights) - float(np.log(factor.diagonal()).sum())
    value -= 0.5 * len(weights) * LOG_TWO_PI
    half, _ = lapack.dpotri(factor, lower=1)
    inverse = np.tril(half) + np.tril(half, -1).T
    middle = 0.5 * (np.outer(weights, weights) - inverse)
    pulls = middle * (-5.0 / 6.0 * (1.0 + scaled) * decay)
    steps = 4.0 * (pulls.sum(axis=1)[:, None] * embedded - pulls @ embedded)
    slope = np.empty_like(phi)
    by_weight = np.einsum("ij,ij->j", steps, embedded)
    slope[:-2] = embedding.collect(by_weight, np.einsum("ij,ij->j", steps, bends))
    slope[-2] = np.vdot(middle, signal)
    slope[-1] = noise * float((middle.diagonal() / data.counts).sum())
    return value, slope


def without_replicates(codes: Array, values: Array) -> CodedScores:
    """Return each configuration once with its mean value, in the order of the first evaluations.

    Args:
        codes: (n, D) float64.
        values: (n,) float64.
    """
    positions: dict[bytes, int] = {}
    owners = np.array([positions.setdefault(row.tobytes(), len(positions)) for row in codes], int)
    counts = np.bincount(owners).astype(np.float64)
    means = np.bincount(owners, weights=values) / counts
    first = np.unique(owners, return_index=True)[1]
    return CodedScores(codes[first], means, counts)


def _some(data: CodedScores, most: int, rng: np.random.Generator) -> CodedScores:
    """Return at most some configurations: the best third of these, and others at random."""
    if len(data.values) <= most:
        return data

    order = np.argsort(-data.values, kind="stable")
    top = most // 3
    others = some_of(len(order) - top, most - top, rng)
    return data.take(np.sort(np.concatenate([order[:top], order[top:][others]])))


def _squares(rows: Array, columns: Array) -> Array:
    """Return squared distances of (u, q) and (m, q) embeddings: (u, m) float64."""
    squares = np.square(rows).sum(axis=1)[:, None] + np.square(columns).sum(axis=1)
    squares -= 2.0 * (rows @ columns.T)
    clipped: Array = np.maximum(squares, 0.0, out=squares)
    return clipped


def _matern(squares: Array, alpha: float) -> Array:
    scaled = _ROOT * np.sqrt(squares)
    covariance: Array = alpha * (1.0 + scaled + np.square(scaled) / 3.0) * np.exp(-scaled)
    return covariance
