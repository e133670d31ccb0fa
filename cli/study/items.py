"""Studies and proposals as items of the JSON output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from archive.searches.results import (
    ConstraintItem,
    ObjectiveItem,
    constraint_items,
    objective_items,
)
from archive.store.records import StateName
from archive.values import timestamp

if TYPE_CHECKING:
    from archive.rungs import Rungs
    from archive.store.records import State, Study
    from archive.store.snapshots import ProposalView


@dataclass(frozen=True)
class StateCounts:
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


@dataclass(frozen=True)
class RungsItem:
    """The rungs of a study.

    Attributes:
        epochs: At which trainings pause; the last is the whole training.
        reduction: One of so many is promoted from each rung.
    """

    epochs: list[int]
    reduction: int


@dataclass(frozen=True)
class StudyItem:
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
    space_config: Mapping[str, Any]
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


@dataclass(frozen=True)
class ProposalItem:
    """A proposal with what became of it.

    Attributes:
        proposal: Its id.
        number: Its number in the study.
        state: Its state; the database has the same words in capitals.
        cancelled: Whether it was cancelled, rather than failed or pruned.
        architecture: Key of the architecture.
        configuration: Values of named decisions and of hyperparameters, by name, in the order of
            the space; empty where there are none.
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
        metrics: Metrics of the result, or of the last epoch before there is one.
        reason: Why it failed, or why it is tried again.
        started: When it was last claimed.
        finished: When it ended.
    """

    proposal: str
    number: int
    state: StateName
    cancelled: bool
    architecture: str
    configuration: Mapping[str, Any]
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
    metrics: Mapping[str, float | None]
    reason: str | None
    started: str | None
    finished: str | None


def study_item(
    study: Study, counts: Mapping[State, int], best: float | None, agents: Sequence[str] = ()
) -> StudyItem:
    """Return a study with its progress.

    Args:
        study: The study.
        counts: Proposals by state; a state without any may be left out.
        best: Best value so far.
        agents: Names of its agents, in the order of their first proposals.
    """
    rungs = rungs_of(study)
    agent = study.config.get("agent")
    if not isinstance(agent, str):
        agent = agents[0] if agents else None

    return StudyItem(
        study=study.name,
        task=study.task,
        protocol=study.protocol,
        space=study.space,
        space_config=study.space_config,
        objective=study.objective,
        direction=study.direction,
        objectives=objective_items(study),
        constraints=constraint_items(study),
        budget=study.budget,
        seed=study.seed,
        agent=agent,
        agents=list(agents),
        rungs=None if rungs is None else RungsItem(list(rungs.epochs), rungs.reduction),
        created=timestamp(study.created),
        counts=_state_counts(counts),
        best=best,
    )


def proposal_item(study: Study, view: ProposalView) -> ProposalItem:
    """Return a proposal of a study with what became of it."""
    return ProposalItem(
        proposal=view.id,
        number=view.number,
        state=view.state.label,
        cancelled=view.cancelled,
        architecture=view.architecture_key,
        configuration=view.configuration,
        agent=view.agent,
        acquisition=view.acquisition,
        mean=view.mean,
        std=view.std,
        rung=None if rungs_of(study) is None else view.rung + 1,
        epochs=view.epochs,
        value=view.value,
        seconds=view.seconds,
        attempts=view.attempts,
        worker=view.worker,
        metrics=view.metrics,
        reason=view.reason,
        started=timestamp(view.started),
        finished=timestamp(view.finished),
    )


def rungs_of(study: Study) -> Rungs | None:
    """Return the rungs of a study; a study without any loads no code of theirs."""
    if study.config.get("rungs") is None:
        return None

    from archive.rungs import Rungs

    return Rungs.of(study.config)


def _state_counts(counts: Mapping[State, int]) -> StateCounts:
    from archive.store.records import State

    return StateCounts(
        waiting=counts.get(State.WAITING, 0),
        running=counts.get(State.RUNNING, 0),
        complete=counts.get(State.COMPLETE, 0),
        pruned=counts.get(State.PRUNED, 0),
        failed=counts.get(State.FAILED, 0),
    )
