"""Random forest on features of architectures: the surrogate of SMAC.

Hutter, Hoos, Leyton-Brown: Sequential Model-Based Optimization for General Algorithm Configuration
(2011), section 4.1.

| symbol | meaning                                                     | shape  |
|--------|-------------------------------------------------------------|--------|
| T, m   | trees, query architectures                                  | scalar |
| f_t    | prediction of tree t, in score units                        | (T, m) |
| mu     | mean over the trees                                         | (m,)   |
| s^2    | variance over the trees                                     | (m,)   |
| C      | covariance over the trees; its rank is at most T - 1        | (m, m) |

The posterior is one Gaussian (S = 1). Pending proposals are added to the observations with their
means as scores, and the forest is fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from archive import kernels
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate, check_scores
from archive.agents.surrogates.ensemble.inputs import Inputs
from archive.agents.surrogates.many.features import SparseFeatures
from archive.agents.surrogates.outcome_transforms import Scale, Standardise
from archive.agents.surrogates.threads import one_thread
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.features.embedding import EmbeddedDistance
from archive.values import require_at_least

STEP = 2.0**-20
"""Step to which standardised scores are rounded."""


@final
class RandomForest(Surrogate):
    """Regression trees on bootstrap samples of the observations (scikit-learn).

    Args:
        encoding: Source of the features: a name in the registry of kernels, or an object.
        trees: T, at least 2.
        features: Share of the features that a split may use, in (0, 1]; SMAC has 5/6.

    Raises:
        UsageError: A setting is out of range, or the kernel has no features.
    """

    def __init__(
        self, encoding: str | EmbeddedDistance, trees: int = 100, features: float = 5 / 6
    ) -> None:
        source = kernels.get(encoding) if isinstance(encoding, str) else encoding
        if not isinstance(source, EmbeddedDistance):
            raise UsageError(f"a random forest needs a kernel with features, got {source.name}")

        require_at_least(2, trees=trees)
        if not 0.0 < features <= 1.0:
            raise UsageError(f"features must be in (0, 1], got {features}")

        self.encoding = source
        self.trees = trees
        self.features = features
        self._features = SparseFeatures((source,))

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedForest:
        """See `Surrogate.fit`; variances are ignored.

        Raises:
            InvalidArchitectureError: The networks are of different spaces.
        """
        check_scores(architectures, scores)
        return self.grow(architectures, scores, int(rng.integers(2**31)))

    def grow(self, architectures: Sequence[Architecture], scores: Array, seed: int) -> FittedForest:
        """Return the forest of a seed."""
        from sklearn.ensemble import RandomForestRegressor

        inputs = Inputs.of(self._features, architectures)
        forest = RandomForestRegressor(self.trees, max_features=self.features, random_state=seed)
        scale = Standardise().learn(scores)
        # Features that split the networks alike are ties. Without rounding, the last bits of the
        # values would decide them, and another unit of the scores would give another forest.
        values = np.round(scale.standardise(scores) / STEP) * STEP
        with one_thread():
            forest.fit(inputs.read(architectures), values)

        return FittedForest(self, inputs, forest, tuple(architectures), scores, scale, seed)


@final
@dataclass(frozen=True, eq=False)
class FittedForest(Fitted):
    """A fitted `RandomForest`.

    Attributes:
        model: Settings.
        inputs: Maps networks to inputs.
        forest: The trees.
        architectures: The n observed networks, fantasies included.
        scores: (n,) float64, their scores.
        scale: Maps scores to the values that the trees predict.
        seed: Seed of the bootstrap samples and splits.
    """

    model: RandomForest
    inputs: Inputs
    forest: Any
    architectures: tuple[Architecture, ...]
    scores: Array
    scale: Scale
    seed: int

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`.

        Raises:
            InvalidArchitectureError: A network is of another space than those observed.
        """
        predictions = self._predictions(architectures)
        mean = predictions.mean(axis=0)
        deviations = predictions - mean
        variances = np.square(deviations).mean(axis=0)
        covariances = (deviations.T @ deviations / len(deviations))[None] if joint else None
        return Posterior(
            mean[None], variances[None], np.array([float(self.scores.max())]), covariances
        )

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedForest:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self

        means = self._predictions(architectures).mean(axis=0)
        return self.model.grow(
            [*self.architectures, *architectures], np.concatenate([self.scores, means]), self.seed
        )

    def _predictions(self, architectures: Sequence[Architecture]) -> Array:
        """Return the trees' predictions in score units: (T, m) float64."""
        for network in architectures:
            if network.space != self.inputs.space:
                raise InvalidArchitectureError(
                    f"the forest was fitted to networks of space {self.inputs.space}, "
                    f"got one of {network.space}"
                )

        inputs = self.inputs.read(architectures)
        predicted = np.array([tree.predict(inputs) for tree in self.forest.estimators_])
        return self.scale.centre + self.scale.spread * predicted
