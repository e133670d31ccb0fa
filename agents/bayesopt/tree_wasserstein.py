"""Tree-Wasserstein agents: `tw`, and `tw-kdpp` with diverse batches by a k-DPP.

Nguyen, Le, Yamada, Osborne: Optimal Transport Kernels for Sequential and Parallel Neural
Architecture Search (2021).

| part             | paper (`preset="paper"`)                        | default                                         |
|------------------|-------------------------------------------------|-------------------------------------------------|
| n-grams          | 2 (TW-2G), or 1 (TW) by `n`, as shares, eq. (3) | 1 as shares; on cells counts of all paths too   |
| other components | indegree and outdegree, eq. (4)                 | the same, and sizes; on cells topology features |
| covariance       | exp(-sum_i lambda_i W_i), eq. (25)              | the same                                        |
| quality          | of 100 candidates exp(mean), eq. (12)           | of 30 candidates EI^5                           |
| first networks   | 10 of the space's pool                          | the same                                        |
| the rest         | see `bayesopt.gaussian_process`                 | likewise                                        |

Shares do not depend on the number of layers: cells that repeat a motif once and twice have equal
shares. So the default has the size of a network as a separate component. Paths from input to output
are the n-grams of all n, anchored at both ends (section 2.2 states this of the path encoding);
counts of paths differ where shares are equal. Topology features
(`archive.kernels.features.topology`) describe depth, width and size of any cell, whereas n-grams
carry information about cells of observed n-grams only.

The quality is defined as in `tw-kdpp`. It enters the determinant of a sample squared, so that the
default's batches are drawn with EI^10: nearly the candidates of greatest EI, except for similar
ones. The paper begins with a random tenth of the budget; an agent does not know the budget, so
`n_initial` is 10 in both presets.

The defaults of both agents were chosen on NAS-Bench-201: comparisons with the preset there are
biased in their favour.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, final

from archive.agents.base import AgentInfo
from archive.agents.bayesopt.gaussian_process import method
from archive.agents.bayesopt.gp_presets import PRESETS
from archive.agents.bayesopt.model_based import ModelBased
from archive.agents.constructor_arguments import (
    BATCH,
    SEQUENTIAL,
    BatchOptions,
    BayesOptOptions,
    choose,
    record,
)
from archive.agents.transfer.coordinator import with_transfer
from archive.kernels.base import Distance
from archive.kernels.distances.tree_wasserstein.distance import TreeWasserstein
from archive.kernels.features import choices
from archive.kernels.features.paths import PathEncoding
from archive.kernels.features.topology import TopologyFeatures
from archive.spaces.base import Space


class QualityPreset(NamedTuple):
    """Values of a preset of `tw-kdpp`; a setting that is None keeps them.

    See `TreeWassersteinKdpp`.
    """

    quality: str
    weight: float
    shortlist: int


QUALITY = {"default": QualityPreset("ei", 5.0, 30), "paper": QualityPreset("mean", 1.0, 100)}


@final
class TreeWassersteinSearch(ModelBased):
    """Bayesian optimisation with the tree-Wasserstein distance (algorithm 1, sequential).

    Args:
        space: The search space.
        options: See `BatchOptions`; the paper compares the batch rules `believer`, `bucb`,
            `thompson` and `kdpp`.
        n: Length of the n-grams, or several; None for the preset's.
    """

    kind = "tw"
    info = AgentInfo(
        summary="Gaussian process on tree-Wasserstein distances and sizes, on path counts and "
        "topology of cells; EI",
        preset="tree-Wasserstein distance of 2-grams alone; UCB",
        paper="Nguyen et al., 2021 (tree-Wasserstein)",
        cost="O(n^3)",
        when="cells, one evaluation at a time",
        transfers=True,
    )

    def __init__(
        self, space: Space, options: BatchOptions = BATCH, n: int | Iterable[int] | None = None
    ) -> None:
        lengths = list(n) if isinstance(n, Iterable) else n
        record(self, n=lengths)
        search = method(space, distances(space, options.preset, lengths), choose(PRESETS, options))
        super().__init__(space, options.n_initial, with_transfer(space, options.preset, search))


@final
class TreeWassersteinKdpp(ModelBased):
    """The surrogate of `tw` with batches from a k-DPP with quality (algorithm 1, parallel).

    The posterior covariance makes a sample diverse, the `quality` of eq. (12) makes it good.
    Samples are exact, from the short list of the candidates of greatest acquisition: a k-DPP of all
    members of a space takes cubic time, and its thousands of poor networks together would outweigh
    the few good ones.

    Args:
        space: The search space.
        options: See `BayesOptOptions`; the acquisition selects the short list.
        n: Length of the n-grams, or several; None means the preset's value, here and in the
            following settings.
        quality: `mean`, eq. (12), or an acquisition.
        weight: Factor of the logarithm of the quality.
        shortlist: Length of the short list.
    """

    kind = "tw-kdpp"
    info = AgentInfo(
        summary="model of tw; batches drawn from a k-DPP with quality EI^5",
        preset="model of tw with that preset; quality exp(mean)",
        paper="Nguyen et al., 2021 (tree-Wasserstein)",
        cost="O(n^3), and the spectrum of the candidates' covariance",
        when="cells, several evaluations at a time",
        transfers=True,
    )

    def __init__(
        self,
        space: Space,
        options: BayesOptOptions = SEQUENTIAL,
        n: int | Iterable[int] | None = None,
        quality: str | None = None,
        weight: float | None = None,
        shortlist: int | None = None,
    ) -> None:
        lengths = list(n) if isinstance(n, Iterable) else n
        record(self, n=lengths)
        batch = QUALITY["paper" if options.preset == "paper" else "default"]
        search = method(
            space,
            distances(space, options.preset, lengths),
            choose(PRESETS, options, batch_rule="quality-kdpp"),
            shortlist=batch.shortlist if shortlist is None else shortlist,
            quality=quality or batch.quality,
            weight=batch.weight if weight is None else weight,
        )
        super().__init__(space, options.n_initial, with_transfer(space, options.preset, search))


def distances(space: Space, preset: str, n: int | Iterable[int] | None) -> list[Distance[Any]]:
    """Return the distances of the covariance, by preset: see the head of this module."""
    if preset == "paper":
        return [TreeWasserstein(2 if n is None else n)]

    if choices.describe(space.name):
        return [TreeWasserstein((1, 2) if n is None else n), choices.ChoiceFeatures()]

    paths = [PathEncoding(counts=True), TopologyFeatures()] if space.is_cell else []
    # Where layers have units, hardly any two networks share a whole path; the order of layers is
    # more informative.
    default = 1 if paths else (1, 2)
    return [TreeWasserstein(default if n is None else n, sizes=True), *paths]
