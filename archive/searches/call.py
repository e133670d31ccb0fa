"""`archive.search`: a search as one call of the library, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from archive.errors import UsageError
from archive.searches.events import Listener, ignore
from archive.searches.request import SearchOptions
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
from archive.searches.running import RunOptions, Search
from archive.searches.trainers import LIMIT_OPTIONS
from archive.values import counted

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.agents.initial_design import Gain
    from archive.api import Archive
    from archive.parameters.parameter_space import ParameterSpace
    from archive.settings import Settings
    from archive.spaces.base import Space
    from archive.store.records import Direction, State, Study
    from archive.store.snapshots import ProposalView, Snapshot
    from archive.trainer.tasks.registry import Task
    from archive.trainer.tasks.tabular import TabularTask


def search(
    agent: str | None = None,
    task: str | None = None,
    space: Space | ParameterSpace | str | None = None,
    *,
    parameters: ParameterSpace | str | None = None,
    study: str | None = None,
    protocol: str | None = None,
    recipe: str | None = None,
    objectives: str | Sequence[str] = (),
    constraints: str | Sequence[str] = (),
    fix: Mapping[str, Any] = MappingProxyType({}),
    only: str | Sequence[str] = (),
    direction: Direction | None = None,
    budget: int | None = None,
    seed: int | None = None,
    warm_start: Sequence[str] | Literal["all"] = (),
    batch: int | None = None,
    trainers: int = 1,
    on: str = "local",
    device: str | None = None,
    devices_per_trial: int = 1,
    stall_seconds: float | None = 1800.0,
    trial_seconds: float | None = None,
    scratch_bytes: int | None = 20_000_000_000,
    memory_bytes: int | None = None,
    observe: str | Sequence[str] = (),
    proxies: int | None = None,
    rungs: str | int | Sequence[int] | None = None,
    reduction: int | None = None,
    retrain: bool = False,
    stop_when: str | None = None,
    archive: Archive | None = None,
    settings: Settings | None = None,
    progress: Listener = ignore,
    archive_command: str = "archive",
) -> SearchResult:
    """Search for architectures: an agent proposes, trainers train, the archive stores every result.

    The same call again resumes the study, and so does `study=NAME` alone. Arguments that are left
    out take the study's values. Ctrl-C ends the search when the trainers have returned their
    unfinished proposals.

    Args:
        agent: Search agent, with its settings after a colon: `tw:preset=paper`. The default is the
            study's, else `nasbot`; with several objectives or `parameters` it is `portfolio`.
        task: Task: a name, `csv:PATH#TARGET`, `npz:PATH` or `table:PATH#COLUMN`; the study's, else
            `digits`.
        space: Search space: a name, parameters (`archive.space.Space`), or a file of them,
            `"space.toml"`; the study's, else the task's first.
        parameters: Parameters that are searched beside the networks of the space
            (`archive.space.Space`), or a file of them, `"knobs.toml"`.
        study: Name of the study; `AGENT-SPACE-TASK` by default.
        protocol: Training protocol of the task; the study's, else the task's first.
        recipe: Recipe that trains the networks; the study's, else `default`.
        objectives: Metrics to optimise, `METRIC[:minimise|maximise]`; the study's, else the task's.
        constraints: Bounds on metrics and costs, `"params<=0.3M"`.
        fix: Values of parameters that are not searched: `{"width": 64}`.
        only: Names of the only parameters that are searched. The others have the values of the
            study's best configuration, or without one their defaults.
        direction: Direction of the only objective, where its name does not tell.
        budget: Total number of evaluations, also of earlier calls; the study's, else 20.
        seed: Random seed; the study's, else 0.
        warm_start: Studies to start warm from, or `"all"`; `"zoo"` for published networks.
        batch: Largest number of pending proposals; one for each trainer by default.
        trainers: Number of trainers to start, which end with the search. With 0, others serve the
            study.
        on: Engine that runs the trainers, with its options: `"slurm:partition=gpu"`.
        device: Device of the trainers: `"cpu"`, `"cuda:1"`; they choose by default.
        devices_per_trial: Number of devices of each trial, with one process of its recipe on each;
            on a CPU, of processes.
        stall_seconds: A trial that has reported no progress for this long ends; None for no limit.
        trial_seconds: A trial that takes longer ends, and its proposal fails.
        scratch_bytes: A trial with larger temporary files ends, and its proposal fails.
        memory_bytes: A trial with processes of more memory ends, and its proposal fails.
        observe: Observers of the trials: `"tensorboard"`, `"mlflow:experiment=mine"`.
        proxies: Number of random networks of which the trainers measure zero-cost proxies first.
        rungs: Epochs at which trainings pause, or a number of rungs: only the best at each rung
            continue.
        reduction: At each rung, one of so many trainings continues; 3 by default.
        retrain: Whether networks are trained again that another study has evaluated.
        stop_when: Rule that ends the search before its budget is spent: `"gain<0.001"` or
            `"gain<noise"`, of the gain that further evaluations would bring
            (`archive.searches.prospects`).
        archive: An open archive; it stays open. By default one is opened, and closed at the end.
        settings: Settings of the archive to open; from `config.toml` and the environment by
            default.
        progress: Receives the events of `archive.searches.events` while the search runs.
        archive_command: How messages call the command line.

    Returns:
        The outcome: the best network, the gain, the Pareto set.

    Raises:
        UnknownNameError: There is no such agent, task, protocol, space, recipe, metric or study.
        UsageError: Arguments contradict each other, or a value cannot be used.
        StudyConflictError: An argument contradicts the study of this name.
        SettingsError: Data, a package or a device is missing, or trainers cannot reach the archive.
        InfeasibleError: No network of the space meets the constraints.
        SearchError: Proposals keep failing, or the trainings do not report what the search needs.
        StoreError: The database does not answer within the patience.
        KeyboardInterrupt: Ctrl-C or SIGTERM.
    """
    if archive is not None and settings is not None:
        raise UsageError("a search takes an open archive or settings, not both")

    options = SearchOptions(
        agent=agent,
        task=task,
        protocol=protocol,
        space=space,
        parameters=parameters,
        study=study,
        recipe=recipe,
        direction=direction,
        rungs=_rungs_text(rungs),
        reduction=reduction,
        objectives=_texts(objectives),
        constraints=_texts(constraints),
        fix=dict(fix),
        only=_texts(only),
    )
    limits = (stall_seconds, trial_seconds, scratch_bytes, memory_bytes)
    run = RunOptions(
        budget=budget,
        seed=seed,
        sources=warm_start if warm_start == "all" else _texts(warm_start),
        batch=batch,
        trainers=trainers,
        engine=on,
        device=device,
        devices_per_trial=devices_per_trial,
        limits=dict(zip(LIMIT_OPTIONS, limits, strict=True)),
        observe=_texts(observe),
        proxies=proxies,
        retrain=retrain,
        archive_command=archive_command,
        stop_when=stop_when,
    )
    return Search(options, run, progress).result(archive, settings)


def _texts(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return one text or several as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value)


def _rungs_text(rungs: str | int | Sequence[int] | None) -> str | None:
    """Return rungs in the form of the option `--rungs`."""
    if rungs is None or isinstance(rungs, str):
        return rungs

    if isinstance(rungs, int):
        return str(rungs)

    return ",".join(str(epochs) for epochs in rungs)


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
        configuration: Values of named decisions and of hyperparameters, by name.
        error: The objective in the target's own unit, by the name of its metric; empty without one.
    """

    architecture: str
    proposal: str
    value: float
    held_out: float | None
    weights: str | None
    unsaved: str | None
    configuration: Mapping[str, Any]
    error: Mapping[str, float]


@dataclass(frozen=True)
class RecommendedItem:
    """The architecture with the best estimate of its noise-free value.

    Attributes:
        architecture: Its key.
        proposal: Id of the proposal with its best value.
        value: This value.
        expected: The estimate.
        configuration: Values of named decisions and of hyperparameters, by name.
    """

    architecture: str
    proposal: str
    value: float
    expected: EstimateItem
    configuration: Mapping[str, Any]


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
        stopped: Why the search ended by its rule before its budget was spent; null where it did not.
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
    stopped: str | None
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
    archive: Archive,
    last: Snapshot,
    agent: str,
    task: Task | TabularTask,
    exhausted: str | None,
    stopped: str | None = None,
) -> SearchResult:
    """Return the result of a search.

    Args:
        archive: The archive of the study.
        last: The last snapshot of the study.
        agent: Name of the search agent.
        task: Task of the study.
        exhausted: Why nothing is left to evaluate; None where something may be.
        stopped: Why the search ended by its rule; None where it did not.
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
        stopped=stopped,
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
        configuration=best.configuration,
        proposal=best.id,
        value=best.value,
        held_out=best.metrics.get(_estimate(last.study.objective, task)),
        weights=None if weights is None else weights.uri,
        unsaved=None if weights is not None else archive.weights.unsaved(best.id),
        error=_own_unit(last.study, best),
    )


def _own_unit(study: Study, best: ProposalView) -> dict[str, float]:
    from archive.store.metric_names import own_unit_metric

    name = own_unit_metric(study)
    return {name: best.metrics[name]} if name is not None and name in best.metrics else {}


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
        view.architecture_key,
        view.id,
        view.value,
        estimate_item(last.study, first),
        view.configuration,
    )
