"""Gaussian process on any distance: `gp`, and the papers' baselines of fixed distances.

| preset    | learns from       | hyperparameters                 | acquisition | candidates                        |
|-----------|-------------------|---------------------------------|-------------|-----------------------------------|
| `default` | scores compressed | most probable a posteriori, the | log EI      | the whole space if it can be      |
|           | below the median  | prior shared by all components  |             | listed and ranked, else evolution |
| `paper`   | scores            | greatest marginal likelihood    | UCB         | a pool of 100 by evolution        |

`paper` is the comparison of distances in the tree-Wasserstein paper (section 4.1; its kappa is not
given, here 2). Scores of bad networks differ by more than scores of good ones and dominate the
likelihood; compressed, they leave the length scales to the good ones. Twenty observations carry
little information about half a dozen length scales, hence a prior. The default was chosen on
NAS-Bench-201: `archive bench search` compares it with the preset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, final

from archive import kernels
from archive.agents.acquisition import batch, candidate_generators
from archive.agents.acquisition import functions as acquisitions
from archive.agents.acquisition.batch import BatchSelection
from archive.agents.acquisition.functions import Acquisition
from archive.agents.base import AgentInfo
from archive.agents.bayesopt.gp_presets import PRESETS, GPPreset
from archive.agents.bayesopt.model_based import Method, ModelBased
from archive.agents.constructor_arguments import BATCH, BatchOptions, choose
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.nugget import DimensionScaledPrior
from archive.kernels.base import Distance
from archive.kernels.covariance.base import exponential
from archive.spaces.base import Space


def method(
    space: Space,
    distances: Sequence[Distance[Any]],
    choices: GPPreset,
    shortlist: int = 300,
    **rule: Any,
) -> Method:
    """Return the configuration of a search with a Gaussian process on one or more distances.

    Args:
        space: The search space.
        distances: Distances; all their components enter the covariance.
        choices: The preset, with the changed settings.
        shortlist: Number of candidates that the batch rule selects from.
        **rule: Settings of the batch rule.

    Raises:
        UnknownNameError: A name is not known.
        UsageError: A setting is out of range, or the space cannot be listed where `members` asks
            for it.
    """
    source = candidate_generators.get(
        choices.candidates, space, cheap=all(distance.cheap_rows for distance in distances)
    )
    stacked = CachedDistances(distances, candidate_generators.listing_of(source))
    covariance = (
        distances[0].default_covariance()
        if len(distances) == 1
        else exponential(stacked.components)
    )
    surrogate = DistanceGP(
        stacked,
        DimensionScaledPrior(covariance, stacked.components) if choices.shared else covariance,
        choices.learning,
        noise=choices.noise,
        transform=choices.transform,
    )
    acquisition, selection = ranking(choices.acquisition, choices.kappa, choices.batch_rule, **rule)
    return Method(surrogate, acquisition, source, selection, shortlist, repeats=choices.repeats)


def ranking(
    acquisition: str, kappa: float, rule: str, **settings: Any
) -> tuple[Acquisition, BatchSelection]:
    """Return the acquisition that ranks candidates, and the batch rule with its settings."""
    if acquisition == "ts":
        # Joint samples select by themselves: they replace the settings of the rule.
        acquisition = "ucb"
        rule = "thompson"
        settings = {}

    ranked_by = acquisitions.get(acquisition, **({"kappa": kappa} if acquisition == "ucb" else {}))
    of_rule: dict[str, Any] = {
        "top": {"acquisition": ranked_by},
        "believer": {"acquisition": ranked_by},
        "bucb": {"kappa": kappa},
    }
    return ranked_by, batch.get(rule, **of_rule.get(rule, {}), **settings)


@final
class KernelSearch(ModelBased):
    """Bayesian optimisation with a Gaussian process on any distance.

    Args:
        space: The search space; the distance must be defined on its networks.
        options: See `BatchOptions`.
        kernel: Name of the distance.
        kernel_settings: Its settings by name.
    """

    kind = "gp"
    info = AgentInfo(
        summary="Gaussian process on any kernel, with any acquisition and batch rule",
        preset="UCB, maximum likelihood, a pool of 100 candidates; the same for all gp-*",
        paper="White et al., 2021; Nguyen et al., 2021",
        cost="O(n^3)",
        when="a kernel of your own, or another acquisition or batch rule",
    )

    def __init__(
        self,
        space: Space,
        options: BatchOptions = BATCH,
        kernel: str = "weisfeiler-lehman",
        kernel_settings: Mapping[str, Any] | None = None,
    ) -> None:
        distance = kernels.get(kernel, **(kernel_settings or {}))
        super().__init__(
            space, options.n_initial, method(space, [distance], choose(PRESETS, options))
        )


class Baseline(ModelBased):
    """Bayesian optimisation with a Gaussian process on the distance of the class.

    Args:
        space: The search space; the distance must be defined on its networks.
        options: See `BatchOptions`.
    """

    kernel: ClassVar[str]
    kernel_settings: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __init__(self, space: Space, options: BatchOptions = BATCH) -> None:
        distance = kernels.get(self.kernel, **self.kernel_settings)
        super().__init__(
            space, options.n_initial, method(space, [distance], choose(PRESETS, options))
        )


@final
class GpHamming(Baseline):
    """Differing entries of adjacency matrix and operation list (BANANAS, section 5.1)."""

    kind = "gp-hamming"
    info = AgentInfo(
        summary="Gaussian process on Hamming distances of matrices and operations",
        paper="White et al., 2021 (BANANAS)",
        cost="O(n^3)",
        when="the paper's Gaussian process baseline, with preset=paper",
    )
    kernel = "hamming"


@final
class GpAdjacency(Baseline):
    """The adjacency encoding: ablation of BANANAS, section 5.1."""

    kind = "gp-adjacency"
    info = AgentInfo(
        summary="Gaussian process on the adjacency encoding",
        paper="White et al., 2021 (BANANAS)",
        cost="O(n^3)",
        when="baseline of encodings",
    )
    kernel = "adjacency"


@final
class GpPath(Baseline):
    """The path encoding: ablation of BANANAS, section 5.1, and of tree-Wasserstein, figure 6."""

    kind = "gp-path"
    info = AgentInfo(
        summary="Gaussian process on the path encoding",
        paper="White et al., 2021 (BANANAS)",
        cost="O(n^3)",
        when="cells, at most hundreds of observations",
    )
    kernel = "path"


@final
class GpWasserstein(Baseline):
    """The Wasserstein distance of layers: tree-Wasserstein, section 4.1."""

    kind = "gp-wasserstein"
    info = AgentInfo(
        summary="Gaussian process on Wasserstein distances of layers",
        paper="Nguyen et al., 2021 (tree-Wasserstein)",
        cost="O(n^3), and an optimal transport problem a pair of networks",
        when="baseline of distances",
    )
    kernel = "wasserstein"


@final
class GpGromovWasserstein(Baseline):
    """The Gromov-Wasserstein distance of graphs: tree-Wasserstein, section 4.1."""

    kind = "gp-gromov-wasserstein"
    info = AgentInfo(
        summary="Gaussian process on Gromov-Wasserstein distances",
        paper="Nguyen et al., 2021 (tree-Wasserstein)",
        cost="O(n^3), and an optimal transport problem a pair of networks",
        when="baseline of distances; wiring matters more than operations",
    )
    kernel = "gromov-wasserstein"
    # One start instead of eight: with hundreds of candidates against all observations, eight take
    # minutes.
    kernel_settings = MappingProxyType({"starts": 1})


@final
class GpWeisfeilerLehman(Baseline):
    """The Weisfeiler-Lehman kernel of Ru et al., 2021, as the Gaussian kernel of its features."""

    kind = "gp-wl"
    info = AgentInfo(
        summary="Gaussian process on the Weisfeiler-Lehman kernel",
        paper="Ru et al., 2021 (NAS-BOWL)",
        cost="O(n^3)",
        when="cells, from the first evaluations on",
    )
    kernel = "weisfeiler-lehman"
