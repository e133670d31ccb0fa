"""The members of a portfolio: which distances a model learns from, and how they make a covariance.

| member     | distances                                                      | covariance             | on          |
|------------|----------------------------------------------------------------|------------------------|-------------|
| `features` | Weisfeiler-Lehman squared, counts of paths and of operations   | exp(-sum_i beta_i d_i) | cells       |
| `sums`     | the same                                                       | a sum, one term each   | cells       |
| `subtrees` | Weisfeiler-Lehman squared: a Gaussian kernel of neighbourhoods | exp(-beta d)           | all spaces  |
| `paths`    | counts of paths and of operations                              | exp(-sum_i beta_i d_i) | cells       |
| `ngrams`   | tree-Wasserstein: 1-, 2- and 3-grams, degrees, sizes           | exp(-sum_i beta_i d_i) | all spaces  |
| `outline`  | profile: depths and number of paths, size                      | exp(-sum_i beta_i d_i) | all spaces  |
| `structure`| Weisfeiler-Lehman squared and profile                          | exp(-sum_i beta_i d_i) | all spaces  |
| `otmann`   | OTMANN                                                         | NASBOT, eq. (4)        | cnn and mlp |

On cells, `subtrees`, `outline` and `structure` make the default: one knows patterns, one knows how deep, wide and large
a network is, and one knows both. Where they disagree, each has its say; a model of all distances alone was surer of
itself than it should have been. With `ngrams` as a fourth, twenty searches of NAS-Bench-101 were 0.10 points from the
best after 50 evaluations, instead of 0.20; on NAS-Bench-201 they found the best of all after 38 and 40 evaluations,
instead of 34 and 33.

In a product, networks are alike that are alike in everything; in a sum it is enough to be alike in one thing. So a
product tells near ones apart, and a sum carries far what was seen: to cells whose operations are promising, however
they are wired.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np

from archive.agents.acquisition.listing import Listing
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.agents.surrogates.gp.length_scale_prior import DimensionScaledPrior
from archive.architecture.graph import Architecture
from archive.errors import UnknownNameError
from archive.kernels.base import Distance
from archive.kernels.covariance.base import BoundCovariance, Covariance, Exponential, Sum, exponential
from archive.kernels.distances.otmann import OTMANN
from archive.kernels.distances.tree_wasserstein.distance import TreeWasserstein
from archive.kernels.features.embedding import EmbeddedDistance
from archive.kernels.features.path_graph import label
from archive.kernels.features.paths import PathEncoding
from archive.kernels.features.topology import TopologyFeatures
from archive.kernels.features.weisfeiler_lehman import WeisfeilerLehman
from archive.spaces.base import Space

CELL_MEMBERS = ("features", "sums", "subtrees", "paths", "ngrams", "outline", "structure")
NETWORK_MEMBERS = ("subtrees", "ngrams", "outline", "structure", "otmann")
"""Names of the members, for cells and for networks whose layers have units."""

WIDE, NARROW = 0.25, 0.12
"""Priors of length scales: log-normal, with standard deviations of about 1.5 and 0.7. Twenty networks say little about
the weights of several distances of one another, and searches that believed them went astray."""


@dataclass(frozen=True)
class Model:
    """What a member learns with.

    Attributes:
        pairwise: Gives the distances.
        covariance: Of them.
        cheap: Whether distances from thousands of networks take milliseconds.
        prior: Standard deviation of the prior of its hyperparameters, in half widths of their box.
    """

    pairwise: CachedDistances
    covariance: Covariance
    cheap: bool
    prior: float


def defaults(space: Space) -> tuple[str, ...]:
    """Return the names of the members that a portfolio has unless told otherwise."""
    return ("subtrees", "outline", "structure") if space.is_cell else ("subtrees", "ngrams", "otmann")


def is_cheap(member: str, space: Space) -> bool:
    """Return whether distances from thousands of networks take a member milliseconds.

    Raises:
        UnknownNameError: There is no such member for this space.
    """
    return all(kind.cheap_rows for kind in _distances(member, space))


def model(member: str, space: Space, listing: Listing | None = None) -> Model:
    """Return a member's model.

    Args:
        member: Its name.
        space: Where to search.
        listing: The networks of the space, where they are listed; models share it.

    Raises:
        UnknownNameError: There is no such member for this space.
    """
    kinds = _distances(member, space)
    cheap = all(kind.cheap_rows for kind in kinds)
    powers = [kind.power for kind in kinds for _ in kind.components]
    if member == "sums":
        covariance: Covariance = Sum([Exponential([at], power, f"_{at}") for at, power in enumerate(powers)])
    else:
        covariance = kinds[0].default_covariance() if len(kinds) == 1 else PowerExponentialARD(powers)
        covariance = DimensionScaledPrior(covariance, len(powers))
    prior = NARROW if member in ("outline", "structure") else WIDE
    return Model(CachedDistances(kinds, listing if cheap else None), covariance, cheap, prior)


def _distances(member: str, space: Space) -> list[Distance[Any]]:
    known = CELL_MEMBERS if space.is_cell else NETWORK_MEMBERS
    if member not in known:
        raise UnknownNameError(f"member for the space {space.name}", member, known)
    if member == "ngrams":
        return [TreeWasserstein((1, 2, 3), sizes=True, functional=True)]
    if member == "otmann":
        return [OTMANN()]
    if member == "outline":
        return [TopologyFeatures()]
    subtrees: list[Distance[Any]] = [WeisfeilerLehman(attributes=not space.is_cell)]
    if member == "subtrees":
        return subtrees
    if member == "structure":
        return [*subtrees, TopologyFeatures()]
    paths: list[Distance[Any]] = [PathEncoding(counts=True), OperationCounts()]
    return paths if member == "paths" else [*subtrees, *paths]


@final
class OperationCounts(EmbeddedDistance):
    """The L1 distance of counts of operations, dead layers left out; a pseudo-metric, O(layers).

    Args:
        attributes: Whether operations of other units or strides are others.
    """

    name: ClassVar[str] = "operations"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    def __init__(self, attributes: bool = False) -> None:
        """Keep the argument."""
        self.attributes = attributes

    @property
    def components(self) -> tuple[str, ...]:
        """Return `operations`."""
        return (self.name,)

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the counts, by operation."""
        counts: dict[str, float] = {}
        for layer in architecture.live:
            name = label(architecture.layers[layer], self.attributes)
            counts[name] = counts.get(name, 0.0) + 1.0
        return (counts,)


@final
class PowerExponentialARD(Covariance):
    """exp(-sum_i beta_i d_i^p_i): a power for each component.

    Args:
        powers: p, one a component.
    """

    def __init__(self, powers: Sequence[float]) -> None:
        """Keep the powers."""
        self.powers, self._plain = tuple(powers), exponential(len(powers))

    @property
    def names(self) -> tuple[str, ...]:
        """Return `alpha` and a `beta` for each component."""
        return self._plain.names

    def bounds(self, stack: Array) -> Array:
        """Scale the betas to the median powers."""
        return self._plain.bounds(self._raised(stack))

    def variance(self, theta: Array) -> float:
        """Return alpha."""
        return self._plain.variance(theta)

    def bind(self, stack: Array) -> BoundCovariance:
        """Raise the distances to their powers."""
        return self._plain.bind(self._raised(stack))

    def _raised(self, stack: Array) -> Array:
        if set(self.powers) == {1.0}:
            return stack
        raised = np.array(stack[: len(self.powers)])
        for layer, power in zip(raised, self.powers, strict=True):
            if power != 1.0:
                np.power(layer, power, out=layer)
        return raised
