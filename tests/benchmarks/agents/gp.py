"""Benchmark of the Gaussian process's accuracy and speed.

The distances are precomputed: L1 distances of random points in three groups of coordinates, one
component a group. Their cost is that of a kernel, measured elsewhere. The references, timed in the
same run on the same distances, are scikit-learn's `GaussianProcessRegressor` with as many starts
and its own optimiser, and the formulae of a textbook: an explicit inverse, recomputed for every
observation. All but the largest fit use one thread.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.fitted import FittedGP
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.agents.surrogates.threads import one_thread
from archive.architecture.graph import Architecture, Layer
from archive.benchmarks.measurement import Figure
from archive.kernels.base import Components
from archive.kernels.covariance.base import exponential

COORDINATES = (6, 10, 4)
STARTS = 5

T = TypeVar("T")


def measure(
    observations: int = 500,
    candidates: int = 1000,
    many: int = 5000,
    repeats: int = 5,
    seed: int = 0,
) -> list[Figure]:
    """Measure agreement, times and memory.

    Args:
        observations: Number of observations to fit, with three distance components.
        candidates: Number of networks to predict.
        many: Number of observations of a fit in a separate process, to report its peak of memory; 0
            leaves it out.
        repeats: Number of runs; a time is their median. The slow references run once.
        seed: Seed of the points, the scores and the starts.
    """
    points = Points(observations + candidates + 1, seed)
    seen = points.networks[:observations]
    queries = points.networks[observations:-1]
    scores = points.scores[:observations]
    rng = np.random.default_rng(seed)
    surrogate = DistanceGP(points, exponential(len(COORDINATES)), MarginalLikelihood(STARTS))
    fit_seconds, fitted = _median(lambda: surrogate.fit(seen, scores, rng), repeats)
    posterior_seconds, _ = _median(lambda: fitted.posterior(queries), repeats)
    last = points.networks[-1:]
    score = points.scores[-1:]
    observe_seconds, _ = _median(lambda: fitted.observe(last, score).processes[0].weights, repeats)
    naive = _Naive(points, fitted)
    everything = np.arange(observations)
    size = f"{observations} observations, {len(COORDINATES)} components"
    figures = [
        *_agreement(points, fitted, seen, queries[:100]),
        Figure(
            f"fit, {size}",
            fit_seconds,
            "s",
            "<= 2",
            _scikit_seconds(points, everything, scores, seed),
        ),
        Figure(
            f"posterior of {candidates} after {observations}",
            posterior_seconds,
            "s",
            "<= 0.3",
            _reference(
                lambda: naive.posterior(
                    everything, np.arange(observations, observations + candidates)
                )
            ),
        ),
        Figure(
            f"one more observation after {observations}",
            1e3 * observe_seconds,
            "ms",
            None,
            1e3
            * _reference(lambda: naive.weights(np.append(everything, len(points.networks) - 1))),
        ),
    ]
    return figures + (_many(many, seed) if many else [])


class Points:
    """Random points as architectures, with their distances and noisy scores.

    Args:
        count: Number of points.
        seed: Seed of points and scores.

    Attributes:
        networks: One network for each point, all different.
        scores: (count,) float64.
    """

    def __init__(self, count: int, seed: int) -> None:
        """Draw points and scores."""
        rng = np.random.default_rng(seed)
        self.networks = [_chain(at) for at in range(count)]
        self._groups = [rng.uniform(0.0, 1.0, (count, size)) for size in COORDINATES]
        signal = np.sin(3.0 * self._groups[0].sum(axis=1)) + 2.0 * self._groups[1][:, 0]
        self.scores: Array = signal + 0.3 * rng.standard_normal(count)
        self._at = {network.key: at for at, network in enumerate(self.networks)}

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """See `Distance.distances`."""
        rows = self.positions(first)
        stack = self.stack(rows, rows if second is None else self.positions(second))
        return Components(stack, np.empty((0, *stack.shape[1:])))

    def positions(self, networks: Sequence[Architecture]) -> NDArray[np.int64]:
        """Return the positions of the networks' points: (m,) int64."""
        return np.array([self._at[network.key] for network in networks], np.int64)

    def stack(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Array:
        """Return the distances of points by position: (3, m, n) float64."""
        from scipy.spatial.distance import cdist

        stack = np.empty((len(self._groups), len(rows), len(columns)))
        for layer, group in zip(stack, self._groups, strict=True):
            layer[:] = cdist(group[rows], group[columns], "cityblock")

        return stack


class _Naive:
    """The textbook's formulae with explicit inverses, at the fitted hyperparameters."""

    def __init__(self, points: Points, fitted: FittedGP) -> None:
        self.points = points
        self.theta = np.exp(fitted.thetas[0])
        self.values = fitted.scale.standardise(points.scores)

    def covariance(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Array:
        alpha, *betas, _ = self.theta
        exponent = sum(
            beta * layer
            for beta, layer in zip(betas, self.points.stack(rows, columns), strict=True)
        )
        value: Array = alpha * np.exp(-exponent)
        return value

    def inverse(self, rows: NDArray[np.int64]) -> Array:
        return np.linalg.inv(self.covariance(rows, rows) + self.theta[-1] * np.eye(len(rows)))

    def weights(self, rows: NDArray[np.int64]) -> Array:
        return self.inverse(rows) @ self.values[rows]

    def posterior(
        self, rows: NDArray[np.int64], queries: NDArray[np.int64]
    ) -> list[tuple[float, float]]:
        inverse = self.inverse(rows)
        moments = []
        for at in queries:
            cross = self.covariance(rows, np.array([at]))[:, 0]
            mean = float(cross @ inverse @ self.values[rows])
            moments.append((mean, float(self.theta[0] - cross @ inverse @ cross)))

        return moments


def _agreement(
    points: Points, fitted: FittedGP, seen: Sequence[Architecture], queries: Sequence[Architecture]
) -> list[Figure]:
    rows = points.positions(seen).astype(float)[:, None]
    columns = points.positions(queries).astype(float)[:, None]
    theta = fitted.thetas[0]
    values = fitted.scale.standardise(points.scores[: len(seen)])
    reference = _scikit(points, theta, optimizer=None).fit(rows, values)
    mean, std = reference.predict(columns, return_std=True)
    # scikit-learn's is the deviation of a noisy value.
    std = np.sqrt(np.clip(std**2 - np.exp(theta[-1]), 0.0, None))
    posterior = fitted.posterior(queries)
    own_mean = fitted.scale.standardise(posterior.mean)
    own_std = posterior.std / fitted.scale.spread
    likelihood = abs(fitted.log_likelihoods[0] - reference.log_marginal_likelihood_value_)
    named = f"difference from scikit-learn, {len(seen)} observations"
    return [
        Figure(f"mean, largest {named}", float(np.abs(own_mean - mean).max()), "", "<= 1e-6"),
        Figure(
            f"standard deviation, largest {named}",
            float(np.abs(own_std - std).max()),
            "",
            "<= 1e-6",
        ),
        Figure(f"log likelihood, {named}", float(likelihood), "", "<= 1e-6"),
    ]


def _scikit_seconds(points: Points, rows: NDArray[np.int64], scores: Array, seed: int) -> float:
    bounds = exponential(len(COORDINATES)).bounds(points.stack(rows, rows))
    start = np.append(bounds.mean(axis=1), np.log(1e-3) / 2.0)
    model = _scikit(
        points, start, bounds, n_restarts_optimizer=STARTS - 1, normalize_y=True, random_state=seed
    )
    with warnings.catch_warnings():
        # Optima on the bounds are valid results here.
        warnings.simplefilter("ignore")
        return _reference(lambda: model.fit(rows.astype(float)[:, None], scores))


def _scikit(points: Points, theta: Array, bounds: Array | None = None, **settings: Any) -> Any:
    """Return scikit-learn's model with this package's covariance; its inputs are positions of
    points.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

    class FixedCovariance(Kernel):  # type: ignore[misc]
        def __init__(self, log_parameters: Array) -> None:
            self.log_parameters = log_parameters

        @property
        def theta(self) -> Array:
            return self.log_parameters

        @theta.setter
        def theta(self, value: Array) -> None:
            self.log_parameters = value

        @property
        def bounds(self) -> Array:
            return np.zeros((len(self.log_parameters), 2)) if bounds is None else bounds

        def clone_with_theta(self, theta: Array) -> FixedCovariance:
            return FixedCovariance(theta)

        def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Any:
            rows = X[:, 0].astype(np.int64)
            stack = points.stack(rows, rows if Y is None else Y[:, 0].astype(np.int64))
            if not eval_gradient:
                return exponential(len(stack)).value(stack, self.log_parameters)

            value, gradient = exponential(len(stack)).value_and_gradient(stack, self.log_parameters)
            return value, gradient.transpose(1, 2, 0)

        def diag(self, X: Array) -> Array:
            return np.full(len(X), np.exp(self.log_parameters[0]))

        def is_stationary(self) -> bool:
            return False

    kernel = FixedCovariance(theta[:-1]) + WhiteKernel(float(np.exp(theta[-1])), (1e-3, 1.0))
    return GaussianProcessRegressor(kernel, alpha=0.0, **settings)


def _many(count: int, seed: int) -> list[Figure]:
    command = f"from tests.benchmarks.agents.gp import fit_alone; fit_alone({count}, {seed})"
    answer = subprocess.run(
        [sys.executable, "-c", command], check=True, capture_output=True, text=True
    )
    measured = json.loads(answer.stdout.splitlines()[-1])
    size = f"{count} observations, {len(COORDINATES)} components"
    # A likelihood that stores its derivatives needs distances, derivatives, K, its factor and its
    # inverse.
    naive = (2 * len(COORDINATES) + 5) * count**2 * 8 / 2**20
    return [
        Figure(f"fit, {size}, distances included", measured["seconds"], "s"),
        Figure(
            f"peak memory of a process that fits {size}",
            measured["mebibytes"],
            "MiB",
            "<= 4096",
            naive,
        ),
    ]


def fit_alone(count: int, seed: int) -> None:
    """Fit once and print seconds and the peak of memory as JSON, in a separate process of
    `measure`.
    """
    points = Points(count, seed)
    surrogate = DistanceGP(points, exponential(len(COORDINATES)), MarginalLikelihood(STARTS))
    start = time.perf_counter()
    surrogate.fit(points.networks, points.scores, np.random.default_rng(seed)).posterior(
        points.networks[:10]
    )
    seconds = time.perf_counter() - start
    # Linux counts kibibytes, macOS bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps({"seconds": seconds, "mebibytes": peak}))


def _chain(at: int) -> Architecture:
    layers = [Layer("ip"), Layer("relu", 8 + at), Layer("linear"), Layer("op")]
    return Architecture("mlp", layers, [(0, 1), (1, 2), (2, 3)])


def _reference(work: Callable[[], Any]) -> float:
    with one_thread():
        return _median(work, 1)[0]


def _median(work: Callable[[], T], repeats: int) -> tuple[float, T]:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)

    return float(np.median(seconds)), result
