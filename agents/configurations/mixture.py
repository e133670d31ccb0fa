"""Models of configurations, weighted by the density of each score given the others.

| symbol | meaning                                                              | shape   |
|--------|----------------------------------------------------------------------|---------|
| K      | models: Gaussian process (`process`), random forest (`forest`)       | scalar  |
| l      | log density of each value given the others (for the forest, of the   | (u, K)  |
|        | trees that do not know it)                                           |         |
| w      | weights (`archive.agents.surrogates.stacking`)                       | (K,)    |
| tau    | greatest mean of an observed configuration, by model                 | (K,)    |

Scores are transformed first (`archive.agents.surrogates.outcome_transforms`). The acquisition is of
the mixture: log sum_k w_k EI_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from archive.agents.configurations import forest, process
from archive.agents.configurations.embedding import ArcEmbedding
from archive.agents.configurations.history import CodedHistory
from archive.agents.configurations.sources import CodedSource, SourcedProcess, fit_sourced
from archive.agents.surrogates.base import Array, Posterior
from archive.agents.surrogates.outcome_transforms import OutcomeTransform, Scale
from archive.agents.surrogates.stacking import LEAST_WEIGHT, stacking_weights
from archive.agents.surrogates.threads import one_thread
from archive.errors import UnknownNameError
from archive.parameters.parameter_space import ParameterSpace

MODELS = ("gaussian-process", "forest")


class CodeModel(Protocol):
    """A fitted model of standardised scores."""

    @property
    def noise(self) -> float:
        """Noise variance of one evaluation."""
        ...

    def predict(self, codes: Array) -> tuple[Array, Array]:
        """Return means and variances of the noise-free values of (m, D) codes: (m,), (m,)."""
        ...

    def loo_log_densities(self) -> Array:
        """Return the log density of each value given the others: (u,) float64."""
        ...

    def left_out(self) -> tuple[Array, Array]:
        """Return means and variances of each value, noise included, given the others: (u,), (u,)."""
        ...

    def sample(self, codes: Array, count: int, rng: np.random.Generator) -> Array:
        """Draw the noise-free values of (m, D) codes jointly: (count, m) float64."""
        ...

    def hallucinate(self, codes: Array) -> CodeModel:
        """Return the model conditioned on its means at (k, D) codes."""
        ...


@dataclass(frozen=True, eq=False)
class CodeMixture:
    """Fitted models with their weights.

    Attributes:
        models: The models.
        weights: (K,) w.
        scale: The fitted outcome transform.
        incumbents: Configurations among which the best one is, (u, D) float64.
        exact: Best standardised value where scores have no noise, else None.
        values: (u,) float64, standardised mean score of each observed configuration.
    """

    models: tuple[CodeModel, ...]
    weights: Array
    scale: Scale
    incumbents: Array
    exact: float | None
    values: Array

    def posterior(self, codes: Array) -> Posterior:
        """Return the posterior of (m, D) codes."""
        means = np.empty((len(self.models), len(codes)))
        variances = np.empty_like(means)
        with one_thread():
            for row, model in enumerate(self.models):
                means[row], variances[row] = model.predict(codes)

        best = np.full(len(self.models), self.exact) if self.exact is not None else self.best
        standardised = Posterior.of_standardised(self.scale, means, variances, best)
        return replace(standardised, weights=self.weights)

    def sample(self, codes: Array, count: int, rng: np.random.Generator) -> Array:
        """Draw the noise-free standardised values of (m, D) codes jointly: (count, m) float64."""
        drawn = np.empty((count, len(codes)))
        of_draw = rng.choice(len(self.models), size=count, p=self.weights)
        with one_thread():
            for number, model in enumerate(self.models):
                rows = np.flatnonzero(of_draw == number)
                drawn[rows] = model.sample(codes, len(rows), rng)

        return drawn

    @property
    def noise(self) -> float:
        """Estimated standard deviation of an evaluation, in score units near the best scores."""
        variances = [model.noise for model in self.models]
        return self.scale.spread * float(np.sqrt(np.average(variances, weights=self.weights)))

    def slopes(self, sources: Sequence[CodedSource]) -> dict[str, float]:
        """Return the slope on each source by study, in [-1, 1]; 0 of sources without weight."""
        slopes = np.zeros(len(sources))
        for model in self.models:
            if isinstance(model, SourcedProcess):
                slopes = np.clip(model.slopes, -1.0, 1.0)

        by_study: dict[str, float] = {}
        for source, slope in zip(sources, slopes.tolist(), strict=True):
            by_study |= dict.fromkeys(source.studies, slope)

        return by_study

    @cached_property
    def best(self) -> Array:
        """Greatest mean of an observed configuration by model, tau: (K,) float64."""
        return np.array([model.predict(self.incumbents)[0].max() for model in self.models])

    def hallucinate(self, codes: Array) -> CodeMixture:
        """Return the mixture conditioned on fantasies at (k, D) codes."""
        if len(codes) == 0:
            return self

        with one_thread():
            models = tuple(model.hallucinate(codes) for model in self.models)

        return replace(self, models=models)


def fit(
    space: ParameterSpace,
    history: CodedHistory,
    transform: OutcomeTransform,
    rng: np.random.Generator,
    names: Sequence[str] = MODELS,
    trees: int = forest.TREES,
    sources: Sequence[CodedSource] = (),
) -> CodeMixture:
    """Return the models of a history with one observation or more.

    Args:
        space: The space.
        history: The observations.
        transform: Applied to the scores.
        rng: Source of randomness.
        names: Models, of `MODELS`.
        trees: Trees of the forest.
        sources: Warm-start sources; a process with their expectations is a further model.

    Raises:
        UnknownNameError: There is no such model.
    """
    scale = transform.learn(history.scores)
    values = scale.standardise(history.scores)
    data = process.without_replicates(history.codes, values)
    seed = int(rng.integers(2**31))
    models: list[CodeModel] = []
    with one_thread():
        for name in names:
            if name == "gaussian-process":
                embedding = ArcEmbedding(space)
                processes = process.fit(embedding, data, noisy=history.noisy, rng=rng)
                models += processes
                if sources:
                    models.append(fit_sourced(processes[0], sources))
            elif name == "forest":
                models.append(forest.grow(space.option_counts, data, seed, trees))
            else:
                raise UnknownNameError("model of configurations", name, MODELS)

        densities = np.stack([model.loo_log_densities() for model in models], axis=1)

    weights = stacking_weights(densities)
    kept = np.flatnonzero(weights >= min(LEAST_WEIGHT, float(weights.max()))).tolist()
    heavy = weights[kept] / weights[kept].sum()
    exact = None if history.noisy else float(values.max())
    return CodeMixture(
        tuple(models[index] for index in kept), heavy, scale, data.codes, exact, data.values
    )
