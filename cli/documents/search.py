"""Document of `archive search`."""

from __future__ import annotations

from archive.cli.documents.base import Document, JsonObject
from archive.cli.documents.constraints import ConstraintItem, NearestItem
from archive.cli.documents.pareto import ObjectiveItem, ParetoItem
from archive.cli.documents.studies import EstimateItem


class IncumbentItem(JsonObject):
    """The best architecture that a search has found.

    Attributes:
        architecture: Its key.
        proposal: Id of the proposal.
        value: The objective.
        held_out: The same metric on test data, where the task has some.
        weights: Where its trained weights are, if they were kept.
        unsaved: Why its weights could not be saved; null where they were, or where there are none.
    """

    architecture: str
    proposal: str
    value: float
    held_out: float | None
    weights: str | None
    unsaved: str | None


class RecommendedItem(JsonObject):
    """The architecture with the best estimate of its noise-free value.

    Attributes:
        architecture: Its key.
        proposal: Id of the proposal with its best value.
        value: This value.
        expected: The estimate.
    """

    architecture: str
    proposal: str
    value: float
    expected: EstimateItem


class GainItem(JsonObject):
    """How much better the incumbent is than the best of the initial networks.

    Attributes:
        initial: Number of initial networks that were evaluated.
        initial_best: The best value among them.
        best: The incumbent's value.
        gain: Difference of the two, positive where the incumbent is better.
        found_at: Position of the incumbent among the evaluations, from 1.
    """

    initial: int
    initial_best: float
    best: float
    gain: float
    found_at: int


class SearchDocument(Document):
    """Result of a search.

    Attributes:
        study: Name of the study.
        agent: Name of the agent.
        task: Name of the task.
        protocol: How the task is trained and measured.
        space: Name of the space.
        objective: Name of the metric that is optimised.
        evaluations: Proposals with a result.
        pruned: Those of them that paused at a rung.
        answered: Those of them that were answered from the archive.
        failed: Proposals without a result.
        budget: Most evaluations; 1000000 or more stands for no limit.
        exhausted: Whether there is nothing left to evaluate.
        warm_started_from: Names of the sources.
        server: Where the archive is.
        best: The architecture of the best single value that meets the constraints; null where no evaluation succeeded
            or none meets them (exit code 3).
        recommended: The architecture to use where another training could give another value, by posterior mean; null
            where results have no noise: `best` is then the recommendation.
        gain: Gain over the initial networks; null where it is not known.
        objectives: All objectives; `objective` is the first.
        pareto: Pareto set of several objectives; null with one, or without results.
        constraints: Bounds that the best network must meet.
        nearest: The result of the smallest violation, where none meets the constraints; else null.
    """

    study: str
    agent: str
    task: str
    protocol: str
    space: str
    objective: str
    evaluations: int
    pruned: int
    answered: int
    failed: int
    budget: int
    exhausted: bool
    warm_started_from: list[str]
    server: str
    best: IncumbentItem | None
    recommended: RecommendedItem | None
    gain: GainItem | None
    objectives: list[ObjectiveItem]
    pareto: ParetoItem | None
    constraints: list[ConstraintItem]
    nearest: NearestItem | None
