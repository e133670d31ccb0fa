"""Opening a study for a search: a new one, or the one of that name, with its budget and its warm-start sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from archive.errors import StudyConflictError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from archive.archive import Archive
    from archive.records import Study

BUDGET = 20
"""Evaluations of a new study when the user names no budget."""


def open_study(
    archive: Archive,
    asked: Study,
    *,
    budget: int | None = None,
    seed: int | None = None,
    sources: Sequence[str] | Literal["all"] = (),
) -> Study:
    """Return the study as it is stored, made if there is none of its name.

    Args:
        archive: Where it is kept.
        asked: Name, task, protocol, space, objective and direction; the rest is taken for a new study.
        budget: Total number of evaluations; None keeps that of a study that exists.
        seed: Seed; None keeps that of a study that exists.
        sources: Studies whose evaluations count as observations, or `"all"` that match.

    Raises:
        StudyConflictError: It exists with another task, protocol, space, objective, direction or seed.
        UnknownNameError: A source is no other study of the same task, protocol and space. Nothing is stored then.
        UsageError: The budget is below 1, or below what the study has been given already.
    """
    if budget is not None and budget < 1:
        raise UsageError(f"--budget must be at least 1 evaluation, got {budget}")
    _check_sources(archive, asked, sources)
    stored = archive.studies.create(replace(asked, budget=budget or BUDGET, seed=seed or 0))
    if seed is not None and seed != stored.seed:
        raise StudyConflictError(
            f"study {stored.name!r} exists with seed {stored.seed}, got {seed}: choose another name for the study"
        )
    if budget is not None and budget != stored.budget:
        archive.studies.set_budget(stored.name, budget)
        stored = replace(stored, budget=budget)
    if sources:
        archive.studies.warm_start(stored.name, sources)
    return stored


def _check_sources(archive: Archive, asked: Study, sources: Sequence[str] | Literal["all"]) -> None:
    if sources == "all":
        return
    for name in sources:
        source = archive.studies.get(name)
        if name == asked.name:
            raise UsageError(f"the study {name!r} cannot start warm from itself")
        for what in ("task", "protocol", "space"):
            if getattr(source, what) != getattr(asked, what):
                summaries = archive.studies.list()
                matching = [summary.study.name for summary in summaries if _same(summary.study, asked)]
                where = f"study on {asked.task} ({asked.protocol}) in the space {asked.space}"
                raise UnknownNameError(where, name, matching, f"{name!r} has {what} {getattr(source, what)}")


def _same(one: Study, other: Study) -> bool:
    return (one.task, one.protocol, one.space) == (other.task, other.protocol, other.space)
