"""Opening a study, to search or to ask and tell: a new one, or the one of that name, with its budget and sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from archive.errors import StudyConflictError, UsageError
from archive.queue.successive_halving import Rungs

if TYPE_CHECKING:
    from archive.agents.ask_tell.study import Study as AskAndTell
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.spaces.base import Space
    from archive.store.records import Direction, Study

BUDGET = 20
"""Evaluations of a new study when the user names no budget."""


def open_study(
    archive: Archive,
    asked: Study,
    *,
    budget: int | None = None,
    seed: int | None = None,
    sources: Sequence[str] | Literal["all"] = (),
    agent: Agent | None = None,
) -> Study:
    """Return the study as it is stored, made if there is none of its name.

    Args:
        archive: Where it is kept.
        asked: Name, task, protocol, space, objective and direction; the rest is taken for a new study.
        budget: Total number of evaluations, of which a study that exists is left those that it has; None keeps its own.
        seed: Seed; None keeps that of a study that exists.
        sources: Studies to start warm from, or `"all"` that are of use: see `archive.agents.transfer.eligibility`.
        agent: Who is to search, if that is known: one that cannot make use of a source is told.

    Raises:
        StudyConflictError: It exists with another task, protocol, space, objective, direction, seed, or other rungs
            than are asked for; one that asks for none takes those that there are.
        UnknownNameError: A source is no study. Nothing is stored then.
        UsageError: The budget is below 1, or a source is the study itself or of no use.
    """
    if budget is not None and budget < 1:
        raise UsageError(f"--budget must be at least 1 evaluation, got {budget}")
    if sources != "all" and asked.name in sources:
        # Whether it exists or not: looked up, one that does not would be taken for another name mistyped.
        raise UsageError(f"the study {asked.name!r} cannot start warm from itself")
    # With numpy: names of agents are told without it.
    from archive.agents.transfer.eligibility import chosen

    names = chosen(archive, asked, sources, agent)
    stored = archive.studies.create(replace(asked, budget=budget or BUDGET, seed=seed or 0))
    _check_rungs(asked, stored)
    if seed is not None and seed != stored.seed:
        raise StudyConflictError(
            f"study {stored.name!r} exists with seed {stored.seed}, got {seed}: choose another name for the study"
        )
    if budget is not None and budget != stored.budget:
        stored = replace(stored, budget=set_budget(archive, stored.name, budget))
    if names:
        archive.studies.warm_start(stored.name, names)
    return stored


def set_budget(archive: Archive, name: str, budget: int) -> int:
    """Set the total number of evaluations of a study, no lower than what it has, and return it.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    counts = archive.studies.counts(name)
    total = max(budget, sum(count for state, count in counts.items() if state.evaluated))
    archive.studies.set_budget(name, total)
    return total


def _check_rungs(asked: Study, stored: Study) -> None:
    wanted, there = Rungs.of(asked.config), Rungs.of(stored.config)
    if wanted is not None and wanted != there:
        has = "no rungs" if there is None else f"rungs at {there.describe()}"
        raise StudyConflictError(
            f"study {stored.name!r} exists with {has}, got {wanted.describe()}: choose another name for the study"
        )


def study(
    archive: Archive,
    name: str,
    space: Space | str | None = None,
    *,
    task: str | None = None,
    protocol: str | None = None,
    objective: str | None = None,
    direction: Direction | None = None,
    budget: int | None = None,
    seed: int | None = None,
    warm_start: Sequence[str] | Literal["all"] = (),
) -> AskAndTell:
    """Open a study to ask, tell and enqueue, for a training loop of one's own.

    Args:
        archive: Where it is kept.
        name: Its name; a study that exists is the one that is opened, whoever made it.
        space: Where it searches, a space or its name; a new study needs it.
        task: What is learned [the name of the study].
        protocol: How it is trained and measured [TASK/own]. Only evaluations of one protocol are comparable: the
            name of a task's own protocol claims that its trainer would find the same values.
        objective: Name of the told value [value].
        direction: Whether larger or smaller values are better [maximise].
        budget: Most evaluations [no limit].
        seed: Seed of the agents [0].
        warm_start: Studies to start warm from, or `"all"` that are of use: see `archive.agents.transfer.eligibility`.

    Raises:
        StudyConflictError: It exists, and something that is given differs.
        UnknownNameError: There is no such space or source.
        UsageError: It is new and has no space, or its budget is less than 1.
    """
    from archive import spaces
    from archive.agents.ask_tell.study import UNBOUNDED
    from archive.agents.ask_tell.study import Study as AskAndTell
    from archive.store.records import Study

    searched = spaces.get(space) if isinstance(space, str) else space
    there = archive.studies.get(name) if name in archive.studies.names() else None
    if there is not None:
        own = spaces.get(there.space, **there.space_config)
        if searched is not None and searched != own:
            raise StudyConflictError(f"study {name!r} exists with the space {own!r}, got {searched!r}")
    elif searched is None:
        raise UsageError(f"there is no study {name!r} yet: a new one needs a space")
    else:
        own = searched
        own_task = task or name
        there = Study(name, own_task, f"{own_task}/own", own.name, "value", space_config=own.config)
        budget = UNBOUNDED if budget is None else budget
    given: dict[str, Any] = {"task": task, "protocol": protocol, "objective": objective, "direction": direction}
    asked = replace(there, **{what: value for what, value in given.items() if value is not None})
    open_study(archive, asked, budget=budget, seed=seed, sources=warm_start)
    return AskAndTell(archive, name, own)
