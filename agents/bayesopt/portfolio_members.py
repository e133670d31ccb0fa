"""Members of a portfolio: the distances of each model, and their covariance.

| member      | distances                                                      | covariance             | on          |
|-------------|----------------------------------------------------------------|------------------------|-------------|
| `features`  | Weisfeiler-Lehman squared, counts of paths and of operations   | exp(-sum_i beta_i d_i) | cells       |
| `sums`      | the same                                                       | a sum, one term each   | cells       |
| `subtrees`  | Weisfeiler-Lehman squared: a Gaussian kernel of neighbourhoods | exp(-beta d)           | all spaces  |
| `paths`     | counts of paths and of operations                              | exp(-sum_i beta_i d_i) | cells       |
| `ngrams`    | tree-Wasserstein: 1-, 2- and 3-grams, degrees, sizes           | exp(-sum_i beta_i d_i) | all spaces  |
| `topology`  | topology features: depths and number of paths, size            | exp(-sum_i beta_i d_i) | all spaces  |
| `structure` | Weisfeiler-Lehman squared and topology features                | exp(-sum_i beta_i d_i) | all spaces  |
| `otmann`    | OTMANN                                                         | NASBOT, eq. (4)        | cnn and mlp |
| `choices`   | choices: places that differ, ranks and counts of options       | exp(-sum_i beta_i d_i) | cells       |
| `patterns`  | Weisfeiler-Lehman squared and choices                          | exp(-sum_i beta_i d_i) | cells       |
| `decisions` | options and ranks, a distance for each decision                | `CommonScaleARD`       | `choices`   |

On cells the default is `subtrees`, `topology` and `structure`: local patterns, depth with width and
size, and both. A mixture averages their disagreements, whereas a single model of all distances was
overconfident.

Where the wiring of cells is searched, as in NAS-Bench-101, `ngrams` is a fourth member: n-grams and
degrees tell wirings apart. Searches of NAS-Bench-101 had a regret of 0.10 points after 50
evaluations instead of 0.16. Cells of slots have operations at the same places, and the three
members describe those as well with fewer evaluations: with `ngrams`, searches of NAS-Bench-201
found the best cell after 27.5 and 29 evaluations instead of 24.5 and 23.

Where operations are options of no known meaning at fixed places, as in `choices`, topology features
are constant: the default is then `subtrees`, `choices`, `patterns` and `decisions`. The last one
tells decisions that matter from others. It is left out of a long list with many decisions: with 32
decisions in 50,000 rows of a table, steps of 200 evaluations took 5 s instead of 0.9.

A product kernel requires similarity in all components (local); an additive kernel in any (long
range): it generalises to cells of promising operations with another wiring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np

from archive.agents.acquisition.listing import Listing, count_listed
from archive.agents.bayesopt.gp_presets import PRESETS
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.fitted import Pairwise
from archive.agents.surrogates.gp.nugget import (
    DimensionScaledPrior,
    DistancesWithIdentity,
    NuggetCovariance,
)
from archive.agents.surrogates.outcome_transforms import OutcomeTransform
from archive.architecture.graph import Architecture
from archive.errors import UnknownNameError
from archive.kernels.base import Distance
from archive.kernels.covariance.base import (
    BoundCovariance,
    CommonScaleARD,
    Covariance,
    Exponential,
    Sum,
    exponential,
)
from archive.kernels.distances.otmann import OTMANN
from archive.kernels.distances.tree_wasserstein.distance import TreeWasserstein
from archive.kernels.features import choices
from archive.kernels.features.adjacency import has_slots
from archive.kernels.features.embedding import EmbeddedDistance
from archive.kernels.features.paths import PathEncoding, label
from archive.kernels.features.topology import TopologyFeatures
from archive.kernels.features.weisfeiler_lehman import WeisfeilerLehman
from archive.spaces.base import Space

CELL_MEMBERS = (
    "features",
    "sums",
    "subtrees",
    "paths",
    "ngrams",
    "topology",
    "structure",
    "choices",
    "patterns",
)
NETWORK_MEMBERS = ("subtrees", "ngrams", "topology", "structure", "otmann")
"""Names of the members, for cells and for networks with layers of units."""
DECISIONS = "decisions"
"""Name of a further member, for options of no known meaning at fixed places."""
MOST_COMPARED = 2**19
"""Most distances of one network from a list of networks, over all decisions, with which `decisions`
is a default."""

WIDE = 0.25
NARROW = 0.12
"""Priors of length scales: log-normal, with standard deviations of about 1.5 and 0.7.

Twenty networks carry little information about the relative weights of several distances, and
searches with the wide prior were misled by it."""

NOISE_PRIOR = 0.5
"""Prior of the noise variance, log-normal: a standard deviation of 2.3 around a hundredth of the
scores' variance."""


@dataclass(frozen=True)
class MemberModel:
    """Distances, covariance and prior of a member.

    Attributes:
        pairwise: Computes the distances.
        covariance: Covariance of these distances.
        cheap: Whether the distances of one network from thousands take milliseconds.
        prior: Standard deviation of the prior of the hyperparameters, in half widths of their
            bounds.
    """

    pairwise: CachedDistances
    covariance: Covariance
    cheap: bool
    prior: float

    def surrogate(
        self, transform: str | OutcomeTransform, noise_prior: float | None = None
    ) -> DistanceGP:
        """Return the member's Gaussian process, with the inference of the default of `gp`.

        Args:
            transform: One of `archive.agents.surrogates.outcome_transforms`, or its name.
            noise_prior: Standard deviation of the prior of the noise variance, in half widths of
                its bounds; None for the prior of the other hyperparameters.
        """
        return process_of(self.pairwise, self.covariance, self.prior, transform, noise_prior)

    def noisy_surrogate(self, transform: str | OutcomeTransform) -> DistanceGP:
        """Return the member's process for noisy scores: a wide noise prior, and a nugget."""
        return noisy_process_of(self.pairwise, self.covariance, self.prior, transform)


def process_of(
    pairwise: Pairwise,
    covariance: Covariance,
    prior: float,
    transform: str | OutcomeTransform,
    noise_prior: float | None = None,
) -> DistanceGP:
    """Return the Gaussian process of a member; arguments as of `MemberModel` and its methods."""
    preset = PRESETS["default"]
    learning = replace(preset.learning, prior=prior, noise_prior=noise_prior)
    return DistanceGP(pairwise, covariance, learning, noise=preset.noise, transform=transform)


def noisy_process_of(
    pairwise: Pairwise, covariance: Covariance, prior: float, transform: str | OutcomeTransform
) -> DistanceGP:
    """Return the process of a member for noisy scores."""
    identified = DistancesWithIdentity(pairwise)
    nugget = NuggetCovariance(covariance)
    return process_of(identified, nugget, prior, transform, NOISE_PRIOR)


def defaults(space: Space) -> tuple[str, ...]:
    """Return the names of a portfolio's default members; see the module for the reasons."""
    if choices.describe(space.name):
        compared = len(_decisions(space).components) * count_listed(space)
        return (
            "subtrees",
            "choices",
            "patterns",
            *([DECISIONS] if compared <= MOST_COMPARED else []),
        )

    if not space.is_cell:
        return ("subtrees", "ngrams", "otmann")

    of_slots = ("subtrees", "topology", "structure")
    return of_slots if has_slots(space.name) else (*of_slots, "ngrams")


def is_cheap(member: str, space: Space) -> bool:
    """Return whether a member's distances of one network from thousands take milliseconds.

    Raises:
        UnknownNameError: The space has no such member.
    """
    return all(kind.cheap_rows for kind in _distances(member, space))


def member_model(member: str, space: Space, listing: Listing | None = None) -> MemberModel:
    """Return the model of a member.

    Args:
        member: Its name.
        space: The search space.
        listing: The networks of a listed space; the models of an agent share it.

    Raises:
        UnknownNameError: The space has no such member.
    """
    kinds = _distances(member, space)
    cheap = all(kind.cheap_rows for kind in kinds)
    powers: list[float] = []
    for kind in kinds:
        powers += [kind.power] * len(kind.components)

    if member == "sums":
        terms = [Exponential([c], power, f"_{c}") for c, power in enumerate(powers)]
        covariance: Covariance = Sum(terms)
    elif member == DECISIONS:
        covariance = CommonScaleARD(len(powers))
    else:
        covariance = (
            kinds[0].default_covariance() if len(kinds) == 1 else PowerExponentialARD(powers)
        )
        covariance = DimensionScaledPrior(covariance, len(powers))

    prior = NARROW if member in ("topology", "structure", "choices", "patterns") else WIDE
    return MemberModel(CachedDistances(kinds, listing if cheap else None), covariance, cheap, prior)


def _distances(member: str, space: Space) -> list[Distance[Any]]:
    names = CELL_MEMBERS if space.is_cell else NETWORK_MEMBERS
    if choices.describe(space.name):
        names = (*names, DECISIONS)

    if member not in names:
        raise UnknownNameError(f"member for the space {space.name}", member, names)

    if member == "ngrams":
        return [TreeWasserstein((1, 2, 3), sizes=True, functional=True)]

    if member == "otmann":
        return [OTMANN()]

    if member == DECISIONS:
        return [_decisions(space)]

    if member == "choices":
        return [choices.ChoiceFeatures()]

    if member == "topology":
        return [TopologyFeatures()]

    subtrees: list[Distance[Any]] = [WeisfeilerLehman(attributes=not space.is_cell)]
    if member == "subtrees":
        return subtrees

    if member == "patterns":
        return [*subtrees, choices.ChoiceFeatures()]

    if member == "structure":
        return [*subtrees, TopologyFeatures()]

    paths: list[Distance[Any]] = [PathEncoding(counts=True), OperationCounts()]
    return paths if member == "paths" else [*subtrees, *paths]


def _decisions(space: Space) -> choices.DecisionFeatures:
    return choices.DecisionFeatures(choices.options_of(space))


@final
class OperationCounts(EmbeddedDistance):
    """L1 distance of the counts of operations; a pseudo-metric, O(layers).

    Layers on no path to the output do not count.

    Args:
        attributes: Whether operations of different units or strides are distinct.
    """

    name: ClassVar[str] = "operations"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    def __init__(self, attributes: bool = False) -> None:
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
    """Power-exponential covariance exp(-sum_i beta_i d_i^p_i), one beta_i a component.

    Args:
        powers: p, one a component.
    """

    def __init__(self, powers: Sequence[float]) -> None:
        self.powers = tuple(powers)
        self._plain = exponential(len(powers))

    @property
    def names(self) -> tuple[str, ...]:
        """Return `alpha` and a `beta` for each component."""
        return self._plain.names

    def bounds(self, stack: Array) -> Array:
        """Scale the betas to the median powers."""
        return self._plain.bounds(self._raise_powers(stack))

    def variance(self, theta: Array) -> float:
        """Return alpha."""
        return self._plain.variance(theta)

    def bind(self, stack: Array) -> BoundCovariance:
        """Raise the distances to their powers."""
        return self._plain.bind(self._raise_powers(stack))

    def _raise_powers(self, stack: Array) -> Array:
        if set(self.powers) == {1.0}:
            return stack

        raised = np.array(stack[: len(self.powers)])
        for layer, power in zip(raised, self.powers, strict=True):
            if power != 1.0:
                np.power(layer, power, out=layer)

        return raised
