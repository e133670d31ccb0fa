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

The paper gives no numbers; its preset has the numbers of the authors' code, except for the noise.
The code adds 1e-10, a repair of rounding, but repeated evaluations need a real noise variance. The
paper's first networks are neighbours of one another; here the space's pool comes first under either
preset, as with all agents.

The surrogate is a Gaussian process on edit distances:

| kernel     | covariance                       | validity                                 |
|------------|----------------------------------|------------------------------------------|
| `bourgain` | alpha exp(-gamma rho^2), eq. (2) | positive semi-definite: rho is Euclidean |
| `edit`     | alpha exp(-gamma d)              | indefinite: repaired at every fit        |

The kernel `bourgain` is `archive.agents.surrogates.gp.bourgain`, and the repair of `edit` is
`archive.kernels.covariance.spectrum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from archive.agents.acquisition import batch, candidate_generators
from archive.agents.acquisition import functions as acquisitions
from archive.agents.acquisition.candidate_generators import CandidateGenerator
from archive.agents.acquisition.morphism_tree import MorphismTree, moves_of
from archive.agents.base import AgentInfo
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.surrogates.base import Surrogate
from archive.agents.surrogates.gp.bourgain import BourgainGP
from archive.agents.surrogates.gp.distance import DistanceGP, FixedNoise, LearnedNoise, Noise
from archive.agents.surrogates.gp.likelihood import FixedHyperparameters, Inference
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.errors import UnknownNameError
from archive.kernels.covariance.base import exponential
from archive.kernels.distances.edit import Comparison, EditDistance
from archive.kernels.gram import Gram
from archive.spaces.base import Space

KERNELS = ("bourgain", "edit")
_PAPER_NOISE = 1e-4
"""Noise variance of standardised scores.

The authors' code adds 1e-10, with which replicates could not differ.
"""
_REPEATS = 20
"""Number of reference sets of each size. The paper's ceil(ln n) sets give distances of a large
variance (`kernels.distances.bourgain`)."""


@dataclass(frozen=True)
class MorphismPreset:
    """Values of the settings that are None, and the inference."""

    kernel: str
    layers: Comparison
    transform: str
    inference: Inference
    noise: Noise
    repeats: int | None


PRESETS = {
    "default": MorphismPreset(
        kernel="edit",
        layers="attributes",
        transform="compress-below-median",
        inference=MarginalLikelihood(starts=2, prior=0.25, observations=300, subset_size=100),
        noise=LearnedNoise(1e-4, 1.0),
        repeats=_REPEATS,
    ),
    "paper": MorphismPreset(
        kernel="bourgain",
        layers="width",
        transform="standardise",
        # alpha = gamma = 1: no hyperparameter is fitted.
        inference=FixedHyperparameters(np.log([1.0, 1.0, _PAPER_NOISE])),
        noise=FixedNoise(_PAPER_NOISE),
        repeats=None,
    ),
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
        settings = {}
        if acquisition == "ucb":
            settings["kappa"] = kappa

        ranked = acquisitions.get_marginal(self.kind, acquisition, **settings)
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
        layers = values.layers if self.layers is None else self.layers
        gram = Gram(EditDistance(self.lam, layers))
        if kernel == "edit":
            return DistanceGP(
                gram, exponential(1), values.inference, noise=values.noise, transform=transform
            )

        return BourgainGP(gram, values.repeats, values.inference, values.noise, transform)
