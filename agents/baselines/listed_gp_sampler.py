"""Optuna's GPSampler on listed networks.

A module of its own: its class derives from Optuna's, which is an extra, so that only what draws
listed networks imports it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
import optuna
from numpy.typing import NDArray

if TYPE_CHECKING:
    from optuna._gp.acqf import BaseAcquisitionFunc

BLOCK = 512
"""Networks that are ranked at a time: distances are an array of networks x trials x parameters."""


@final
class ListedGpSampler(optuna.samplers.GPSampler):
    """GPSampler that draws listed networks only, each at most once.

    Args:
        names: Names of the parameters, all categorical.
        rows: (M, len(names)) positions of the networks' choices.
        taken: Positions in `rows` of the networks that must not be drawn.
        settings: Arguments of GPSampler.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: NDArray[np.float64],
        taken: Collection[int],
        **settings: Any,
    ) -> None:
        """Keep the list."""
        super().__init__(**settings)
        self._columns = {name: column for column, name in enumerate(names)}
        self._rows = rows
        self._free = np.ones(len(rows), dtype=bool)
        self._free[list(taken)] = False
        self._searched: list[int] = []

    def sample_relative(
        self,
        study: optuna.Study,
        trial: optuna.trial.FrozenTrial,
        search_space: dict[str, optuna.distributions.BaseDistribution],
    ) -> dict[str, Any]:
        """See `optuna.samplers.BaseSampler`."""
        self._searched = [self._columns[name] for name in search_space]
        drawn: dict[str, Any] = super().sample_relative(study, trial, search_space)
        return drawn

    def _optimize_acqf(
        self, acqf: BaseAcquisitionFunc, best_params: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Return the free network of the largest acquisition; the first if none is free.

        GPSampler calls this method for the largest acquisition. Its source offers it to be
        overridden, without a promise for later versions: `pyproject.toml` bounds the version.
        """
        free = np.flatnonzero(self._free)
        if not len(free):
            free = np.array([0])

        rows = self._rows[free][:, self._searched]
        blocks = (rows[begin : begin + BLOCK] for begin in range(0, len(rows), BLOCK))
        best = int(np.argmax(np.concatenate([acqf.eval_acqf_no_grad(block) for block in blocks])))
        self._free[free[best]] = False
        row: NDArray[np.float64] = rows[best]
        return row
