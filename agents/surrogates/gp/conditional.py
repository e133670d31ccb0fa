"""Gaussian processes on configurations with conditional parameters.

Hyperparameters are drawn by slice sampling.

Swersky et al. (2014) "infer all GP parameters using MCMC". Scores are standardised. The prior of
the log-parameters is uniform between the kernel's bounds, and for the noise variance between 1e-4
and 1.

    symbol   meaning                                                     shape
    n, m     observations, query configurations                          scalars
    S        hyperparameter samples                                      scalar
    theta    log-parameters of the kernel, then of the noise variance    (p + 1,)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from archive.agents.surrogates.base import Array, Posterior
from archive.agents.surrogates.gp.exact import GaussianProcess, log_likelihood
from archive.agents.surrogates.gp.likelihood import Bounds, some_of
from archive.agents.surrogates.gp.slice_sampling import SamplingSchedule, slice_sample
from archive.agents.surrogates.threads import one_thread
from archive.kernels.covariance.arc import CodeKernel

_NOISE = (1e-4, 1.0)

OBSERVATIONS = 120
"""Most observations that hyperparameters are sampled on; predictions use all."""


class FittedConditional(ABC):
    """A model fitted to standardised scores of configurations; immutable."""

    @abstractmethod
    def posterior(self, codes: Array) -> Posterior:
        """Return the posterior of the standardised scores of (m, D) codes."""

    @abstractmethod
    def hallucinate(self, codes: Array) -> FittedConditional:
        """Return the model conditioned on fantasies of (k, D) codes: their posterior means."""


@dataclass(frozen=True, eq=False)
class FittedConditionalGP(FittedConditional):
    """A Gaussian process, averaged over S samples of its hyperparameters.

    Attributes:
        kernel: Kernel on codes.
        prepared: (n, q) float64, the observed and fantasised configurations.
        thetas: (S, p + 1) float64.
        processes: One for each sample.
    """

    kernel: CodeKernel
    prepared: Array
    thetas: Array
    processes: tuple[GaussianProcess, ...]

    def posterior(self, codes: Array) -> Posterior:
        """See `FittedConditional.posterior`."""
        prepared = self.kernel.prepare(codes)
        means = np.empty((len(self.thetas), len(codes)))
        variances = np.empty_like(means)
        with one_thread():
            for s, (theta, process) in enumerate(zip(self.thetas, self.processes, strict=True)):
                cross = self.kernel.value(theta[:-1], self.prepared, prepared)
                means[s], variances[s] = process.predict(
                    cross, self.kernel.prior(theta[:-1], prepared)
                )

        return Posterior(
            means, variances, np.array([process.values.max() for process in self.processes])
        )

    def hallucinate(self, codes: Array) -> FittedConditionalGP:
        """See `FittedConditional.hallucinate`."""
        if not len(codes):
            return self

        added = self.kernel.prepare(codes)
        processes = []
        for theta, process in zip(self.thetas, self.processes, strict=True):
            cross = self.kernel.value(theta[:-1], self.prepared, added)
            processes.append(process.extend(cross, self.kernel.value(theta[:-1], added)))

        prepared = np.vstack([self.prepared, added])
        return replace(self, prepared=prepared, processes=tuple(processes))


def learn(
    kernel: CodeKernel,
    codes: Array,
    values: Array,
    schedule: SamplingSchedule,
    rng: np.random.Generator,
) -> FittedConditionalGP:
    """Fit the model to n observations, at least one.

    Hyperparameters are sampled on at most `OBSERVATIONS` of them, drawn at random: a chain takes
    thousands of likelihoods, each of which costs n^3.

    Args:
        kernel: Kernel on codes.
        codes: (n, D) float64; equal rows are replicates.
        values: (n,) float64, standardised scores.
        schedule: Length of the chain.
        rng: Source of randomness.
    """
    prepared = kernel.prepare(codes)
    bounds = np.vstack([kernel.bounds, np.log(_NOISE)])
    rows = some_of(len(codes), OBSERVATIONS, rng)
    some = prepared[rows]
    some_values = values[rows]
    diagonal = np.diag_indices(len(rows))

    def density(theta: Array) -> float:
        noisy = kernel.value(theta[:-1], some)
        noisy[diagonal] += np.exp(theta[-1])
        return log_likelihood(noisy, some_values)

    with one_thread():
        thetas = slice_sample(density, Bounds(bounds[:, 0], bounds[:, 1]), schedule, rng)

    processes = []
    for theta in thetas:
        gram = kernel.value(theta[:-1], prepared)
        processes.append(GaussianProcess.condition(gram, values, float(np.exp(theta[-1]))))

    return FittedConditionalGP(kernel, prepared, thetas, tuple(processes))


@dataclass(frozen=True, eq=False)
class FittedSeparateGPs(FittedConditional):
    """An independent Gaussian process for each depth.

    Attributes:
        parts: The processes, by depth.
        depth: Returns the depth of one row of codes.
        samples: S.
        best: Largest standardised score of all depths.
    """

    parts: Mapping[int, FittedConditionalGP]
    depth: Callable[[Array], int]
    samples: int
    best: float

    def posterior(self, codes: Array) -> Posterior:
        """See `FittedConditional.posterior`; an unobserved depth has mean 0 and variance 1."""
        shape = (self.samples, len(codes))
        means = np.zeros(shape)
        variances = np.ones(shape)
        for depth, rows in self._rows(codes).items():
            if depth in self.parts:
                predicted = self.parts[depth].posterior(codes[rows])
                means[:, rows] = predicted.means
                variances[:, rows] = predicted.variances

        incumbents = [
            part.posterior(np.empty((0, codes.shape[1]))).best for part in self.parts.values()
        ]
        return Posterior(
            means, variances, np.max([np.full(self.samples, self.best), *incumbents], axis=0)
        )

    def hallucinate(self, codes: Array) -> FittedSeparateGPs:
        """See `FittedConditional.hallucinate`; depths without observations do not change."""
        parts = dict(self.parts)
        for depth, rows in self._rows(codes).items():
            if depth in parts:
                parts[depth] = parts[depth].hallucinate(codes[rows])

        return replace(self, parts=parts)

    def _rows(self, codes: Array) -> dict[int, list[int]]:
        rows: dict[int, list[int]] = {}
        for index, row in enumerate(codes):
            rows.setdefault(self.depth(row), []).append(index)

        return rows


def learn_separately(
    kernel: CodeKernel,
    codes: Array,
    values: Array,
    schedule: SamplingSchedule,
    rng: np.random.Generator,
    depth: Callable[[Array], int],
) -> FittedSeparateGPs:
    """Fit a process for each depth, which `depth` reads from a row of codes.

    Other arguments are as in `learn`.
    """
    depths = np.array([depth(row) for row in codes])
    parts = {}
    for number in np.unique(depths):
        rows = depths == number
        parts[int(number)] = learn(kernel, codes[rows], values[rows], schedule, rng)

    return FittedSeparateGPs(parts, depth, schedule.samples, float(values.max()))
