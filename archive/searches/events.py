"""Events of a running search, in the order in which `archive.search` reports them.

    Notice*, StudyOpened | NothingToDo, Notice*, SearchProgress*, Stopping?, SearchEnded

A function that receives events should return quickly: the search waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot


@dataclass(frozen=True)
class WarmSource:
    """A study of another task from which a search starts warm.

    Attributes:
        study: Name of the source.
        task: Its task.
        space: Its space.
        evaluations: Number of its evaluations.
        unused: Why the agent does not use them; None where it does.
    """

    study: str
    task: str
    space: str
    evaluations: int
    unused: str | None


@dataclass(frozen=True)
class StudyOpened:
    """The study of a search is created or resumed, and its trainers are about to start.

    Attributes:
        study: The stored study.
        agent: Name of the agent, with its settings.
        place: Place of the archive, in words.
        epochs: Largest number of epochs of a training; None where it is unknown.
        evaluations: Number of evaluations that the study has already.
        warm: Number of observations from other studies.
        sources: Sources of other tasks.
    """

    study: Study
    agent: str
    place: str
    epochs: int | None
    evaluations: int
    warm: int
    sources: tuple[WarmSource, ...]


@dataclass(frozen=True)
class NothingToDo:
    """The study has more evaluations than the requested budget, so that nothing is searched.

    Attributes:
        study: The stored study, with its own budget.
        evaluations: Number of its evaluations.
        budget: The requested budget.
    """

    study: Study
    evaluations: int
    budget: int


@dataclass(frozen=True)
class Notice:
    """A fact that a user should know, in one line.

    Attributes:
        text: The line.
    """

    text: str


@dataclass(frozen=True)
class SearchProgress:
    """The study after a read.

    Attributes:
        snapshot: The study with its proposals.
        waits_for: What the search waits for, where nothing runs; else None.
    """

    snapshot: Snapshot
    waits_for: str | None


@dataclass(frozen=True)
class Stopping:
    """A first Ctrl-C or SIGTERM: trainers return unfinished proposals, then the search ends."""


@dataclass(frozen=True)
class SearchEnded:
    """The search has ended, and its trainers too.

    Attributes:
        snapshot: The study.
        exhausted: Why a larger budget would find nothing more; None where it may.
        stopped: Why the search ended by its rule before its budget was spent; else None.
    """

    snapshot: Snapshot
    exhausted: str | None
    stopped: str | None = None


SearchEvent = StudyOpened | NothingToDo | Notice | SearchProgress | Stopping | SearchEnded

Listener = Callable[[SearchEvent], None]
"""A function that receives the events of a search."""


def ignore(event: SearchEvent) -> None:
    """Receive an event, and do nothing with it."""
