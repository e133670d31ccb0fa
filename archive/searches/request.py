"""The request of a search: options that describe its study, completed by a stored study.

Objectives are written `NAME[:minimise|maximise]`, constraints `NAME<=NUMBER`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive.errors import UnknownNameError, UsageError
from archive.searches.models import process_of
from archive.searches.quantities import resolve_constraints, resolve_objectives
from archive.store.protocol_names import ProtocolName, check_word

if TYPE_CHECKING:
    from pathlib import Path

    from archive.agents.base import Agent
    from archive.agents.registry import ConfiguredAgent
    from archive.constraints import Constraint, KnownCosts
    from archive.parameters.parameter_space import ParameterSpace
    from archive.spaces.base import Space
    from archive.store.records import Direction, Objective, Study
    from archive.store.studies.builds import ConfigurationBuilder
    from archive.trainer.tasks.file_access import FileAccess
    from archive.trainer.tasks.registry import Task, TrainingProtocol
    from archive.trainer.tasks.tabular import TabularProtocol, TabularTask


TASK = "digits"
"""Task of a search where neither the options nor a study name it."""


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
        parameters: Parameters beside the networks of the space, or a file of them.
        fix: Values of parameters that are not searched, by name.
        only: Names of the parameters that are searched; empty for all.
    """

    agent: str | None = None
    task: str | None = None
    protocol: str | None = None
    space: Space | ParameterSpace | str | None = None
    parameters: ParameterSpace | str | None = None
    study: str | None = None
    recipe: str | None = None
    objective: str | None = None
    direction: Direction | None = None
    rungs: str | None = None
    reduction: int | None = None
    objectives: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    fix: Mapping[str, Any] = field(default_factory=dict)
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class SearchRequest:
    """A search to run.

    Attributes:
        study: The study, as it would be stored if it were new.
        task: Its task.
        protocol: Its training protocol.
        agent: Its search agent, over the networks that meet the constraints on known costs.
        costs: Known costs of its networks, where objectives or constraints may need them.
        fixed: Values by name of the parameters that the search does not vary.
        fixed_at: Where these values come from, in words.
        builder: Builds the networks of its configurations, as the file of its space names their
            model; None where it names none.
    """

    study: Study
    task: Task | TabularTask
    protocol: TrainingProtocol | TabularProtocol
    agent: Agent
    costs: KnownCosts
    fixed: Mapping[str, Any]
    fixed_at: str = "as given"
    builder: ConfigurationBuilder | None = None


def request_of(
    options: SearchOptions,
    stored: Study | None = None,
    access: FileAccess | None = None,
    base: Mapping[str, Any] = MappingProxyType({}),
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
        base: Values by name of the parameters that `only` leaves out.

    Raises:
        UnknownNameError: There is no such agent, task, protocol, space, objective or quantity.
        SettingsError: The data of the task are missing and cannot be fetched, or the study's file
            may not be opened.
        UsageError: The options contradict each other, a setting of the agent is invalid, or the
            study's task cannot be searched.
        InfeasibleError: No network of the space meets the constraints on known costs.
        StudyConflictError: There are constraints, and options that contradict the stored study.
    """
    from archive.agents import registry as agents
    from archive.constraints import NO_COSTS
    from archive.spaces.parameters import part_of
    from archive.spaces.stored_spaces import fixed_values
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
    if agent is None:
        several = len(options.objectives) > 1 or options.parameters is not None
        agent = agents.configured(agents.default_agent(space.name, several=several))

    if options.parameters is not None:
        space = _put_beside(space, options.parameters)

    protocol = _protocol(options, task, space.name, defaults)
    _check_trained(space, task, protocol)
    part = part_of(space, options.fix, options.only, base) if options.fix or options.only else space
    if stored is None or stored.task == task.name:
        registry.prepare(task, protocol)

    objective, direction = _objective(options, task, protocol, defaults)
    constraints = resolve_constraints(options, task, defaults)
    process = process_of(space, home)
    costs = NO_COSTS
    if further or constraints:
        costs = {} if process is None else process.known_costs()
        costs = costs or known_costs.of_task(task, protocol.name)

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

    feasible = _feasible(part, constraints, costs)
    fixed = fixed_values(part)
    return SearchRequest(study, task, protocol, agent.make(feasible), costs, fixed, builder=process)


def _agent(options: SearchOptions, stored: Study | None) -> ConfiguredAgent | None:
    """Return the agent of the options or of the study, with its settings; None for the default."""
    from archive.agents import registry, study_setup

    if options.agent is not None:
        return registry.configured(options.agent)

    return None if stored is None else registry.configured(study_setup.agent_of(stored))


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
    from archive.store.studies.creation import PARAMETERS

    if name is None and stored is not None:
        if stored.space == PARAMETERS:
            return stored_spaces.of_record(stored.space, stored.space_config, home)

        stored_spaces.check_known(stored.space)
        name = stored.space

    if name is not None and (not isinstance(name, str) or files.is_file(name)):
        return spaces.of(name)

    space = task.search_space(name)
    if stored is None or space.name != stored.space or space.config == stored.space_config:
        return space

    # The limits of the space are the study's, which may differ from the task's.
    return stored_spaces.of_record(stored.space, stored.space_config, home)


def _put_beside(space: Space, parameters: ParameterSpace | str) -> Space:
    """Return the networks of a space with parameters beside them, in place of others."""
    from archive import spaces
    from archive.spaces.joint import JointSpace

    networks = space.networks if isinstance(space, JointSpace) else space
    return spaces.beside(networks, parameters)


def _check_trained(
    space: Space, task: Task | TabularTask, protocol: TrainingProtocol | TabularProtocol
) -> None:
    """Refuse parameters that nothing trains: before a study is made and trainers start.

    Raises:
        UsageError: The built-in training or a table would have to train them.
    """
    from archive.spaces.joint import JointSpace
    from archive.spaces.parameters import Parameters
    from archive.store.studies.creation import PARAMETERS
    from archive.trainer.recipes.suitability import check_trained
    from archive.trainer.tasks.tabular import TabularTask

    if isinstance(space, JointSpace):
        _check_read(space.parameters, task, protocol)
        return

    if not isinstance(space, Parameters) or space.parameters.model is not None:
        return

    if isinstance(task, TabularTask):
        if PARAMETERS not in task.spaces:
            raise UsageError(
                f"a table of networks of the space {task.spaces[0]} answers the task "
                f"{task.name!r}, and no parameters: leave out --space"
            )

        return

    check_trained(ProtocolName.parse(protocol.name).recipe, model=False)


def _check_read(
    parameters: ParameterSpace,
    task: Task | TabularTask,
    protocol: TrainingProtocol | TabularProtocol,
) -> None:
    """Refuse parameters beside networks that no training reads.

    Raises:
        UsageError: A table answers the task, or the built-in training does not read a parameter.
    """
    from archive.store.protocol_names import DEFAULT_RECIPE
    from archive.trainer.fit.hyperparameters import check_parameters
    from archive.trainer.tasks.tabular import TabularTask

    if isinstance(task, TabularTask):
        raise UsageError(
            f"the table of {task.name} was trained in one way: parameters beside its networks "
            f"({', '.join(parameters.names)}) are read by nothing, leave out --parameters"
        )

    recipe = ProtocolName.parse(protocol.name).recipe or DEFAULT_RECIPE
    if recipe == DEFAULT_RECIPE:
        check_parameters(parameters)


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
