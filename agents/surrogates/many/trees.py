"""Cross-fitted gradient boosting: a model for each fold, fitted to the other folds.

| symbol | meaning                                                            | shape  |
|--------|--------------------------------------------------------------------|--------|
| n, m   | evaluated networks, query networks                                 | scalars|
| K      | folds; network i is in fold i mod K                                | scalar |
| f_k    | prediction of the model that is fitted to all folds but k          | (m,)   |
| f, s2  | mean and variance of f_k over the models                           | (m,)   |
| e      | out-of-fold predictions of the evaluated networks, e_i = f_(i mod K)| (n,)  |

y - e are errors on networks to which the model was not fitted. The errors y - f of evaluated
networks are smaller, because the trees were fitted to them. scikit-learn's histogram gradient
boosting grows the trees (Ke et al.: LightGBM, 2017), in O(n F) a level. Nothing is drawn at random,
so that equal data give equal trees.

`RankComparison` compares two models by their ranking of held-out networks, to which neither was
fitted:

| symbol | meaning                                                                           | shape  |
|--------|-----------------------------------------------------------------------------------|--------|
| h      | held-out networks: a sample of fold 0                                             | scalar |
| y      | their scores                                                                      | (h,)   |
| f, g   | predictions by the usual model and by its rival                                   | (h,)   |
| rho_f, | Spearman correlations with y                                                      | scalar |
| rho_g  |                                                                                   |        |
| sd     | standard deviation of rho_g - rho_f over `RESAMPLES` draws of h networks from the | scalar |
|        | h, with replacement (the bootstrap: Efron, 1979)                                  |        |

Both models predict the same networks, so that luck with the sample mostly cancels in the
difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.many.features import Integers, Singles
from archive.agents.surrogates.threads import one_openmp_thread

FOLDS = 4
SETTINGS = {
    "max_iter": 200,
    "learning_rate": 0.08,
    "max_leaf_nodes": 31,
    "min_samples_leaf": 10,
    "max_bins": 63,
    "early_stopping": False,
}


@final
@dataclass(frozen=True, eq=False)
class CrossFittedTrees:
    """Boosted trees of each fold.

    Attributes:
        models: K regressors.
        out_of_fold: (n,) float64: e.
    """

    models: tuple[Any, ...]
    out_of_fold: Array

    @classmethod
    def fit(cls, inputs: Singles, values: Array) -> CrossFittedTrees:
        """Fit the trees.

        Args:
            inputs: (n, F) float32, at least K rows.
            values: (n,) float64.
        """
        from sklearn.ensemble import HistGradientBoostingRegressor

        folds = np.arange(len(values)) % FOLDS
        models = []
        out_of_fold = np.empty(len(values))
        with one_openmp_thread():
            for fold in range(FOLDS):
                others = folds != fold
                model = HistGradientBoostingRegressor(**SETTINGS, random_state=0).fit(
                    inputs[others], values[others]
                )
                models.append(model)
                out_of_fold[~others] = model.predict(inputs[~others])

        return cls(tuple(models), out_of_fold)

    def predict(self, inputs: Singles) -> tuple[Array, Array]:
        """Return f and s2 of (m, F) float32 inputs: (m,) float64 each."""
        with one_openmp_thread():
            predictions = np.array([model.predict(inputs) for model in self.models])

        return predictions.mean(axis=0), predictions.var(axis=0)


HELD_OUT = 500
RESAMPLES = 100
CLEARLY = 1.0
"""Least difference, in units of sd, with which the rival replaces the usual model: a smaller one
may be luck. Steps of both take the same time. With 2, the worse model was used after 1,001
evaluations of NAS-Bench-101 for two seeds of three."""


@dataclass(frozen=True)
class RankComparison:
    """Ranking of held-out networks by two models.

    Attributes:
        usual: rho_f.
        rival: rho_g.
        deviation: sd.
    """

    usual: float
    rival: float
    deviation: float

    @classmethod
    def of(cls, usual: Array, rival: Array, scores: Array) -> RankComparison:
        """Compare predictions.

        Args:
            usual: (h,) float64: f.
            rival: (h,) float64: g.
            scores: (h,) float64: y.
        """
        rng = np.random.default_rng(0)
        count = len(scores)
        gaps = []
        for _ in range(RESAMPLES):
            rows = rng.integers(count, size=count)
            gaps.append(spearman(rival[rows], scores[rows]) - spearman(usual[rows], scores[rows]))

        return cls(spearman(usual, scores), spearman(rival, scores), float(np.std(gaps)))

    @property
    def rival_is_clearly_better(self) -> bool:
        """Whether the rival's correlation is greater by more than luck."""
        return self.rival - self.usual > CLEARLY * self.deviation


def split(networks: int) -> tuple[Integers, Integers]:
    """Return the positions of the held-out networks, and of networks in other folds."""
    folds = np.arange(networks) % FOLDS
    held_out = np.flatnonzero(folds == 0)
    sample = np.linspace(0, len(held_out) - 1, min(HELD_OUT, len(held_out))).astype(np.int64)
    return held_out[sample], np.flatnonzero(folds)


def spearman(first: Array, second: Array) -> float:
    """Return the rank correlation of two (h,) arrays; 0 where one of them is constant."""
    # loads a third of a second of modules, which few searches need
    from scipy.stats import rankdata

    ranks = rankdata([first, second], axis=1)
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.square(centred).sum(axis=1))
    return float(centred[0] @ centred[1] / norms.prod()) if norms.all() else 0.0
