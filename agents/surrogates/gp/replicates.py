"""Replicates: several evaluations of one architecture as one row of the covariance.

The row is exact, not an approximation.

Notation:

    symbol   meaning                                                             shape
    n, u     evaluations; distinct architectures, the rows                       scalars
    g        row of each evaluation                                              (n,)
    y        standardised score of each evaluation                               (n,)
    c        its noise factor, 1 unless said otherwise                           (n,)
    s        its noise variance: c eta2 plus its known variance                  (n,)
    t        noise variance of a row: 1 / sum 1/s over its evaluations           (u,)
    z        value of a row: t sum y/s                                           (u,)
    B        covariance of the rows plus diag(t)                                 (u, u)

The evaluations of a row differ by noise alone, so prod N(y_i; f, s_i) = N(z; f, t) times a factor
independent of f:

    log p(y) = log N(z; 0, B) + r
    r        = D - W / 2
    D        = sum_rows 1/2 log 2 pi t - sum_i 1/2 log 2 pi s_i
    W        = sum_i (y_i - z_g)^2 / s_i

Equal noise gives t = eta2 / count. With m = z - t B^-1 z the posterior mean and v = t - t^2
(B^-1)_gg the posterior variance of the rows, d log p(y) / ds_i = 1/2 ((y_i - m_g)^2 / s_i^2 - 1 /
s_i + v_g / s_i^2), and ds_i / d eta2 = c_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from archive.agents.surrogates.base import Array
from archive.architecture.networks import take

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Replicates:
    """Evaluations grouped by architecture; immutable.

    Attributes:
        keys: Keys of the u rows, in the order of their first evaluation.
        rows: (n,) int64: g.
        values: (n,) float64: y.
        known_variances: (n,) float64: known noise variances in standardised units; 0 where unknown.
        factors: (n,) float64: c.
    """

    keys: tuple[str, ...]
    rows: Integers
    values: Array
    known_variances: Array
    factors: Array

    @classmethod
    def of(
        cls,
        keys: Sequence[str],
        values: Array,
        known_variances: Array | None = None,
        factors: Array | None = None,
    ) -> Replicates:
        """Group n evaluations by key."""
        empty = np.empty(0)
        return cls((), np.empty(0, np.int64), empty, empty, empty).adding(
            keys, values, known_variances, factors
        )

    def adding(
        self,
        keys: Sequence[str],
        values: Array,
        known_variances: Array | None = None,
        factors: Array | None = None,
    ) -> Replicates:
        """Return the evaluations with k more appended."""
        places = {key: row for row, key in enumerate(self.keys)}
        rows = np.array([places.setdefault(key, len(places)) for key in keys], np.int64)
        return Replicates(
            tuple(places),
            np.concatenate([self.rows, rows]),
            np.concatenate([self.values, values]),
            np.concatenate(
                [
                    self.known_variances,
                    np.zeros(len(values)) if known_variances is None else known_variances,
                ]
            ),
            np.concatenate([self.factors, np.ones(len(values)) if factors is None else factors]),
        )

    @property
    def first(self) -> Integers:
        """The first evaluation of each row: (u,) int64."""
        return np.unique(self.rows, return_index=True)[1].astype(np.int64)

    @cached_property
    def single(self) -> bool:
        """Whether no architecture has replicates."""
        return len(self.keys) == len(self.rows)

    def subset(self, rows: Integers) -> Replicates:
        """Return all evaluations of some rows, (k,) positions, in their order."""
        new = np.full(len(self.keys), -1)
        new[rows] = np.arange(len(rows))
        kept = np.flatnonzero(new[self.rows] >= 0)
        # Sorted by row: where `single` holds, row i must be evaluation i.
        kept = kept[np.argsort(new[self.rows[kept]], kind="stable")]
        keys = tuple(take(self.keys, rows))
        return Replicates(
            keys,
            new[self.rows[kept]],
            self.values[kept],
            self.known_variances[kept],
            self.factors[kept],
        )

    def variances(self, noise: float) -> Array:
        """Return s: (n,) float64."""
        return self.known_variances + self.factors * noise

    def merge(self, noise: float) -> tuple[Array, Array]:
        """Return z and t: (u,) and (u,) float64."""
        variances = self.variances(noise)
        if self.single:
            return self.values, variances

        precision = self._per_row(1.0 / variances)
        return self._per_row(self.values / variances) / precision, 1.0 / precision

    def remainder(self, noise: float) -> float:
        """Return r."""
        return self.log_volume(noise) - 0.5 * self.scatter(noise)

    def scatter(self, noise: float) -> float:
        """Return W, the scatter of replicates around the value of their row.

        0 without replicates.
        """
        if self.single:
            return 0.0

        gaps = self.values - self.merge(noise)[0][self.rows]
        return float((gaps**2 / self.variances(noise)).sum())

    def log_volume(self, noise: float) -> float:
        """Return D, the log ratio of the normalising constants of rows and evaluations."""
        if self.single:
            return 0.0

        variances = self.variances(noise)
        rows = self.merge(noise)[1]
        return 0.5 * float(np.log(2.0 * np.pi * rows).sum() - np.log(2.0 * np.pi * variances).sum())

    def noise_slope(self, noise: float, weights: Array, diagonal: Array) -> float:
        """Return d log p(y) / d eta2.

        Args:
            noise: eta2.
            weights: (u,) float64: B^-1 z.
            diagonal: (u,) float64, diagonal of B^-1.
        """
        if self.single:
            return 0.5 * float(self.factors @ (weights**2 - diagonal))

        variances = self.variances(noise)
        values, merged = self.merge(noise)
        gaps = self.values - (values - merged * weights)[self.rows]
        posterior = (merged - merged**2 * diagonal)[self.rows]
        return 0.5 * float(self.factors @ ((gaps**2 + posterior) / variances**2 - 1.0 / variances))

    def _per_row(self, numbers: Array) -> Array:
        sums: Array = np.bincount(self.rows, numbers, len(self.keys)).astype(np.float64)
        return sums
