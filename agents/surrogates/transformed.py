"""Surrogates that learn transformed scores, and what other tasks make them expect beforehand.

| symbol | meaning                                                                       | shape |
|--------|-------------------------------------------------------------------------------|-------|
| y      | transformed and standardised scores                                           | (n,)  |
| e      | what other tasks make one expect of y: the mean over them of s rho m          | (n,)  |

s, rho and m are those of `informed_gp`, for each other task. `SourceResidual` learns y - e, and adds e to what it says: what a
task has in common with others need not be learnt again, and where they have nothing in common rho, hence e, is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate, check_scores
from archive.agents.surrogates.gp.coregionalised import CoregionalisedGP, FittedCoregionalisedGP, SourceModel
from archive.agents.surrogates.outcome_transforms import OutcomeTransform, Scale
from archive.architecture.graph import Architecture


@final
class OutcomeTransformed(Surrogate):
    """A surrogate that learns transformed scores.

    Args:
        surrogate: What learns.
        transform: What happens to scores first.
    """

    def __init__(self, surrogate: Surrogate, transform: OutcomeTransform) -> None:
        """Keep the arguments."""
        self.surrogate, self.transform = surrogate, transform

    def fit(
        self, architectures: Sequence[Architecture], scores: Array, rng: np.random.Generator
    ) -> FittedOutcomeTransformed:
        """See `Surrogate.fit`."""
        check_scores(architectures, scores)
        scale = self.transform.learn(scores)
        return FittedOutcomeTransformed(self.surrogate.fit(architectures, scale.standardise(scores), rng), scale)


@final
@dataclass(frozen=True)
class FittedOutcomeTransformed(Fitted):
    """What has been learnt.

    Attributes:
        fitted: Of standardised values.
        scale: From scores to those.
    """

    fitted: Fitted
    scale: Scale

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        found, scale = self.fitted.posterior(architectures, joint=joint), self.scale
        return Posterior(
            means=scale.centre + scale.spread * found.means,
            variances=scale.spread**2 * found.variances,
            best=scale.centre + scale.spread * found.best,
            covariances=None if found.covariances is None else scale.spread**2 * found.covariances,
            scales=(scale,) * len(found.means),
        )

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedOutcomeTransformed:
        """See `Fitted.hallucinate`."""
        return replace(self, fitted=self.fitted.hallucinate(architectures))


@final
class SourceResidual(Surrogate):
    """A surrogate that learns how a task differs from what others make one expect.

    Args:
        surrogate: What learns.
        transform: What happens to scores first.
        source_models: What the other tasks say, at least one.
    """

    def __init__(self, surrogate: Surrogate, transform: OutcomeTransform, source_models: Sequence[SourceModel]) -> None:
        """Keep the arguments."""
        self.surrogate, self.transform, self.source_models = surrogate, transform, tuple(source_models)

    def fit(
        self, architectures: Sequence[Architecture], scores: Array, rng: np.random.Generator
    ) -> FittedSourceResidual:
        """See `Surrogate.fit`."""
        check_scores(architectures, scores)
        scale = self.transform.learn(scores)
        values = scale.standardise(scores)
        coupled = [CoregionalisedGP(one, self.transform).fit(architectures, scores, rng) for one in self.source_models]
        fitted = self.surrogate.fit(architectures, values - _expected(coupled, architectures), rng)
        return FittedSourceResidual(fitted, scale, tuple(coupled), float(values.max()))


@final
@dataclass(frozen=True)
class FittedSourceResidual(Fitted):
    """What has been learnt.

    Attributes:
        fitted: Of y - e.
        scale: From scores to y.
        coupled: What was learnt of s and rho of each other task.
        best: The incumbent's y, believed ones included.
    """

    fitted: Fitted
    scale: Scale
    coupled: tuple[FittedCoregionalisedGP, ...]
    best: float

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        found, spread = self.fitted.posterior(architectures, joint=joint), self.scale.spread
        means = found.means + _expected(self.coupled, architectures)
        return Posterior(
            means=self.scale.centre + spread * means,
            variances=spread**2 * found.variances,
            best=np.full(len(means), self.scale.centre + spread * self.best),
            covariances=None if found.covariances is None else spread**2 * found.covariances,
            scales=(self.scale,) * len(means),
        )

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedSourceResidual:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self
        means = self.fitted.posterior(architectures).mean + _expected(self.coupled, architectures)
        return replace(self, fitted=self.fitted.hallucinate(architectures), best=max(self.best, float(means.max())))

    def task_correlations(self) -> Mapping[str, float]:
        """See `Fitted.task_correlations`: rho."""
        return {study: one.rho for one in self.coupled for study in one.source_model.studies}


def _expected(coupled: Sequence[FittedCoregionalisedGP], architectures: Sequence[Architecture]) -> Array:
    """Return e: (n,) float64."""
    found: Array = np.mean(
        [one.output_scale * one.rho * one.source_model.means(architectures) for one in coupled], axis=0
    )
    return found
