"""Parts of documents on several objectives."""

from __future__ import annotations

from typing import Literal

from archive.cli.documents.base import JsonObject


class ObjectiveItem(JsonObject):
    """One objective of a study.

    Attributes:
        name: Name of the metric.
        direction: Whether larger or smaller values are better.
    """

    name: str
    direction: Literal["maximise", "minimise"]


class ParetoProposal(JsonObject):
    """A result of the Pareto set.

    Attributes:
        proposal: Id of the proposal.
        number: Its number in the study.
        architecture: Key of the architecture.
        values: Value of each objective, by name; of several evaluations of the network their mean.
        evaluations: Number of these evaluations; `proposal` is the first one.
    """

    proposal: str
    number: int
    architecture: str
    values: dict[str, float]
    evaluations: int


class HypervolumeItem(JsonObject):
    """Hypervolume of the results up to a proposal.

    Attributes:
        number: Number of the proposal.
        hypervolume: The volume.
    """

    number: int
    hypervolume: float


class ParetoItem(JsonObject):
    """Results of a study with several objectives that no other result exceeds in all of them.

    Attributes:
        reference: Reference point of the hypervolume: the worst value of each objective among the results.
        hypervolume: Volume between the reference point and the front, in the product of the objectives' units.
        history: The hypervolume after each result.
        left_out: Number of results without a value of every objective.
        proposals: The Pareto set, the best in the first objective first.
    """

    reference: dict[str, float]
    hypervolume: float
    history: list[HypervolumeItem]
    left_out: int
    proposals: list[ParetoProposal]
