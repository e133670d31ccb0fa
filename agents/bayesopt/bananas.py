"""BANANAS: an ensemble of neural networks on path encodings (White et al.).

| part        | paper (`preset="paper"`), algorithm 1                | default                                      |
|-------------|------------------------------------------------------|----------------------------------------------|
| features    | paths, as 0 or 1                                     | counts of paths and of operations with their |
|             |                                                      | neighbours; on cells topology features too   |
| ensemble    | five networks of 10 layers of 20 units               | five of 2 layers of 64                       |
| learns from | scores                                               | scores compressed below the median           |
| acquisition | UCB, beta 0.5                                        | the same                                     |
| candidates  | 100 mutations of the 10 best                         | the whole space if it can be listed, else    |
|             |                                                      | evolution                                    |
| batch       | the best of one ranking (ten at a time in the paper) | one by one, each fantasised before the next  |
| first       | the space's pool, as all agents; in the paper t0     | the same                                     |
|             | random networks                                      |                                              |

The default was chosen on NAS-Bench-201: comparisons with the preset there are biased in favour of
the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import ClassVar, Literal, final

from archive.agents.acquisition import candidate_generators
from archive.agents.base import AgentInfo
from archive.agents.bayesopt.gaussian_process import ranking
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.constructor_arguments import BATCH, BatchOptions, choose
from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.ensemble.model import Ensemble
from archive.agents.surrogates.transformed import OutcomeTransformed
from archive.agents.transfer.coordinator import with_transfer
from archive.architecture.graph import Architecture
from archive.kernels.features import choices
from archive.kernels.features.embedding import EmbeddedDistance
from archive.kernels.features.paths import PathEncoding
from archive.kernels.features.topology import TopologyFeatures
from archive.kernels.features.weisfeiler_lehman import WeisfeilerLehman
from archive.spaces.base import Space


@dataclass(frozen=True)
class EnsemblePreset:
    """Values of a preset; a setting that is None keeps them.

    Attributes:
        members: Networks of the ensemble.
        layers: Hidden layers of each.
        width: Units of each layer.
        acquisition: `ucb`, `ei`, `pi`, `its`; or `ts`: joint samples among the best by UCB.
        kappa: beta, the weight of the uncertainty in UCB.
        transform: A name of `archive.agents.surrogates.outcome_transforms`.
        candidates: A name of `archive.agents.acquisition.candidate_generators`.
        batch_rule: A name of `archive.agents.acquisition.batch`.
    """

    members: int
    layers: int
    width: int
    acquisition: str
    kappa: float
    transform: str
    candidates: str
    batch_rule: str


PRESETS: Mapping[str, EnsemblePreset] = MappingProxyType(
    {
        "default": EnsemblePreset(
            5, 2, 64, "ucb", 0.5, "compress-below-median", "auto", "believer"
        ),
        "paper": EnsemblePreset(5, 10, 20, "ucb", 0.5, "none", "mutations", "top"),
    }
)


@final
class Bananas(ModelBased):
    """An ensemble of feed-forward networks ranks candidates by an upper confidence bound.

    Args:
        space: The search space.
        options: See `BatchOptions`; beta of the paper is `kappa`.
        members: Networks of the ensemble; None means the preset's value, here and in the following
            settings.
        layers: Hidden layers of each.
        width: Units of each layer.
    """

    kind = "bananas"
    info = AgentInfo(
        summary="ensemble of five networks on paths, neighbourhoods and topology features; UCB "
        "over the whole space",
        preset="path encoding, mutations of the best, one ranking for a batch",
        paper="White et al., 2021 (BANANAS)",
        cost="O(n), one training of the ensemble a batch",
        when="cells, batches, thousands of observations",
        transfers=True,
    )

    def __init__(
        self,
        space: Space,
        options: BatchOptions = BATCH,
        members: int | None = None,
        layers: int | None = None,
        width: int | None = None,
    ) -> None:
        choices = choose(PRESETS, options, members=members, layers=layers, width=width)
        ensemble = Ensemble(
            encoding(space, options.preset), choices.members, choices.layers, choices.width
        )
        ranked_by, rule = ranking(choices.acquisition, choices.kappa, choices.batch_rule)
        source = candidate_generators.get(choices.candidates, space)
        surrogate = OutcomeTransformed(ensemble, outcome_transforms.get(choices.transform))
        method = Method(surrogate, ranked_by, source, rule)
        super().__init__(space, options.n_initial, with_transfer(space, options.preset, method))


def encoding(space: Space, preset: str) -> JoinedFeatures:
    """Return the features of a preset.

    Where layers have units, hardly any two networks share a path: the default then has no paths,
    and distinguishes operations by their units. Where operations are options at fixed places, the
    places replace paths and topology.
    """
    if preset == "paper":
        return JoinedFeatures((PathEncoding(),))

    if choices.describe(space.name):
        return JoinedFeatures((WeisfeilerLehman(), choices.ChoiceFeatures()))

    if space.is_cell:
        return JoinedFeatures((PathEncoding(counts=True), WeisfeilerLehman(), TopologyFeatures()))

    return JoinedFeatures((WeisfeilerLehman(attributes=True), WeisfeilerLehman(iterations=1)))


@final
class JoinedFeatures(EmbeddedDistance):
    """Concatenated features of several encodings.

    Args:
        parts: Encodings; their norms are not used.
    """

    name: ClassVar[str] = "joined"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    def __init__(self, parts: Sequence[EmbeddedDistance]) -> None:
        self.parts = tuple(parts)

    @property
    def components(self) -> tuple[str, ...]:
        """Return the parts' components, numbered."""
        names: list[str] = []
        for number, part in enumerate(self.parts):
            names += [f"{number}:{name}" for name in part.components]

        return tuple(names)

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the parts' features."""
        return tuple(chain.from_iterable(part.features(architecture) for part in self.parts))
