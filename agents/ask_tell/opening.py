"""The opening of a study for ask and tell: `agents.study(archive, name, space)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from archive.constraints import NO_COSTS, KnownCosts
from archive.constraints import parse as parse_constraint
from archive.errors import StudyConflictError, UsageError
from archive.objectives import direction_of, parse
from archive.store.protocol_names import check_owner

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from archive.agents.ask_tell.study import AskTellStudy
    from archive.api import Archive
    from archive.parameters.parameter_space import ParameterSpace
    from archive.spaces.base import Space
    from archive.store.records import Direction, Study


def study(
    archive: Archive,
    name: str,
    space: Space | ParameterSpace | str | PathLike[str] | None = None,
    *,
    task: str | None = None,
    protocol: str | None = None,
    objective: str | Sequence[str] | None = None,
    direction: Direction | None = None,
    constraints: str | Sequence[str] | None = None,
    budget: int | None = None,
    seed: int | None = None,
    warm_start: str | Sequence[str] = (),
    costs: KnownCosts = NO_COSTS,
) -> AskTellStudy:
    """Open a study to ask, tell and enqueue, for a training loop of the caller.

    Args:
        archive: The archive of the study.
        name: Its name; an existing study is opened.
        space: The space to search: parameters (`archive.space.Space`), a file of them
            (`space.toml`, `space.py:NAME`), a space or its name. Required for a new study.
        task: The task to learn [the name of the study].
        protocol: The protocol of training and measuring [TASK/own]. Only evaluations of one
            protocol are comparable: the name of a task's own protocol claims that its trainer would
            find the same values.
        objective: Name of the value that is told [value], or several objectives; each as
            `NAME:minimise` or `NAME:maximise`, the direction left out where the name declares one
            (`archive.store.objective_names`).
        direction: Whether larger or smaller values of the only objective are better [the direction
            of its name, else maximise].
        constraints: A bound on a metric that is told or on a cost, or several, `NAME<=NUMBER` with
            `<=`, `<`, `>=` or `>` [none].
        budget: Most evaluations [no limit].
        seed: Seed of the agents [0].
        warm_start: A study to start warm from, or several, or `"all"` eligible ones: see
            `archive.agents.transfer.eligibility`. `"zoo"` stands for published networks.
        costs: Costs that need no training, by the name of the objective or the constraint, as
            functions of several networks. They are computed for every candidate, and no network is
            proposed that does not meet a constraint on one. Agents learn a quantity without such a
            function from the results. The functions are not stored: pass them each time. The functions
            of a trainers' task are `archive.trainer.tasks.known_costs.of_task(task, protocol)`.

    Raises:
        StudyConflictError: It exists with other values than those given.
        UnknownNameError: There is no such space or source.
        UsageError: It is new and no space is given, the protocol is of another task or names a
            recipe for other tasks or spaces, the budget is less than 1, an objective or a
            constraint is invalid, or `costs` has a name that differs from one of them by a slip.
        InfeasibleError: No network meets the constraints on known costs.
    """
    from archive import spaces
    from archive.agents.ask_tell.study import AskTellStudy
    from archive.agents.study_setup import open_study
    from archive.spaces import stored_spaces
    from archive.spaces.constrained import constrain
    from archive.store.records import Study
    from archive.store.studies.creation import has_parameters
    from archive.store.studies.studies import UNBOUNDED

    searched = None if space is None else spaces.of(space)
    home = archive.connection.settings.home
    if searched is not None:
        stored_spaces.name_table(searched, home)

    stored = archive.studies.get(name) if name in archive.studies.names() else None
    new = stored is None
    if stored is not None:
        stored_space = stored_spaces.of_record(stored.space, stored.space_config, home)
        if searched is not None and searched != stored_space:
            if searched.name != stored.space or not has_parameters(stored, searched.config):
                raise StudyConflictError(
                    f"study {name!r} exists with the space {stored_space!r}, got {searched!r}"
                )

            stored = replace(stored, space_config=searched.config)
            stored_space = searched
    elif searched is None:
        raise UsageError(f"there is no study {name!r} yet: a new one needs a space")
    else:
        stored_space = searched
        own_task = task or name
        stored = Study(
            name,
            own_task,
            f"{own_task}/own",
            stored_space.name,
            "value",
            space_config=stored_space.config,
        )
        budget = UNBOUNDED if budget is None else budget

    texts = [constraints] if isinstance(constraints, str) else constraints
    limits = None if texts is None else tuple(map(parse_constraint, texts))
    changes: dict[str, Any] = {"task": task, "protocol": protocol, "constraints": limits}
    changes |= _objectives(objective, direction, new=new)
    requested = replace(
        stored, **{field: value for field, value in changes.items() if value is not None}
    )
    if new or requested.protocol != stored.protocol:
        check_owner(requested.task, requested.protocol)

    if new and requested.protocol != f"{requested.task}/own":
        _check_trainable(requested, home)

    _check_costs(requested, costs)
    feasible = constrain(stored_space, requested.constraints, costs)
    if feasible is not stored_space:
        # The search for a network that meets the constraints fails before anything is stored.
        feasible.initial_pool()

    sources = [warm_start] if isinstance(warm_start, str) and warm_start != "all" else warm_start
    open_study(archive, requested, budget=budget, seed=seed, sources=sources, space=stored_space)
    return AskTellStudy(archive, name, feasible, costs)


def _check_trainable(study: Study, home: Path) -> None:
    """Refuse a new study whose task, space and recipe do not fit, where trainers know them here."""
    from archive.trainer.recipes.registry import RecipeAccess
    from archive.trainer.recipes.suitability import check_known

    check_known(study, RecipeAccess(home), None)


SLIP = 0.85
"""Least similarity of two names (`difflib`) of which one is taken for a misspelt other one."""


def _check_costs(study: Study, costs: KnownCosts) -> None:
    """Check that no known cost has a misspelt name; unused costs are allowed.

    Raises:
        UsageError: The study does not have the name of a cost, but a similar one without a
            function.
    """
    used = dict.fromkeys(
        [
            *(objective.name for objective in study.objectives),
            *(constraint.name for constraint in study.constraints),
        ]
    )
    for name in costs:
        if name not in used and get_close_matches(
            name, [quantity for quantity in used if quantity not in costs], cutoff=SLIP
        ):
            raise UsageError(
                f"costs has a function of {name!r}, which is neither an objective nor a "
                "constrained quantity of the "
                f"study: it has {', '.join(used)}"
            )


def _objectives(
    objective: str | Sequence[str] | None, direction: Direction | None, *, new: bool
) -> dict[str, Any]:
    """Return the fields of a study for its objectives; None for those that are left out."""
    if objective is None or isinstance(objective, str):
        return _only_objective(objective, direction, new=new)

    if direction is not None:
        raise UsageError(
            "the direction of one of several objectives is part of it: "
            "NAME:minimise or NAME:maximise"
        )

    if not objective:
        raise UsageError("a study needs an objective, got an empty list")

    first, *others = map(parse, objective)
    return {"objective": first.name, "direction": first.direction, "further": tuple(others)}


def _only_objective(text: str | None, direction: Direction | None, *, new: bool) -> dict[str, Any]:
    if text is None:
        return {"direction": direction}

    if ":" not in text:
        # An existing study keeps the direction that it was opened with.
        return {
            "objective": text,
            "direction": direction or (direction_of(text) if new else None),
            "further": (),
        }

    only = parse(text)
    if direction not in (None, only.direction):
        raise UsageError(
            f"the objective {text} has another direction than direction={direction!r}: leave "
            "one "
            "of them out"
        )

    return {"objective": only.name, "direction": only.direction, "further": ()}
