"""The outcome of a search, and the reason of its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archive.searches.results import (
    ConstraintItem,
    EstimateItem,
    NearestItem,
    ObjectiveItem,
    ParetoItem,
    best_view,
    best_views,
    constraint_items,
    estimate_item,
    nearest_item,
    objective_items,
    pareto_item,
)
from archive.values import counted

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.agents.initial_design import Gain
    from archive.api import Archive
    from archive.store.records import State
    from archive.store.snapshots import ProposalView, Snapshot
    from archive.trainer.tasks.registry import Task
    from archive.trainer.tasks.tabular import TabularTask


@dataclass(frozen=True)
class IncumbentItem:
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


@dataclass(frozen=True)
class RecommendedItem:
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


@dataclass(frozen=True)
class GainItem:
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

    @classmethod
    def of(cls, gain: Gain) -> GainItem:
        """Return the item of a gain, in the task's own unit."""
        return cls(gain.initial, gain.initial_best, gain.best, gain.gain, gain.found_at)


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    Attributes:
        study: Name of the study.
        agent: Name of the agent.
        task: Name of the task.
        protocol: How the task is trained and measured.
        space: Name of the space.
        objective: Name of the metric that is optimised.
        evaluations: Proposals with a result.
        pruned: How many of them paused at a rung.
        answered: How many of them were answered from the archive.
        failed: Proposals without a result.
        budget: Most evaluations; 1000000 or more stands for no limit.
        exhausted: Whether there is nothing left to evaluate.
        warm_started_from: Names of the sources.
        server: Where the archive is.
        best: The architecture of the best single value that meets the constraints; null where no
            evaluation succeeded or none meets them (exit code 3).
        recommended: The architecture to use where another training could give another value, by
            posterior mean; null where results have no noise: `best` is then the recommendation.
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


def count_evaluated(counts: Mapping[State, int]) -> int:
    """Return the number of proposals with a result, final or of the rung at which they pause."""
    return sum(count for state, count in counts.items() if state.evaluated)


def place(archive: Archive) -> str:
    """Return the archive's place in words, without the embedded server's changing port."""
    settings = archive.connection.settings
    return (
        f"the embedded archive in {settings.home}"
        if settings.embedded
        else archive.connection.address
    )


def nothing_left(
    archive: Archive, last: Snapshot, agent: Agent, *, searched: bool = True
) -> str | None:
    """Return why a larger budget would find nothing more; None where it may.

    Args:
        archive: The archive of the study.
        last: The last snapshot of the study.
        agent: The search agent.
        searched: Whether `last` is the end of the agent's search.
    """
    from archive.agents import loop
    from archive.store.records import State

    study = last.study
    evaluations = count_evaluated(last.counts)
    # A search that leaves a part of its budget has ended because the agent had no proposal.
    short = searched and evaluations < study.budget
    if not short and "table" not in study.space_config:
        # Listing a large space would be wasteful; the networks of a table are already listed.
        return None

    so_far = f"{evaluations} of {counted(study.budget, 'evaluation')}"
    observed = loop.history_of(archive, study).known
    members = agent.space.members()
    if members is not None and all(member.functional_key in observed for member in members):
        n = len(members)
        failed = last.counts[State.FAILED]
        # Networks of a warm start are known, but not evaluations of this study.
        rest = (
            ""
            if evaluations + failed >= n
            else (", the others are of the studies that it started warm from")
        )
        every = (
            "the only network of the space is" if n == 1 else (f"all {n} networks of the space are")
        )
        return f"{every} evaluated{' or failed' if failed else ''}: {so_far}{rest}"

    return f"the agent {agent.kind} has no further proposals: {so_far}" if short else None


def outcome(
    archive: Archive, last: Snapshot, agent: str, task: Task | TabularTask, exhausted: str | None
) -> SearchResult:
    """Return the result of a search.

    Args:
        archive: The archive of the study.
        last: The last snapshot of the study.
        agent: Name of the search agent.
        task: Task of the study.
        exhausted: Why nothing is left to evaluate; None where something may be.
    """
    from archive.agents.initial_design import gain
    from archive.store.records import State

    study = last.study
    best = last.incumbent
    gained = gain(archive, last)
    pareto = pareto_item(last)
    return SearchResult(
        study=study.name,
        agent=agent,
        task=study.task,
        protocol=study.protocol,
        space=study.space,
        objective=study.objective,
        evaluations=count_evaluated(last.counts),
        pruned=last.counts[State.PRUNED],
        answered=archive.answers.count(study.name),
        failed=last.counts[State.FAILED],
        budget=study.budget,
        exhausted=exhausted is not None,
        warm_started_from=list(archive.studies.sources(study.name)),
        server=place(archive),
        best=None if best is None else _find_incumbent(archive, last, best, task),
        recommended=None if best is None or pareto is not None else _recommend(archive, last),
        gain=None if gained is None else GainItem.of(gained),
        objectives=objective_items(study),
        pareto=pareto,
        constraints=constraint_items(study),
        nearest=nearest_item(last),
    )


def _find_incumbent(
    archive: Archive, last: Snapshot, best: ProposalView, task: Task | TabularTask
) -> IncumbentItem:
    """Return a study's best network, with its test value and the address of its weights."""
    assert best.value is not None, "an incumbent has a value"
    weights = archive.weights.of_evaluation(best.id)
    return IncumbentItem(
        architecture=best.architecture_key,
        proposal=best.id,
        value=best.value,
        held_out=best.metrics.get(_estimate(last.study.objective, task)),
        weights=None if weights is None else weights.uri,
        unsaved=None if weights is not None else archive.weights.unsaved(best.id),
    )


def _estimate(objective: str, task: Task | TabularTask) -> str:
    """Return the name of the test metric that belongs to an objective on validation data."""
    validated = objective == task.objective or not objective.startswith("valid_")
    return f"test_{task.metric}" if validated else f"test_{objective.removeprefix('valid_')}"


def _recommend(archive: Archive, last: Snapshot) -> RecommendedItem | None:
    """Return the recommended network of a study with noisy results, with its best proposal."""
    from archive.agents.recommendation import of_study

    ranking = of_study(archive, last.study)
    if ranking is None:
        return None

    first = ranking.ranked[0]
    view = best_view(best_views(last), first)
    if view is None or view.value is None:
        return None

    return RecommendedItem(
        view.architecture_key, view.id, view.value, estimate_item(last.study, first)
    )
