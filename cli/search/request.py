"""What a search is asked for: what its options say, and what they leave open from the study that they name."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.spaces.base import Space
    from archive.store.records import Study
    from archive.trainer.tasks.file_access import Access
    from archive.trainer.tasks.registry import Protocol, Task
    from archive.trainer.tasks.tabular import Reading, TabularTask

AGENT, TASK = "nasbot", "digits"
"""Who proposes, and what is learned, where neither the options nor a study say."""


@dataclass(frozen=True)
class Given:
    """What was typed; None where it was not. Each is the option of its name."""

    agent: str | None = None
    task: str | None = None
    protocol: str | None = None
    space: str | None = None
    study: str | None = None
    rungs: str | None = None
    reduction: int | None = None


@dataclass(frozen=True)
class Asked:
    """What a search is asked for.

    Attributes:
        study: As it would be stored if it were new.
        task: What is learned.
        protocol: How it is trained and measured.
        agent: Who proposes.
    """

    study: Study
    task: Task | TabularTask
    protocol: Protocol | Reading
    agent: Agent


def named(archive: Archive, name: str) -> Study | None:
    """Return the study of a name; None where there is none yet."""
    try:
        return archive.studies.get(name)
    except UnknownNameError:
        return None


def agent_of(study: Study | None) -> str:
    """Return who searches in a study unless another agent is asked for: the one that began it."""
    own = None if study is None else study.config.get("agent")
    return own if isinstance(own, str) else AGENT


def asked(given: Given, there: Study | None = None, access: Access | None = None) -> Asked:
    """Return what a search is asked for, once its data are here.

    What differs from the study is left to its opening, which refuses it.

    Args:
        given: What was typed.
        there: The study that was named, where it exists: what was not typed is taken from it.
        access: Which files may be opened where the study names one, and not the user; None means any.

    Raises:
        UnknownNameError: There is no such agent, task, protocol or space.
        SettingsError: The task's data are not here, and cannot be fetched; or the study's file may not be opened here.
        UsageError: What was typed does not go together, or the study's task is none that can be searched.
    """
    from archive import agents
    from archive.store.records import Study
    from archive.trainer.tasks import registry

    task = _task(given.task, there, access)
    if there is not None and there.task != task.name:
        # Its protocol and its space say nothing about another task.
        there = None
    protocol = _protocol(given.protocol, task, there)
    registry.prepare(task, protocol)
    space = _space(given.space, task, there)
    agent = agent_of(there) if given.agent is None else given.agent
    study = Study(
        name=f"{agent}-{space.name}-{task.label}" if given.study is None else given.study,
        task=task.name,
        protocol=protocol.name,
        space=space.name,
        objective=task.objective,
        direction=task.direction,
        config={"agent": agent, "protocol": protocol.as_dict(), **_rungs(given, there, task, protocol)},
        space_config=space.config,
    )
    return Asked(study, task, protocol, agents.get(agent, space))


def _task(name: str | None, there: Study | None, access: Access | None) -> Task | TabularTask:
    from archive.trainer.tasks import registry

    if name is not None or there is None:
        return registry.get(TASK if name is None else name)
    try:
        return registry.get(there.task) if access is None else registry.of_study(there, access)
    except UnknownNameError:
        raise UsageError(
            f"the study {there.name!r} has the task {there.task!r}, which no trainer here knows: "
            "it is one to ask and tell, or of a package that is not installed"
        ) from None


def _protocol(name: str | None, task: Task | TabularTask, there: Study | None) -> Protocol | Reading:
    if name is None and there is not None:
        # One that the task no longer has, for a user's file that changed, differs from what is there now.
        with suppress(UnknownNameError):
            return task.protocol(there.protocol)
    return task.protocol(name)


def _space(name: str | None, task: Task | TabularTask, there: Study | None) -> Space:
    from archive import spaces

    space = task.search_space(there.space if name is None and there is not None else name)
    if there is None or space.name != there.space or space.config == there.space_config:
        return space
    # Its limits are the study's: it may have been opened with others than the task's.
    return spaces.get(there.space, **there.space_config)


def _rungs(given: Given, there: Study | None, task: Task | TabularTask, protocol: Protocol | Reading) -> dict[str, Any]:
    from archive.cli.search.rungs import chosen_rungs
    from archive.queue.successive_halving import Rungs

    text, reduction = given.rungs, given.reduction
    own = None if there is None else Rungs.of(there.config)
    if own is not None and (text is None) != (reduction is None):
        # One of the two options alone: the other one is the study's.
        text = ",".join(map(str, own.epochs)) if text is None else text
        reduction = own.reduction if reduction is None else reduction
    return chosen_rungs(text, reduction, task, protocol)
