"""Gradient boosting, cross-fitted: a model for each fold, and predictions of every evaluation by a
model without it.

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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.many.features import Singles
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
