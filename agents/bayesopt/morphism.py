"""Bayesian optimisation of network morphisms (Jin, Song, Hu 2018; Auto-Keras).

| setting                 | default                 | `preset="paper"`                 | why                  |
|-------------------------|-------------------------|----------------------------------|----------------------|
| kernel                  | `edit`: exp(-gamma d)   | `bourgain`: exp(-rho^2), eq. (2) | ranks cells better   |
| layers                  | `attributes`            | `width`, eq. (5)                 | conv3 is near conv5  |
| alpha, gamma            | fitted, with the noise  | 1, 1, noise variance 1e-4        | no unit in the paper |
| transform               | `compress-below-median` | `standardise`                    | outliers score badly |
| lam                     | 1, eq. (3)              | the same                         | the authors' code    |
| kappa                   | 2.576, eq. (9)          | the same                         | the authors' code    |
| decay, lowest, children | 0.9, 1e-4, 8            | the same                         | the authors' code    |
| n_initial               | 10                      | the same                         | see below            |

The paper gives no numbers. The numbers of its preset are in the authors' code, except for the
noise: the code adds 1e-10, a repair of rounding, but repeated evaluations need a real noise variance. The
paper's first networks are neighbours of one another; here the space's pool comes first under either
preset, as with all agents.

The surrogate is a Gaussian process on edit distances:

| kernel     | covariance                       | validity                                 |
|------------|----------------------------------|------------------------------------------|
| `bourgain` | alpha exp(-gamma rho^2), eq. (2) | positive semi-definite: rho is Euclidean |
| `edit`     | alpha exp(-gamma d)              | indefinite: repaired at every fit        |

The embedding is `archive.kernels.distances.bourgain`, the repair
`archive.kernels.covariance.spectrum`. The reference sets of the Bourgain embedding are fitted
networks; others are embedded by their distances to these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from archive.agents.acquisition import batch, candidate_generators
from archive.agents.acquisition import functions as acquisitions
from archive.agents.acquisition.candidate_generators import CandidateGenerator
from archive.agents.acquisition.morphism_tree import MorphismTree, moves_of
from archive.agents.base import AgentInfo
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.surrogates.base import Array, Surrogate
from archive.agents.surrogates.gp.distance import DistanceGP, FixedNoise, LearnedNoise, Noise
from archive.agents.surrogates.gp.fitted import FittedGP, Pairwise
from archive.agents.surrogates.gp.likelihood import FixedHyperparameters, Inference
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.architecture.graph import Architecture
from archive.architecture.networks import networks_by_key
from archive.errors import UnknownNameError
from archive.kernels.base import Components
from archive.kernels.covariance.base import exponential
from archive.kernels.distances.bourgain import Bourgain
from archive.kernels.distances.edit import Comparison, EditDistance
from archive.kernels.gram import Gram
from archive.spaces.base import Space

KERNELS = ("bourgain", "edit")
_PAPER_NOISE = 1e-4
"""Noise variance of standardised scores.

The authors' code adds 1e-10, with which replicates could not differ.
"""
_REPEATS = 20
"""Reference sets of each size; with ceil(ln n) of them the variance is large
(`kernels.distances.bourgain`)."""


@dataclass(frozen=True)
class MorphismPreset:
    """Values of the settings that are None."""

    kernel: str
    layers: Comparison
    transform: str


PRESETS = {
    "default": MorphismPreset("edit", "attributes", "compress-below-median"),
    "paper": MorphismPreset("bourgain", "width", "standardise"),
}


@final
class Morphism(ModelBased):
    """Upper confidence bounds over sequences of morphisms of evaluated networks.

    Each suggestion names its evaluated ancestor and the operations in their order, so that a
    trainer can inherit weights. In `cnn` and `mlp` the operations are from
    `archive.spaces.morphism`, which only grow networks. Layers of cells have neither widths nor
    weights to inherit, so there the operations are the space's modifications.

    Args:
        space: The search space; any.
        n_initial: Number of evaluations of the pool before the first of the model.
        preset: `default` or `paper`; the following settings have its values where they are None.
        kernel: `edit` or `bourgain`.
        layers: Comparison of layers in the edit distance, `attributes` or `width`.
        lam: Weight of the skips in the edit distance.
        acquisition: `ucb` (the paper's), `ei` or `pi`.
        kappa: Weight of the uncertainty in `ucb`.
        transform: Outcome transform, applied to scores before learning.
        moves: `morphisms`, `neighbours` (the space's own modifications, which can shrink networks),
            or `auto`.
        candidates: `tree` (Algorithm 1), or one of
            `archive.agents.acquisition.candidate_generators`.
        children: Number of operations tried at each expansion of a network in the tree.
        decay: Factor of the temperature at each expansion.
        lowest: Temperature at which the tree search ends.

    Raises:
        UnknownNameError: No preset, kernel, acquisition, transform or candidate generator has this
            name.
        UsageError: A setting is out of range.
    """

    kind = "morphism"
    info = AgentInfo(
        summary="Gaussian process on the edit distance; UCB over chains of morphisms, by A* "
        "search with annealing",
        preset="Bourgain embedding, layers compared by width, fixed hyperparameters",
        paper="Jin et al., 2019 (Auto-Keras)",
        cost="O(n^3), and a matching problem a pair of networks",
        when="networks that inherit the weights of their parents",
    )

    def __init__(
        self,
        space: Space,
        n_initial: int = 10,
        preset: str = "default",
        kernel: str | None = None,
        layers: Comparison | None = None,
        lam: float = 1.0,
        acquisition: str = "ucb",
        kappa: float = 2.576,
        transform: str | None = None,
        moves: str = "auto",
        candidates: str = "tree",
        children: int = 8,
        decay: float = 0.9,
        lowest: float = 1e-4,
    ) -> None:
        if preset not in PRESETS:
            raise UnknownNameError("preset of morphism", preset, PRESETS)

        self.preset = preset
        self.kernel = kernel
        self.layers = layers
        self.lam = lam
        self.acquisition = acquisition
        self.kappa = kappa
        self.transform = transform
        self.moves = moves
        self.candidates = candidates
        self.children = children
        self.decay = decay
        self.lowest = lowest
        ranked = acquisitions.get_marginal(
            self.kind, acquisition, **({"kappa": kappa} if acquisition == "ucb" else {})
        )
        method = Method(
            self._surrogate(),
            ranked,
            self._source(space),
            batch.get("believer", acquisition=ranked),
        )
        super().__init__(space, n_initial, method)

    def _source(self, space: Space) -> CandidateGenerator:
        if self.candidates != MorphismTree.name:
            return candidate_generators.get(self.candidates, space)

        return MorphismTree(
            space, moves_of(self.moves, space), self.children, self.decay, self.lowest
        )

    def _surrogate(self) -> Surrogate:
        values = PRESETS[self.preset]
        kernel = values.kernel if self.kernel is None else self.kernel
        if kernel not in KERNELS:
            raise UnknownNameError("kernel of morphism", kernel, KERNELS)

        transform = values.transform if self.transform is None else self.transform
        paper = self.preset == "paper"
        gram = Gram(EditDistance(self.lam, values.layers if self.layers is None else self.layers))
        inference: Inference = MarginalLikelihood(
            starts=2, prior=0.25, observations=300, subset_size=100
        )
        noise: Noise = LearnedNoise(1e-4, 1.0)
        if paper:
            # alpha = gamma = 1: no hyperparameter is fitted.
            inference = FixedHyperparameters(np.log([1.0, 1.0, _PAPER_NOISE]))
            noise = FixedNoise(_PAPER_NOISE)

        if kernel == "edit":
            return DistanceGP(gram, exponential(1), inference, noise=noise, transform=transform)

        return BourgainGP(gram, None if paper else _REPEATS, inference, noise, transform)


Floats = NDArray[np.float64]


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

    def _embed(self, networks: Sequence[Architecture]) -> Floats:
        new = networks_by_key(networks, self._coordinates)
        if new:
            distances = self.pairwise.distances(tuple(new.values()), self.rows).stack[0]
            self._coordinates.update(zip(new, self.embedding.embed(distances), strict=True))

        width = self.embedding.coordinates.shape[1]
        return np.array([self._coordinates[network.key] for network in networks]).reshape(
            len(networks), width
        )
