"""The request of a search: options that describe its study, completed by a stored study.

Objectives are written `NAME[:minimise|maximise]`, constraints `NAME<=NUMBER`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from archive.constraints import parse as parse_constraint
from archive.errors import UnknownNameError, UsageError
from archive.objectives import direction_of, parse
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName, check_word

if TYPE_CHECKING:
    from pathlib import Path

    from archive.agents.base import Agent
    from archive.agents.registry import ConfiguredAgent
    from archive.constraints import Constraint, KnownCosts
    from archive.parameters.parameter_space import ParameterSpace
    from archive.spaces.base import Space
    from archive.store.records import Direction, Objective, Study
    from archive.trainer.tasks.file_access import FileAccess
    from archive.trainer.tasks.registry import Task, TrainingProtocol
    from archive.trainer.tasks.tabular import TabularProtocol, TabularTask


AGENT = "nasbot"
TASK = "digits"
"""Agent and task of a search where neither the options nor a study name them."""


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search that describe its study; None for those left out.

    Each has the name of the option of `archive search`.

    Attributes:
        agent: Name of the agent, with its settings after a colon.
        task: Name of the task.
        protocol: Name of the training protocol.
        space: Name of the space, a file with parameters, or a space that the caller has made.
        study: Name of the study.
        recipe: Name of the recipe.
        objective: The first objective.
        direction: Direction of the first objective.
        rungs: Numbers of epochs, or one number of rungs, as text.
        reduction: One of this many trainings continues at each rung.
        objectives: Texts of all objectives, `METRIC[:minimise|maximise]`.
        constraints: Texts of all constraints, `METRIC<=NUMBER`.
    """

    agent: str | None = None
    task: str | None = None
    protocol: str | None = None
    space: Space | ParameterSpace | str | None = None
    study: str | None = None
    recipe: str | None = None
    objective: str | None = None
    direction: Direction | None = None
    rungs: str | None = None
    reduction: int | None = None
    objectives: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchRequest:
    """A search to run.

    Attributes:
        study: The study, as it would be stored if it were new.
        task: Its task.
        protocol: Its training protocol.
        agent: Its search agent, over the networks that meet the constraints on known costs.
        costs: Known costs of its networks, where objectives or constraints may need them.
    """

    study: Study
    task: Task | TabularTask
    protocol: TrainingProtocol | TabularProtocol
    agent: Agent
    costs: KnownCosts


def agent_of(study: Study | None) -> str:
    """Return the name of the agent that began a study; the default agent without a study."""
    agent = None if study is None else study.config.get("agent")
    return agent if isinstance(agent, str) else AGENT


def request_of(
    options: SearchOptions, stored: Study | None = None, access: FileAccess | None = None
) -> SearchRequest:
    """Complete the options of a search, and fetch the data that it needs.

    Without constraints, options that contradict the stored study pass: opening the study refuses
    them.

    Args:
        options: The options of the search.
        stored: The study that they name, where it exists: it supplies the options that were left
            out.
        access: Files that may be opened when the study names them, and not the user; None means
            any.

    Raises:
        UnknownNameError: There is no such agent, task, protocol, space, objective or quantity.
        SettingsError: The data of the task are missing and cannot be fetched, or the study's file
            may not be opened.
        UsageError: The options contradict each other, a setting of the agent is invalid, or the
            study's task cannot be searched.
        InfeasibleError: No network of the space meets the constraints on known costs.
        StudyConflictError: There are constraints, and options that contradict the stored study.
    """
    from archive.constraints import NO_COSTS
    from archive.store.records import Study
    from archive.store.studies.creation import check_same
    from archive.trainer.tasks import known_costs, registry

    agent = _agent(options, stored)
    task = _task(options.task, stored, access)
    # The protocol and the space of a study do not apply to another task.
    defaults = stored if stored is not None and stored.task == task.name else None
    options, further = resolve_objectives(options, task, defaults)
    home = None if access is None or access.record is None else access.record.parent
    space = _space(options.space, task, defaults, home)
    protocol = _protocol(options, task, space.name, defaults)
    if stored is None or stored.task == task.name:
        registry.prepare(task, protocol)

    objective, direction = _objective(options, task, protocol, defaults)
    constraints = resolve_constraints(options, task, defaults)
    costs = NO_COSTS
    if further or constraints:
        costs = _costs(space, home) or known_costs.of_task(task, protocol.name)

    study = Study(
        name=_name(agent.name, space, task, further, constraints)
        if options.study is None
        else options.study,
        task=task.name,
        protocol=protocol.name,
        space=space.name,
        objective=objective,
        direction=direction,
        config={
            "agent": agent.name,
            "protocol": protocol.as_dict(),
            **_rungs(options, defaults, task, protocol),
        },
        space_config=space.config,
        further=further,
        constraints=constraints,
    )
    if constraints and stored is not None:
        # Before networks that meet the constraints are looked for, which may take seconds.
        check_same(study, stored)

    feasible = _feasible(space, constraints, costs)
    return SearchRequest(study, task, protocol, agent.make(feasible), costs)


def _agent(options: SearchOptions, stored: Study | None) -> ConfiguredAgent:
    """Return an agent with its settings: of the options, of the study, or the default one."""
    from archive.agents import registry, study_setup

    several = stored is None and len(options.objectives) > 1
    return registry.configured(
        options.agent or (study_setup.DEFAULT_OF_SEVERAL if several else agent_of(stored))
    )


def _costs(space: Space, home: Path | None) -> KnownCosts:
    """Return the costs of the model of a space of parameters; none for another space."""
    from archive.spaces.parameters import Parameters
    from archive.trainer.recipes import model_process

    if not isinstance(space, Parameters):
        return {}

    return model_process.known_costs(space.parameters.model, home)


def _feasible(space: Space, constraints: tuple[Constraint, ...], costs: KnownCosts) -> Space:
    """Return the networks of a space that meet constraints on known costs; raises if none do."""
    if not constraints:
        return space

    from archive.spaces.constrained import constrain

    feasible = constrain(space, constraints, costs)
    if feasible is not space:
        feasible.initial_pool()

    return feasible


def _name(
    agent: str,
    space: Space,
    task: Task | TabularTask,
    further: tuple[Objective, ...],
    constraints: tuple[Constraint, ...],
) -> str:
    names = (
        *(constraint.name for constraint in further),
        *(constraint.label for constraint in constraints),
    )
    # Names of files and columns may have signs that no name of a study may.
    return (
        "-".join([agent, space.name, task.label, *names])
        .strip()
        .translate({ord(","): "-", ord("#"): "-"})
    )


def _task(name: str | None, stored: Study | None, access: FileAccess | None) -> Task | TabularTask:
    from archive.trainer.tasks import registry

    if name is not None or stored is None:
        return registry.get(TASK if name is None else name)

    try:
        return registry.get(stored.task) if access is None else registry.of_study(stored, access)
    except UnknownNameError:
        raise UsageError(
            f"the study {stored.name!r} has the task {stored.task!r}, which no trainer here knows: "
            "it belongs to an ask-and-tell study, or to a package that is not installed"
        ) from None


def _protocol(
    options: SearchOptions, task: Task | TabularTask, space: str, stored: Study | None
) -> TrainingProtocol | TabularProtocol:
    from archive.trainer.tasks.tabular import TabularTask

    name = options.protocol
    if name is None and stored is not None:
        # The task has lost the study's protocol when a user's file has changed: the default then
        # contradicts the study.
        with suppress(UnknownNameError):
            name = task.protocol(stored.protocol).name

    protocol = task.protocol(name, space)
    changes: dict[str, Any] = {}
    if options.recipe is not None:
        changes["recipe"] = check_word("recipe", options.recipe)

    if options.objective is not None:
        objective = check_word("metric", options.objective)
        changes["objective"] = None if objective == task.objective else objective

    variant = str(replace(ProtocolName.parse(protocol.name), **changes))
    if variant != protocol.name and isinstance(task, TabularTask):
        reason = f"it has no --recipe, and its --objective is {task.objective}"
        raise UsageError(f"a table answers the task {task.name!r}: {reason}")

    return task.protocol(variant)


def _objective(
    options: SearchOptions,
    task: Task | TabularTask,
    protocol: TrainingProtocol | TabularProtocol,
    stored: Study | None,
) -> tuple[str, Direction]:
    """Return the metric that a study optimises, and its direction."""
    objective = ProtocolName.parse(protocol.name).objective or task.objective
    if stored is not None and stored.objective == objective:
        return objective, options.direction or stored.direction

    if objective == task.objective:
        if options.direction not in (None, task.direction):
            raise UsageError(
                f"the task {task.name!r} has the direction {task.direction}, got "
                f"{options.direction}"
            )

        return objective, task.direction

    if options.direction is None:
        raise UsageError(f"--objective {objective} needs --direction maximise or minimise")

    return objective, options.direction


def _space(
    name: Space | ParameterSpace | str | None,
    task: Task | TabularTask,
    stored: Study | None,
    home: Path | None,
) -> Space:
    from archive import spaces
    from archive.parameters import files
    from archive.spaces import stored_spaces

    if name is None and stored is not None:
        stored_spaces.check_known(stored.space)
        name = stored.space

    if name is not None and (not isinstance(name, str) or files.is_file(name)):
        return spaces.of(name)

    space = task.search_space(name)
    if stored is None or space.name != stored.space or space.config == stored.space_config:
        return space

    # The limits of the space are the study's, which may differ from the task's.
    return stored_spaces.of_record(stored.space, stored.space_config, home)


def _rungs(
    options: SearchOptions,
    stored: Study | None,
    task: Task | TabularTask,
    protocol: TrainingProtocol | TabularProtocol,
) -> dict[str, Any]:
    """Return the entries that the rungs of a search add to the configuration of its study.

    Raises:
        UsageError: The rungs do not fit the protocol, or the task has no trainings to pause.
    """
    text = options.rungs
    reduction = options.reduction
    if stored is not None and (text is None) != (reduction is None):
        from archive.rungs import Rungs

        # One of the two options was left out: the study supplies it.
        rungs = Rungs.of(stored.config)
        if rungs is not None:
            text = ",".join(map(str, rungs.epochs)) if text is None else text
            reduction = rungs.reduction if reduction is None else reduction

    if text is None:
        if reduction is not None:
            raise UsageError(f"--reduction needs --rungs, got --reduction {reduction} alone")

        return {}

    from archive.rungs import REDUCTION, Rungs
    from archive.trainer.tasks.registry import TrainingProtocol

    if not isinstance(protocol, TrainingProtocol):
        raise UsageError(
            f"--rungs pauses trainings, but a table answers the task {task.name!r}, got {text}"
        )

    if protocol.inherited_epochs is not None:
        raise UsageError(
            f"--rungs needs trainings of one length, but those of {protocol.name} inherit "
            f"weights, got {text}"
        )

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--rungs takes numbers of epochs (2,6,18) or how many rungs (3), got {text!r}"
        ) from None

    factor = REDUCTION if reduction is None else reduction
    if len(numbers) == 1:
        return {"rungs": Rungs.geometric(protocol.epochs, numbers[0], factor).as_config()}

    return {"rungs": Rungs.below(protocol.epochs, numbers, factor).as_config()}


def resolve_objectives(
    options: SearchOptions, task: Task | TabularTask, stored: Study | None
) -> tuple[SearchOptions, tuple[Objective, ...]]:
    """Return the options with the first objective as the only one, and the further objectives.

    The first objective is the value of an evaluation, so that the first one that is learnt comes
    first.

    Args:
        options: The options of the search.
        task: The task of the search.
        stored: The study that the options name, where it exists with this task.

    Raises:
        UnknownNameError: The task has no such objective.
        UsageError: An objective or its direction is missing or invalid, or an option is for one
            objective only.
    """
    if len(options.objectives) < 2:
        further = () if stored is None or options.objectives else stored.further
        options = _single(options)
    else:
        first, *others = _several(options, task, stored)
        further = tuple(others)
        options = replace(options, objective=first.name, direction=first.direction)

    if further and (options.rungs is not None or options.reduction is not None):
        raise UsageError(
            "--rungs pauses trainings by one objective: leave it out in a search with several"
        )

    return options, further


def _single(options: SearchOptions) -> SearchOptions:
    """Return the options with the direction that the text or the name of the only objective has."""
    if not options.objectives:
        return options

    text = options.objectives[0]
    name, separator, _ = text.partition(":")
    if not separator:
        return replace(options, objective=name, direction=options.direction or direction_of(name))

    objective = parse(text)
    if options.direction not in (None, objective.direction):
        raise UsageError(
            f"--objective {text} has another direction than --direction {options.direction}"
        )

    return replace(options, objective=objective.name, direction=objective.direction)


def _several(
    options: SearchOptions, task: Task | TabularTask, stored: Study | None
) -> list[Objective]:
    """Return the objectives of the options, learnt ones first."""
    if options.direction is not None:
        raise UsageError(
            "--direction is for one objective: with several, write NAME:minimise or NAME:maximise"
        )

    computed, measured, complete = quantities(options, task, stored)
    declared: Mapping[str, Direction] = {task.objective: task.direction}
    # A recipe may report any metric: its name needs a direction, and no name to choose from.
    names = [*measured, *computed] if complete else []
    objectives = [parse(text, declared, names) for text in options.objectives]
    _check_names(task, "objective", [objective.name for objective in objectives], names)
    for objective in objectives:
        if objective.name == task.objective and objective.direction != task.direction:
            raise UsageError(
                f"the task {task.name!r} has the direction {task.direction}, got "
                f"{objective.direction}"
            )

    for objective in objectives:
        if objective.name not in (*computed, *_COSTS):
            return [objective, *(other for other in objectives if other is not objective)]

    raise UsageError(
        f"one objective must be of the training, such as {task.objective}: "
        f"all of {', '.join(objective.name for objective in objectives)} are costs of the network"
    )


def _check_names(
    task: Task | TabularTask, kind: str, requested: Sequence[str], names: Sequence[str]
) -> None:
    """Check that a task has the requested quantities; an empty list of names allows any.

    Raises:
        UnknownNameError: It has no such quantity.
    """
    for name in requested:
        if names and name not in names:
            raise UnknownNameError(kind, name, names, owner=f"the task {task.name}")


def resolve_constraints(
    options: SearchOptions, task: Task | TabularTask, stored: Study | None
) -> tuple[Constraint, ...]:
    """Return the constraints of the options; the constraints of the study where they name none.

    Args:
        options: The options of the search.
        task: The task of the search.
        stored: The study that the options name, where it exists with this task.

    Raises:
        UnknownNameError: The task has no such quantity.
        UsageError: A constraint is no comparison with a number.
    """
    if not options.constraints:
        return () if stored is None else stored.constraints

    constraints = tuple(parse_constraint(text) for text in options.constraints)
    computed, measured, complete = quantities(options, task, stored)
    names = [*measured, *computed] if complete else []
    _check_names(task, "quantity", [constraint.name for constraint in constraints], names)
    return constraints


_COSTS = ("params", "flops", "latency_ms", "peak_memory_bytes")
"""Costs that trainers measure and that can be objectives; a recipe may report others."""


def quantities(
    options: SearchOptions, task: Task | TabularTask, stored: Study | None
) -> tuple[list[str], list[str], bool]:
    """Return the names of known costs and of other metrics, and whether results have no others."""
    from archive.trainer.tasks import known_costs
    from archive.trainer.tasks.tabular import TabularTask

    name = options.protocol or (None if stored is None else stored.protocol)
    if isinstance(task, TabularTask):
        costs = known_costs.of_task(task, task.protocol(options.protocol).name)
        return [*costs], [task.objective], True

    recipe = options.recipe or (DEFAULT_RECIPE if name is None else ProtocolName.parse(name).recipe)
    metrics = dict.fromkeys([task.objective, "valid_loss", "train_loss", f"test_{task.metric}"])
    if recipe != DEFAULT_RECIPE:
        return [], [*metrics, *_COSTS], False

    measured = [cost for cost in _COSTS if cost not in known_costs.BUILT]
    return [*known_costs.BUILT], [*metrics, *measured], True
