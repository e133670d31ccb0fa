"""Objectives and constraints of a search: options that name them, completed by a stored study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from archive.constraints import parse as parse_constraint
from archive.errors import UnknownNameError, UsageError
from archive.objectives import direction_of, parse
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName

if TYPE_CHECKING:
    from archive.constraints import Constraint
    from archive.searches.request import SearchOptions
    from archive.store.records import Direction, Objective, Study
    from archive.trainer.tasks.registry import Task
    from archive.trainer.tasks.tabular import TabularTask


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
    declared: dict[str, Direction] = dict.fromkeys(computed, "minimise")
    declared[task.objective] = task.direction
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

_OF_GENERATION = ("latency_prefill_ms", "latency_decode_ms", "cache_bytes", "tokens", "train_flops")
"""Costs of networks of language that trainers measure."""


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

    built = known_costs.of_built(task)
    candidates = (*_COSTS, *_OF_GENERATION) if task.kind == "language" else _COSTS
    measured = [cost for cost in candidates if cost not in built]
    return [*built], [*metrics, *measured], True
