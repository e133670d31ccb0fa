"""Warm-start sources in searches of configurations: of other tasks, or other spaces.

| symbol | meaning                                                                       | shape  |
|--------|-------------------------------------------------------------------------------|--------|
| s      | a source: studies of one task and space, with its own Gaussian process        |        |
| F      | expected standardised scores of configurations under each source              | (u, S) |
| rho    | slope of the study's scores on the expectations of each source, N(0, nu)      | (S,)   |
| B      | covariance of the study's values, with rho integrated out                     | (u, u) |

    B = 1 + alpha m(X, X) + nu F F^T + diag(eta2 / c)

A configuration of a source is carried over by its shared parameters (`archive.parameters.sharing`).
The process with F is a model beside the others, and weighted by its leave-one-out density: a source
that does not predict the study loses its weight, and costs the first `TOP` evaluations at most.
A negative rho makes use of a source that ranks configurations the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg import solve_triangular

from archive.agents.base import SourceStudy
from archive.agents.configurations import process
from archive.agents.configurations.embedding import ArcEmbedding
from archive.agents.configurations.process import CodedScores, FittedCodeProcess
from archive.agents.observations import scores_of
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.outcome_transforms import OutcomeTransform
from archive.agents.transfer.source_model import SourceGroup, group_sources
from archive.agents.transfer.source_tasks import LEAST
from archive.architecture.parameter_operations import configuration_of
from archive.errors import InvalidArchitectureError
from archive.parameters.sharing import carry
from archive.spaces.parameters import Parameters

TOP = 2
"""First evaluations of a study, at the best configurations of its sources."""

FIRST = 5
"""Evaluations of a study with sources before the first of the models."""

_VARIANCE = 1.0
"""nu."""

_SHARES = (1.0, 0.3, 0.1)
"""Shares of alpha that may remain beside the sources."""


@dataclass(frozen=True, eq=False)
class CodedSource:
    """A source with its model.

    Attributes:
        studies: Names of its studies.
        data: Its configurations in the space of the search.
        model: Model of their standardised scores.
    """

    studies: tuple[str, ...]
    data: CodedScores
    model: FittedCodeProcess

    def best(self) -> Array:
        """Return its configurations, the greatest expected score first: (u, D)."""
        means, _ = self.model.predict(self.data.codes)
        return self.data.codes[np.argsort(-means, kind="stable")]


class SourceReader:
    """Sources of the histories of one space, kept from call to call.

    Args:
        space: The space of the search.
        transform: Transform of the sources' scores.
    """

    def __init__(self, space: Parameters, transform: OutcomeTransform) -> None:
        """Start without models."""
        self.space = space
        self.transform = transform
        self._models: dict[tuple[object, ...], CodedSource | None] = {}

    def read(self, sources: Sequence[SourceStudy]) -> list[CodedSource]:
        """Return the sources that share parameters with the space and suffice for a model."""
        groups = group_sources(sources)
        kept = {}
        for group in groups:
            key = group.contents
            kept[key] = self._models[key] if key in self._models else self._fit(group)

        self._models = kept
        return [source for source in kept.values() if source is not None]

    def _fit(self, group: SourceGroup) -> CodedSource | None:
        observations = group.sample()
        configurations = []
        for observation in observations:
            try:
                configurations.append(configuration_of(observation.architecture))
            except InvalidArchitectureError:
                return None

        names = self._shared(configurations)
        rows = []
        scores = []
        for values, score in zip(configurations, scores_of(observations), strict=True):
            carried = carry(self.space.parameters, values, names)
            if carried is not None:
                rows.append(carried)
                scores.append(score)

        if len(rows) < LEAST or len(set(scores)) == 1:
            return None

        targets = np.array(scores, np.float64)
        standardised = self.transform.learn(targets).standardise(targets)
        codes = self.space.parameters.encode(rows)
        data = process.without_replicates(codes, standardised)
        if len(data.values) < LEAST:
            return None

        embedding = ArcEmbedding(self.space.parameters)
        # A fixed seed: the same sources give the same model.
        model, *_ = process.fit(embedding, data, noisy=True, rng=np.random.default_rng(0))
        return CodedSource(tuple(source.study for source in group.sources), data, model)

    def _shared(self, configurations: Sequence[dict[str, object]]) -> set[str]:
        """Return the parameters of the space of which the source has values of their domains."""
        shared = set()
        for parameter in self.space.parameters.parameters:
            for values in configurations:
                if parameter.name in values and carry(
                    self.space.parameters, values, {parameter.name}
                ):
                    shared.add(parameter.name)
                    break

        return shared


@final
@dataclass(frozen=True, eq=False)
class SourcedProcess:
    """A Gaussian process with the expectations of sources as further features.

    Attributes:
        base: The process without them, with its data.
        sources: Models of the sources.
        share: Share of alpha beside the sources.
        features: F of the data, (u, S).
        factor: (u, u) lower Cholesky factor of B.
        weights: (u,) B^-1 z.
    """

    base: FittedCodeProcess
    sources: tuple[FittedCodeProcess, ...]
    share: float
    features: Array
    factor: Array
    weights: Array

    @property
    def noise(self) -> float:
        """Noise variance of one evaluation: eta2."""
        return self.base.noise

    @property
    def slopes(self) -> Array:
        """Expected rho: (S,) float64."""
        slopes: Array = _VARIANCE * (self.features.T @ self.weights)
        return slopes

    def predict(self, codes: Array) -> tuple[Array, Array]:
        """Return means and variances of the noise-free values of (m, D) codes: (m,), (m,)."""
        means, half, features = self._project(codes)
        total = 1.0 + self._alpha + _VARIANCE * np.square(features).sum(axis=1)
        variances = total - np.square(half).sum(axis=0)
        return means, np.maximum(variances, 1e-12)

    def _joint(self, codes: Array) -> tuple[Array, Array]:
        """Return means, (m,), and covariances, (m, m), of the noise-free values of codes."""
        means, half, features = self._project(codes)
        embedded = self.base.embedding.embed(self.base.phi[:-2], codes)
        prior = process.covariance(embedded, embedded, self._alpha)
        covariance: Array = prior + _VARIANCE * (features @ features.T) - half.T @ half
        return means, covariance

    @property
    def _alpha(self) -> float:
        return self.share * float(np.exp(self.base.phi[-2]))

    def _project(self, codes: Array) -> tuple[Array, Array, Array]:
        """Return means, L^-1 times the covariances with the data, and F of (m, D) codes."""
        features = _expectations(self.sources, codes)
        prior = self.base.embedding.embed(self.base.phi[:-2], codes)
        cross = process.covariance(self.base.embedded, prior, self._alpha)
        cross = cross + _VARIANCE * (self.features @ features.T)
        half = solve_triangular(self.factor, cross, lower=True, check_finite=False)
        return cross.T @ self.weights, half, features

    def loo_log_densities(self) -> Array:
        """Return the log density of each value given the others: (u,) float64."""
        return process.loo_log_densities(self.factor, self.weights)

    def left_out(self) -> tuple[Array, Array]:
        """Return means and variances of each value given the others: (u,), (u,)."""
        return process.left_out(self.factor, self.weights, self.base.data.values)

    def sample(self, codes: Array, count: int, rng: np.random.Generator) -> Array:
        """Draw the noise-free values of (m, D) codes jointly: (count, m) float64."""
        means, covariance = self._joint(codes)
        return process.draw(means, covariance, count, rng)

    def hallucinate(self, codes: Array) -> SourcedProcess:
        """Return the process conditioned on its means at (k, D) codes."""
        means, _ = self.predict(codes)
        data = process.extend(self.base.data, codes, means)
        base = process.condition(self.base.embedding, self.base.phi, data)
        return _condition(base, self.sources, self.share)


def fit_sourced(base: FittedCodeProcess, sources: Sequence[CodedSource]) -> SourcedProcess:
    """Return the process with the features of sources.

    The share of alpha maximises the marginal likelihood.
    """
    models = tuple(source.model for source in sources)
    fitted = [_condition(base, models, share) for share in _SHARES]
    return max(fitted, key=_log_likelihood)


def _condition(
    base: FittedCodeProcess, sources: tuple[FittedCodeProcess, ...], share: float
) -> SourcedProcess:
    features = _expectations(sources, base.data.codes)
    alpha = share * float(np.exp(base.phi[-2]))
    signal = process.covariance(base.embedded, base.embedded, alpha)
    signal = signal + _VARIANCE * (features @ features.T)
    factor, weights = process.solve(signal, base.noise, base.data)
    return SourcedProcess(base, sources, share, features, factor, weights)


def _expectations(sources: Sequence[FittedCodeProcess], codes: Array) -> Array:
    """Return F: (m, S) float64."""
    return np.column_stack([source.predict(codes)[0] for source in sources])


def _log_likelihood(fitted: SourcedProcess) -> float:
    values = fitted.base.data.values
    determinant = float(np.log(fitted.factor.diagonal()).sum())
    return -0.5 * float(values @ fitted.weights) - determinant
