"""Opening of a search's study, and the way out of a contradiction to an existing one of its
name.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Literal

from archive.errors import StudyConflictError
from archive.searches.request import SearchOptions, SearchRequest, named

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study


def open_study_of(
    archive: Archive,
    request: SearchRequest,
    options: SearchOptions,
    *,
    budget: int | None,
    seed: int | None,
    sources: Sequence[str] | Literal["all"],
) -> Study:
    """Return the study of a search, created if there is none of its name.

    Args:
        archive: The archive of the study.
        request: The search.
        options: The options that it was requested by.
        budget: As of `archive.agents.study_setup.open_study`, as are the others.
        seed: Seed.
        sources: Studies to start warm from.

    Raises:
        StudyConflictError: The options contradict a study of this name; the message suggests
            another name where the options have none.
        SettingsError: The study's file has changed.
        UsageError: As of `open_study`.
    """
    from archive.agents.study_setup import open_study

    _check_file(request, options, named(archive, request.study.name))
    try:
        return open_study(
            archive, request.study, budget=budget, seed=seed, sources=sources, agent=request.agent
        )
    except StudyConflictError as error:
        if options.study is not None:
            raise

        free = _free_name(request.study.name, archive.studies.names())
        raise StudyConflictError(f"{error}, such as --study {shlex.quote(free)}") from None


def _check_file(request: SearchRequest, options: SearchOptions, stored: Study | None) -> None:
    """Check that a file of the user is still the one of the study: its digest is the protocol that
    no option names.
    """
    from archive.trainer.tasks.file_access import check_content, reference_of

    reference = reference_of(request.task.name)
    if (
        reference is not None
        and options.protocol is None
        and stored is not None
        and stored.task == request.task.name
    ):
        check_content(reference[0], stored.protocol)


def _free_name(name: str, taken: Sequence[str]) -> str:
    return next(each for at in count(2) if (each := f"{name}-{at}") not in taken)
