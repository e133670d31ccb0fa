"""Documents of `archive study`."""

from __future__ import annotations

from typing import Any, Literal

from archive.cli.documents.base import Document, JsonObject
from archive.searches.results import (
    ConstraintItem,
    EstimateItem,
    NearestItem,
    ObjectiveItem,
    ParetoItem,
    RecommendedPareto,
)

StateName = Literal["waiting", "running", "complete", "pruned", "failed"]


class StateCounts(JsonObject):
    """How many proposals of a study are in each state.

    Attributes:
        waiting: In the queue.
        running: Held by a trainer.
        complete: With the result of a whole training.
        pruned: With the result of a training that paused at a rung.
        failed: Without a result; cancelled ones count here.
    """

    waiting: int
    running: int
    complete: int
    pruned: int
    failed: int


class RungsItem(JsonObject):
    """The rungs of a study.

    Attributes:
        epochs: At which trainings pause; the last is the whole training.
        reduction: One of so many is promoted from each rung.
    """

    epochs: list[int]
    reduction: int


class StudyItem(JsonObject):
    """A study with how far it is.

    Attributes:
        study: Its name.
        task: Name of the task.
        protocol: How the task is trained and measured.
        space: Name of the space.
        space_config: The limits of the space.
        objective: Name of the metric that is optimised.
        direction: Whether larger or smaller values are better.
        objectives: All objectives; `objective` is the first.
        constraints: Bounds that the best network must meet.
        budget: Most evaluations; 1000000 or more stands for no limit.
        seed: Seed of the study.
        agent: The agent that began it, where one did.
        agents: The agents of its proposals, in the order of their first proposals.
        rungs: Where trainings pause; null where they do not.
        created: When it was made (ISO 8601, UTC).
        counts: Proposals in each state.
        best: Best value so far that meets the constraints, in the task's own unit. With several
            objectives, results with a value of each come first.
    """

    study: str
    task: str
    protocol: str
    space: str
    space_config: dict[str, Any]
    objective: str
    direction: Literal["maximise", "minimise"]
    objectives: list[ObjectiveItem]
    constraints: list[ConstraintItem]
    budget: int
    seed: int
    agent: str | None
    agents: list[str]
    rungs: RungsItem | None
    created: str | None
    counts: StateCounts
    best: float | None


class ProposalItem(JsonObject):
    """A proposal with what became of it.

    Attributes:
        proposal: Its id.
        number: Its number in the study.
        state: Its state; the database has the same words in capitals.
        cancelled: Whether it was cancelled, rather than failed or pruned.
        architecture: Key of the architecture.
        agent: Id of the agent that made it.
        acquisition: The agent's acquisition value.
        mean: The score that the surrogate expects, larger is better.
        std: The surrogate's standard deviation of it.
        rung: The rung that it has reached, or is on its way to, from 1; null in a study without
            rungs.
        epochs: Epochs trained so far; null where none are on record.
        value: The objective, once it is known.
        seconds: Wall-clock time of the training, once it is known.
        attempts: Number of attempts that were lost.
        worker: The worker that holds it, or held it last.
        metrics: Those of the result; before the first one, those of the last epoch.
        reason: Why it failed, or why it is tried again.
        started: When it was last claimed.
        finished: When it ended.
    """

    proposal: str
    number: int
    state: StateName
    cancelled: bool
    architecture: str
    agent: str | None
    acquisition: float | None
    mean: float | None
    std: float | None
    rung: int | None
    epochs: int | None
    value: float | None
    seconds: float | None
    attempts: int
    worker: str | None
    metrics: dict[str, float | None]
    reason: str | None
    started: str | None
    finished: str | None


class CouplingItem(JsonObject):
    """Estimated correlation of a study's task with a source, at one proposal.

    Attributes:
        number: Number of the proposal in the study.
        coupling: The correlation, in [-1, 1].
    """

    number: int
    coupling: float


class SourceItem(JsonObject):
    """What a source of a warm start has contributed.

    Attributes:
        study: Name of the source.
        task: Its task.
        space: Its space.
        same_task: Whether its evaluations are observations of the study.
        evaluations: How many it has with a finite value.
        proposals: How many of the study's proposals were based on it.
        coupling: Last estimate of the correlation of the study's task with its task, in [-1, 1].
        couplings: These estimates at every proposal that has one, by number.
        best_rank: The rank of its best network among what the study itself has evaluated, 1 is
            best.
    """

    study: str
    task: str
    space: str
    same_task: bool
    evaluations: int
    proposals: int
    coupling: float | None
    couplings: list[CouplingItem]
    best_rank: int | None


class StudyList(Document):
    """All studies.

    Attributes:
        studies: Oldest first.
    """

    studies: list[StudyItem]


class RecipeVersionItem(JsonObject):
    """Results of one version of the recipe.

    Attributes:
        version: Digest of its file, or release of its package.
        evaluations: Number of results.
    """

    version: str
    evaluations: int


class StudyDocument(Document, StudyItem):
    """One study with its proposals.

    Attributes:
        warm_started_from: Names of its sources.
        sources: Contribution of each source.
        incumbent: Id of the best proposal so far that meets the constraints, in the first
            objective; it has a value of each objective, if one has.
        nearest: The result of the smallest violation, where none meets the constraints; else null.
        pareto: Pareto set of several objectives; null with one, or without results.
        recipe_versions: Versions of the recipe that the results come from; empty for the default
            recipe.
        proposals: By number.
    """

    warm_started_from: list[str]
    sources: list[SourceItem]
    incumbent: str | None
    nearest: NearestItem | None
    pareto: ParetoItem | None
    recipe_versions: list[RecipeVersionItem]
    proposals: list[ProposalItem]


class BestItem(ProposalItem):
    """One of the best networks of a study: the proposal with its best value.

    Attributes:
        weights: Where its trained weights are, if they were kept.
        expected: Estimate of its value where results have noise, else null.
    """

    weights: str | None
    expected: EstimateItem | None


class BestList(Document):
    """The best networks of a study that meet its constraints.

    Attributes:
        study: Its name.
        objective: Name of the metric that is optimised.
        direction: Whether larger or smaller values are better.
        noise: Estimated standard deviation of a result; null where results have no noise, or it
            cannot be estimated.
        luckiest: Id of the proposal with the best single value where results have noise, else null.
        pareto: Pareto set of several objectives, as measured; null with one, or without results.
        recommended: Pareto set of their expected values where results have noise; else null.
        nearest: The result of the smallest violation, where none meets the constraints; else null.
        proposals: The best first: by the mean of `expected` where results have noise, else by
            value; of several objectives, in the first.
    """

    study: str
    objective: str
    direction: Literal["maximise", "minimise"]
    noise: float | None
    luckiest: str | None
    pareto: ParetoItem | None
    recommended: RecommendedPareto | None
    nearest: NearestItem | None
    proposals: list[BestItem]


class StudyDeletion(Document):
    """Result of the deletion of a study.

    Attributes:
        study: Its name.
        proposals: Number of deleted proposals.
        evaluations: Number of deleted results.
        running: Number of the deleted proposals that were in training.
        repeated: Number of results of other studies that repeat one of these; they are kept.
        learners: Studies that started warm from it.
    """

    study: str
    proposals: int
    evaluations: int
    running: int
    repeated: int
    learners: list[str]
