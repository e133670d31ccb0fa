"""Random forest with expected improvement on the features of `bananas`, a baseline.

The features are the default of `bananas` (`bananas.encoding`), and the candidates are the same as of
all agents with a surrogate, so that results differ by the model alone. The preset `smac` has
the settings of SMAC (Hutter et al., 2011): ten trees, scores without a transform. scikit-learn fits
the trees. On the space `parameters`, the features are codes (`archive.agents.configurations`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import final

import numpy as np

from archive.agents.acquisition import candidate_generators
from archive.agents.acquisition.candidate_generators import CandidateGenerator
from archive.agents.base import AgentInfo, History, Suggestion, check_count
from archive.agents.bayesopt.bananas import encoding
from archive.agents.bayesopt.gaussian_process import ranking
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.configurations.search import ConfigurationSearch, SearchSettings
from archive.agents.constructor_arguments import BATCH, BatchOptions, choose
from archive.agents.joint.candidates import JointCandidates
from archive.agents.joint.model import JointCodes, JointFeatures
from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.random_forest import RandomForest
from archive.agents.surrogates.transformed import OutcomeTransformed
from archive.agents.transfer.pooled import PooledSources
from archive.kernels.features.embedding import EmbeddedDistance
from archive.spaces.base import Space
from archive.spaces.joint import joint_space_of
from archive.spaces.parameters import Parameters


@dataclass(frozen=True)
class ForestPreset:
    """Values of a preset; a setting that is None keeps them.

    Attributes:
        trees: Trees of the forest.
        acquisition: `ei`, `pi`, `ucb`, `its`; or `ts`: joint samples among the best by UCB.
        kappa: Weight of the uncertainty in UCB.
        transform: A name of `archive.agents.surrogates.outcome_transforms`.
        candidates: A name of `archive.agents.acquisition.candidate_generators`.
        batch_rule: A name of `archive.agents.acquisition.batch`.
    """

    trees: int
    acquisition: str
    kappa: float
    transform: str
    candidates: str
    batch_rule: str


PRESETS: Mapping[str, ForestPreset] = MappingProxyType(
    {
        "default": ForestPreset(100, "ei", 1.0, "compress-below-median", "auto", "believer"),
        "smac": ForestPreset(10, "ei", 1.0, "none", "auto", "believer"),
    }
)


@final
class RandomForestSearch(ModelBased):
    """A random forest ranks candidates by expected improvement.

    Args:
        space: The search space.
        options: See `BatchOptions`; the presets are `default` and `smac`.
        trees: Trees of the forest; None means the preset's value.
        sources: Whether it is trained on the evaluations of source studies, too
            (`archive.agents.transfer.pooled`).
    """

    kind = "random-forest"
    info = AgentInfo(
        summary="random forest on paths, neighbourhoods and topology features; EI over the whole "
        "space",
        preset="ten trees, as in SMAC",
        paper="Hutter et al., 2011 (SMAC)",
        cost="O(n log n) a tree, one forest a proposal",
        when="baseline with the features of our agents",
    )
    knows_values = True

    joint = True

    def __init__(
        self,
        space: Space,
        options: BatchOptions = BATCH,
        trees: int | None = None,
        sources: bool = False,
    ) -> None:
        choices = choose(PRESETS, options, trees=trees)
        self._configurations = _search_of_configurations(space, options, choices)
        ranked_by, rule = ranking(choices.acquisition, choices.kappa, choices.batch_rule)
        joint = joint_space_of(space)
        features: EmbeddedDistance
        source: CandidateGenerator
        if joint is None:
            features = encoding(space, "default")
            source = candidate_generators.get(choices.candidates, space)
        else:
            codes = JointCodes(joint)
            features = JointFeatures(encoding(joint.networks, "default"), codes)
            source = JointCandidates(space, joint, codes)

        forest = RandomForest(features, choices.trees)
        surrogate = OutcomeTransformed(forest, outcome_transforms.get(choices.transform))
        transfer = PooledSources(space, surrogate) if sources and joint is None else None
        super().__init__(
            space, options.n_initial, Method(surrogate, ranked_by, source, rule, transfer=transfer)
        )

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        if self._configurations is None:
            return super().propose(history, n, rng)

        check_count(n)
        return self._configurations.propose(history, n, 0, rng)


def _search_of_configurations(
    space: Space, options: BatchOptions, choices: ForestPreset
) -> ConfigurationSearch | None:
    """Return the search of a space of parameters with a forest of codes; None for other spaces."""
    if not isinstance(space, Parameters) or choices.acquisition == "ts":
        return None

    acquisition, _ = ranking(choices.acquisition, choices.kappa, choices.batch_rule)
    settings = SearchSettings(
        acquisition,
        options.n_initial,
        exact=choices.transform,
        noisy=choices.transform,
        models=("forest",),
        trees=choices.trees,
    )
    return ConfigurationSearch(space, settings)
