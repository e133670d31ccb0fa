"""Gaussian process on the Bourgain embedding of a metric: alpha exp(-gamma rho^2).

rho is the Euclidean distance of embedded networks (`archive.kernels.distances.bourgain`), so the
covariance is positive semi-definite. The reference sets of the embedding are fitted networks;
others are embedded by their distances to these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archive.agents.surrogates.base import Array, Surrogate
from archive.agents.surrogates.gp.distance import DistanceGP, Noise
from archive.agents.surrogates.gp.fitted import FittedGP, Pairwise
from archive.agents.surrogates.gp.likelihood import Inference
from archive.architecture.graph import Architecture
from archive.architecture.networks import networks_by_key
from archive.kernels.base import Components
from archive.kernels.covariance.base import exponential
from archive.kernels.distances.bourgain import Bourgain


class BourgainGP(Surrogate):
    """Gaussian process on the Bourgain embedding of a metric.

    Args:
        pairwise: Computes the metric, as its first component; it should cache pairs, which are
            requested repeatedly.
        repeats: Reference sets of each size; None for ceil(ln n), as in the paper.
        inference: Inference of alpha, gamma and the noise.
        noise: Prior of the noise.
        transform: Outcome transform (`archive.agents.surrogates.outcome_transforms`).
    """

    def __init__(
        self,
        pairwise: Pairwise,
        repeats: int | None,
        inference: Inference,
        noise: Noise,
        transform: str,
    ) -> None:
        self.pairwise = pairwise
        self.repeats = repeats
        self.inference = inference
        self.noise = noise
        self.transform = transform

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedGP:
        """See `Surrogate.fit`."""
        rows = tuple(networks_by_key(architectures).values())
        embedded = EmbeddedMetric(self.pairwise, rows, self.repeats)
        process = DistanceGP(
            embedded,
            exponential(1, 2.0),
            self.inference,
            noise=self.noise,
            transform=self.transform,
        )
        return process.fit(architectures, scores, rng, variances)


class EmbeddedMetric:
    """Distances rho of an embedding, with the interface of the original metric.

    Args:
        pairwise: Computes the metric.
        rows: The networks to fit the embedding to, all different.
        repeats: Reference sets of each size.
    """

    def __init__(
        self, pairwise: Pairwise, rows: Sequence[Architecture], repeats: int | None
    ) -> None:
        """Fit the embedding."""
        self.pairwise = pairwise
        self.rows = tuple(rows)
        distances = pairwise.distances(self.rows).stack[0]
        self.embedding = Bourgain.fit(distances, repeats=repeats)
        coordinates = zip(self.rows, self.embedding.coordinates, strict=True)
        self._coordinates = {row.key: point for row, point in coordinates}

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """Return rho of all pairs: Components of shape (1, m, n), without a normalised form."""
        rows = self._embed(first)
        columns = rows if second is None else self._embed(second)
        return Components.of_stack(self.embedding.distances(rows, columns)[None], 1)

    def _embed(self, networks: Sequence[Architecture]) -> Array:
        new = networks_by_key(networks, self._coordinates)
        if new:
            distances = self.pairwise.distances(tuple(new.values()), self.rows).stack[0]
            self._coordinates.update(zip(new, self.embedding.embed(distances), strict=True))

        width = self.embedding.coordinates.shape[1]
        points = [self._coordinates[network.key] for network in networks]
        return np.array(points).reshape(len(networks), width)
