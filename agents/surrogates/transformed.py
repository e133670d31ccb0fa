"""Wrappers of surrogates: an outcome transform, and a residual on the predictions of source models.

| symbol | meaning                                                                       | shape |
|--------|-------------------------------------------------------------------------------|-------|
| y      | transformed and standardised scores                                           | (n,)  |
| e      | prediction of y by the source models: the mean over them of s rho m           | (n,)  |

s, rho and m are defined in `gp.coregionalised`, for each source task. `SourceResidual` is fitted to
the residual y - e and adds e to the predictive mean, so that the common part of a task and its
sources is not learnt again. For an unrelated source rho is 0, and so is e.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate, check_scores
from archive.agents.surrogates.gp.coregionalised import (
    CoregionalisedGP,
    FittedCoregionalisedGP,
    SourceModel,
)
from archive.agents.surrogates.gp.fitted import check_variances
from archive.agents.surrogates.outcome_transforms import OutcomeTransform, Scale
from archive.architecture.graph import Architecture


@final
class OutcomeTransformed(Surrogate):
    """A surrogate fitted to transformed scores.

    Args:
        surrogate: Fitted to the transformed and standardised scores.
        transform: The outcome transform.
    """

    def __init__(self, surrogate: Surrogate, transform: OutcomeTransform) -> None:
        self.surrogate = surrogate
        self.transform = transform

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedOutcomeTransformed:
        """See `Surrogate.fit`."""
        check_scores(architectures, scores)
        scale = self.transform.learn(scores)
        standardised_variances = (
            None if variances is None else check_variances(scores, scale, variances)
        )
        return FittedOutcomeTransformed(
            self.surrogate.fit(
                architectures, scale.standardise(scores), rng, standardised_variances
            ),
            scale,
        )


@final
@dataclass(frozen=True)
class FittedOutcomeTransformed(Fitted):
    """A fitted `OutcomeTransformed`.

    Attributes:
        fitted: The surrogate of the standardised values.
        scale: Maps scores to standardised values.
    """

    fitted: Fitted
    scale: Scale

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        inner = self.fitted.posterior(architectures, joint=joint)
        return Posterior.of_standardised(
            self.scale, inner.means, inner.variances, inner.best, inner.covariances
        )

    def noises(self) -> Array | None:
        """See `Fitted.noises`."""
        inner = self.fitted.noises()
        return None if inner is None else self.scale.spread**2 * inner

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedOutcomeTransformed:
        """See `Fitted.hallucinate`."""
        return replace(self, fitted=self.fitted.hallucinate(architectures))


@final
class SourceResidual(Surrogate):
    """A surrogate of the residual between a task and the predictions of source models.

    Args:
        surrogate: Fitted to the residual y - e.
        transform: The outcome transform.
        source_models: Models of other tasks, at least one.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        transform: OutcomeTransform,
        source_models: Sequence[SourceModel],
    ) -> None:
        self.surrogate = surrogate
        self.transform = transform
        self.source_models = tuple(source_models)

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedSourceResidual:
        """See `Surrogate.fit`."""
        check_scores(architectures, scores)
        scale = self.transform.learn(scores)
        values = scale.standardise(scores)
        coupled = []
        for source_model in self.source_models:
            process = CoregionalisedGP(source_model, self.transform)
            coupled.append(process.fit(architectures, scores, rng, variances))

        standardised_variances = (
            None if variances is None else check_variances(scores, scale, variances)
        )
        fitted = self.surrogate.fit(
            architectures,
            values - _predict_sources(coupled, architectures),
            rng,
            standardised_variances,
        )
        return FittedSourceResidual(fitted, scale, tuple(coupled), float(values.max()))


@final
@dataclass(frozen=True)
class FittedSourceResidual(Fitted):
    """A fitted `SourceResidual`.

    Attributes:
        fitted: The surrogate of y - e.
        scale: Maps scores to y.
        coupled: One coregionalised GP for each source model: its s and rho.
        best: The incumbent's y, fantasies included.
    """

    fitted: Fitted
    scale: Scale
    coupled: tuple[FittedCoregionalisedGP, ...]
    best: float

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        residual = self.fitted.posterior(architectures, joint=joint)
        means = residual.means + _predict_sources(self.coupled, architectures)
        best = np.full(len(means), self.best)
        return Posterior.of_standardised(
            self.scale, means, residual.variances, best, residual.covariances
        )

    def noises(self) -> Array | None:
        """See `Fitted.noises`."""
        inner = self.fitted.noises()
        return None if inner is None else self.scale.spread**2 * inner

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedSourceResidual:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self

        means = self.fitted.posterior(architectures).mean + _predict_sources(
            self.coupled, architectures
        )
        return replace(
            self,
            fitted=self.fitted.hallucinate(architectures),
            best=max(self.best, float(means.max())),
        )

    def task_correlations(self) -> Mapping[str, float]:
        """See `Fitted.task_correlations`."""
        correlations: dict[str, float] = {}
        for process in self.coupled:
            correlations |= dict.fromkeys(process.source_model.studies, process.task_correlation)

        return correlations


def _predict_sources(
    coupled: Sequence[FittedCoregionalisedGP], architectures: Sequence[Architecture]
) -> Array:
    """Return e: (n,) float64."""
    predictions = []
    for process in coupled:
        means = process.source_model.means(architectures)
        predictions.append(process.output_scale * process.rho * means)

    expected: Array = np.mean(predictions, axis=0)
    return expected
