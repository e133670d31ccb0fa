"""Gaussian processes on configurations with conditional parameters; hyperparameters by slice
sampling.

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
        """Return the model conditioned on fantasy scores of (k, D) codes, equal to their posterior
        means.
        """


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
        means, variances = (np.empty((len(self.thetas), len(codes))) for _ in range(2))
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
        processes = tuple(
            process.extend(
                self.kernel.value(theta[:-1], self.prepared, added),
                self.kernel.value(theta[:-1], added),
            )
            for theta, process in zip(self.thetas, self.processes, strict=True)
        )
        return replace(self, prepared=np.vstack([self.prepared, added]), processes=processes)


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

    processes = tuple(
        GaussianProcess.condition(
            kernel.value(theta[:-1], prepared), values, float(np.exp(theta[-1]))
        )
        for theta in thetas
    )
    return FittedConditionalGP(kernel, prepared, thetas, processes)


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
        """See `FittedConditional.posterior`; a depth without observations has the prior, mean 0 and
        variance 1.
        """
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
        """See `FittedConditional.hallucinate`; depths without observations have no process to
        change.
        """
        present = {depth: rows for depth, rows in self._rows(codes).items() if depth in self.parts}
        changed = {
            depth: self.parts[depth].hallucinate(codes[rows]) for depth, rows in present.items()
        }
        return replace(self, parts={**self.parts, **changed})

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
    """Fit a process for each depth; arguments as in `learn`, and a function from a row of codes to
    its depth.
    """
    depths = np.array([depth(row) for row in codes])
    parts = {
        int(number): learn(kernel, codes[depths == number], values[depths == number], schedule, rng)
        for number in np.unique(depths)
    }
    return FittedSeparateGPs(parts, depth, schedule.samples, float(values.max()))
