"""The wait of a search for the proxies that its trainers measure before the first proposal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from archive.errors import ArchiveError
from archive.searches.events import Listener, Notice

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.searches.interruption import Interruption
    from archive.searches.trainers import SearchTrainers
    from archive.store.records import Study
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.tasks.base import Task

MOST_SECONDS = 120.0
"""Longest wait: trainers may be late, or networks large. Later scores inform later proposals."""
PAUSE = 0.5
"""Seconds between two looks."""


def await_proxies(
    archive: Archive,
    study: Study,
    agent: Agent,
    trainers: SearchTrainers,
    interruption: Interruption,
    notify: Listener,
) -> None:
    """Wait until the trainers have measured the sample of a new study's space, for an agent that
    uses proxies.

    Args:
        archive: The archive.
        study: The study.
        agent: Its agent.
        trainers: Trainers of the search, which have started.
        interruption: Ends the wait.
        notify: Receives events.

    Raises:
        InterruptedBySignal: A signal has arrived.
        ArchiveError: The trainers have ended with an error, or the store does not answer.
    """
    if not trainers.proxies or not trainers.fleet.upper:
        return

    try:
        task, protocol, sample = _sample(archive, study, trainers.proxies)
    except ArchiveError as error:
        notify(Notice(f"no proxies are measured: {error}"))
        return

    if not agent.uses_proxies:
        notify(Notice(f"proxies are measured, and the agent {agent.kind} does not use them"))
        return

    _wait(archive, study, (task, protocol, sample), trainers, interruption, notify)


def _sample(
    archive: Archive, study: Study, count: int
) -> tuple[Task, TrainingProtocol, list[Architecture]]:
    """Return the task, the protocol and the networks that trainers of a study measure.

    Raises:
        ArchiveError: They measure none.
    """
    from archive.spaces import stored_spaces
    from archive.trainer.proxies import studies
    from archive.trainer.tasks.file_access import FileAccess

    home = archive.connection.settings.home
    task, protocol = studies.subject_of(study, FileAccess.of(home))
    space = stored_spaces.of_record(study.space, study.space_config, home)
    return task, protocol, studies.sample_of(space, count)


def _wait(
    archive: Archive,
    study: Study,
    subject: tuple[Task, TrainingProtocol, list[Architecture]],
    trainers: SearchTrainers,
    interruption: Interruption,
    notify: Listener,
) -> None:
    from archive.trainer.proxies.stored import unmeasured

    evaluated = sum(
        count for state, count in archive.studies.counts(study.name).items() if state.evaluated
    )
    end = time.monotonic() + MOST_SECONDS
    task, protocol, left = subject
    left = [] if evaluated else unmeasured(archive, task, protocol, left)
    if left:
        notify(
            Notice(
                f"the trainers measure the proxies of {len(left)} networks before the first "
                "proposal, which waits "
                f"for {MOST_SECONDS:g} s at most"
            )
        )

    while left and time.monotonic() < end:
        interruption.wait(PAUSE)
        interruption.check()
        trainers.keep_alive(0, study.budget)
        left = unmeasured(archive, task, protocol, left)

    if left:
        notify(Notice(f"the search begins while {len(left)} networks are left to measure"))
