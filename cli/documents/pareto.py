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
    """Results of a study with several objectives that no other result dominates.

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


class ObjectiveEstimate(JsonObject):
    """Estimate of a network's noise-free value in one objective.

    Attributes:
        mean: Posterior mean; without noise the value itself, without a model the mean of the evaluations.
        low: Lower end of its 95 % interval; null where no model could be fitted.
        high: Upper end.
        evaluations: Number of evaluations of the network that have the objective.
    """

    mean: float
    low: float | None
    high: float | None
    evaluations: int


class RecommendedProposal(JsonObject):
    """A network of the recommended Pareto set.

    Attributes:
        proposal: Id of its first proposal in the study.
        number: Number of this proposal.
        architecture: Key of the architecture.
        expected: Estimate of each objective, by name.
    """

    proposal: str
    number: int
    architecture: str
    expected: dict[str, ObjectiveEstimate]


class RecommendedPareto(JsonObject):
    """Networks that no other one dominates in expected values, in a study with several noisy objectives.

    Attributes:
        noise: Estimated standard deviation of an evaluation in each objective, by name: 0 without noise, null where no
            model could be fitted.
        proposals: The networks, the best in the first objective first.
    """

    noise: dict[str, float | None]
    proposals: list[RecommendedProposal]
