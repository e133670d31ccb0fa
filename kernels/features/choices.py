"""Features of categorical decisions: the option of each, its rank, and its occurrences.

| symbol | meaning                                                                               | shape  |
|--------|---------------------------------------------------------------------------------------|--------|
| o_i    | operation at place i: slot of the space, or vertex in canonical order                 | places |
| r_i    | rank of o_i among the space's options, 0, 1, …; spaces other than `choices` have none | places |
| R_i    | number of options at place i                                                          | places |
| c_o    | number of places with operation o                                                     | labels |

With d the number of places that differ, exp(-beta d) is the exact covariance of independent
decisions, a product over the places of a categorical kernel with the correlation exp(-beta) between
two options (Qian, Wu, Wu: Gaussian process models for computer experiments with qualitative and
quantitative factors, 2008, the exchangeable case).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, final

from archive.architecture.choice_operations import CHOICES, parse_label
from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary
from archive.kernels.features.adjacency import has_slots, table
from archive.kernels.features.embedding import EmbeddedDistance
from archive.spaces.base import Space


def describe(space: str) -> bool:
    """Return whether a space has options at fixed places, which these features describe."""
    return not vocabulary(space).described and has_slots(space)


def options_of(space: Space) -> dict[str, int]:
    """Return the number of ranked options of each place, 0 where options have no rank."""
    decisions = space.decisions() if space.name == CHOICES.name else None
    if decisions is None:
        return dict.fromkeys(table(space.initial_pool()[0]).operations, 0)

    options = {}
    for number, decision in enumerate(decisions.decisions, 1):
        options[str(number)] = len(decision.choices)

    return options


@final
class DecisionFeatures(EmbeddedDistance):
    """L1 distances of each decision: whether the options differ, and by how many ranks.

    d_i = [o_i != o'_i], and d'_i = |r_i - r'_i| / (R_i - 1) for each decision with R_i > 2 options;
    of two options both would be the same. The former together are a metric of the members of a
    space; exp(-sum_i beta_i d_i) is positive semi-definite. O(places). Choose it where some
    decisions matter more than others: each has a length scale.

    Args:
        options: Number of options of each place, by the names of `Space.slots`; 0 where options
            have no rank.
    """

    name: ClassVar[str] = "decisions"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    def __init__(self, options: Mapping[str, int]) -> None:
        self.options = dict(options)
        self._ranked = {slot: count - 1 for slot, count in self.options.items() if count > 2}

    @property
    def components(self) -> tuple[str, ...]:
        """Return `decisions:PLACE` for each place, then `ranks:PLACE` for more than two options."""
        return (
            *(f"decisions:{slot}" for slot in self.options),
            *(f"ranks:{slot}" for slot in self._ranked),
        )

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return one mapping for each place, then one for each ranked place.

        The operation at a place is a coordinate of 0.5: two networks that differ there differ in
        two coordinates, so that their L1 distance is 1. The mapping of an absent place is empty.

        Raises:
            InvalidArchitectureError: The network has no slots.
        """
        operations = table(architecture).operations
        features: list[dict[str, float]] = []
        for slot in self.options:
            features.append({operations[slot]: 0.5} if slot in operations else {})

        for slot, most in self._ranked.items():
            present = slot in operations
            features.append({slot: parse_label(operations[slot])[1] / most} if present else {})

        return tuple(features)


@final
class ChoiceFeatures(EmbeddedDistance):
    """L1 distances of decisions: places that differ, ranks of the options, counts of the options.

    d_1 = sum_i [o_i != o'_i], d_2 = sum_i |r_i - r'_i|, d_3 = sum_o |c_o - c'_o|. The first is a
    metric of members of a space with slots, and a pseudo-metric elsewhere; the others are
    pseudo-metrics. exp(-beta d) of each is positive semi-definite. O(places). Choose it where
    networks are options at fixed places: ranks help where options are listed in an order, such as
    sizes, counts where an option has a similar effect at several places.
    """

    name: ClassVar[str] = "choices"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    @property
    def components(self) -> tuple[str, ...]:
        """Return `choices:places`, `choices:ranks` and `choices:counts`."""
        return ("choices:places", "choices:ranks", "choices:counts")

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return a coordinate of 0.5 for each place and operation, the ranks, and the counts.

        Raises:
            InvalidArchitectureError: The space has slots, and the network is not a member of it.
        """
        operations = table(architecture).operations
        # Two places that differ have two features that differ.
        places: dict[str, float] = {}
        ranks: dict[str, float] = {}
        counts: dict[str, float] = {}
        for slot, operation in operations.items():
            places[f"{slot}={operation}"] = 0.5
            counts[operation] = counts.get(operation, 0.0) + 1.0
            if architecture.space == CHOICES.name:
                ranks[slot] = float(parse_label(operation)[1])

        return places, ranks, counts
