"""Eligible source studies of a warm start.

| the source has the study's   | its evaluations serve as                       | for agents                   |
|------------------------------|------------------------------------------------|------------------------------|
| task, protocol and space     | observations (`source_tasks.split`)            | all                          |
| space, or a comparable space | data of a source task (`transfer.coordinator`) | that transfer; others ignore |
|                              |                                                | them (`Agent.transfers`)     |
| neither                      | nothing: the source is refused                 | none                         |

Spaces of parameters are comparable if they share one (`archive.parameters.sharing`). A source on `choices` with other options behind the same labels is refused
(`archive.architecture.choice_operations`).

A source of the study's task and protocol with another objective or direction is refused, too: its
values would be observations of another quantity. Two sources of one other task and protocol must
have the same objective, since one model is fitted to the values of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from archive.agents.transfer.cell_vocabulary import comparable
from archive.agents.transfer.source_tasks import same_task
from archive.architecture.choice_operations import conflict
from archive.architecture.parameter_operations import NAME as PARAMETERS
from archive.errors import SettingsError, UsageError
from archive.parameters.growth import check_growth
from archive.parameters.parameter_space import ParameterSpace
from archive.parameters.sharing import shared_names
from archive.store.records import State

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.store.records import Objective, Study

Sources = Sequence[str] | Literal["all"]


def check_sources(
    archive: Archive, study: Study, sources: Sources, agent: Agent | None = None
) -> list[str]:
    """Check the sources of a study, and return their names.

    Args:
        archive: The archive of the studies.
        study: The study; it need not be stored yet.
        sources: Names, or `"all"` for every eligible study with evaluations.
        agent: The agent of the search; None before it is selected: every comparable source is
            then eligible.

    Raises:
        UnknownNameError: A source is no study of the archive.
        UsageError: A source is not eligible: it is the study itself, its networks cannot be
            compared with the study's, the agent does not transfer from other tasks, or a study or
            another source of the same task and protocol has another objective.
    """
    if sources == "all":
        eligible = []
        for summary in archive.studies.list():
            other = summary.study
            evaluated = any(summary.counts.get(state) for state in State if state.evaluated)
            if other.name != study.name and evaluated and not _ineligible(study, other, agent):
                eligible.append(other)

        return [other.name for other in _with_one_objective(study, eligible)]

    studies = list(map(archive.studies.get, sources))
    for source in studies:
        if source.name == study.name:
            raise UsageError(f"the study {source.name!r} cannot start warm from itself")

        if reason := _ineligible(study, source, agent):
            raise UsageError(
                f"{study.name!r} cannot start warm from the study {source.name!r}: {reason}"
            )

    recorded = list(map(archive.studies.get, archive.studies.sources(study.name)))
    _check_pairs(study, recorded, studies)
    return list(sources)


def _ineligible(study: Study, source: Study, agent: Agent | None) -> str | None:
    """Return why a source is not eligible; None where it is."""
    names = None
    if source.space == study.space:
        names = conflict(study.space, source.space_config, study.space_config)

    if names:
        return (
            f"its space {source.space} has {names[0]} where that of {study.name!r} has {names[1]}, so that networks of "
            "one key are different ones"
        )

    if study.space == source.space == PARAMETERS:
        reason = _no_shared_parameters(study, source, agent)
        if reason is not None:
            return reason

    if _same(study, source):
        if source.objectives[0] == study.objectives[0]:
            return None

        return (
            f"its values are {source.objectives[0]}, those of {study.name!r} are {study.objectives[0]}, and both have "
            f"the protocol {study.protocol}: a study of another objective needs a protocol with another name"
        )

    if not comparable(source.space, study.space):
        return f"it searched the space {source.space}, whose networks cannot be compared with those of {study.space}"

    if agent is not None and not agent.transfers:
        return (
            f"its task is {source.task} ({source.protocol}), and the agent {agent.kind} learns from its own task "
            "alone; archive agents NAME says whether an agent learns from others"
        )

    return None


def _no_shared_parameters(study: Study, source: Study, agent: Agent | None) -> str | None:
    """Return why the parameters of a source tell nothing about a study's; None where they do."""
    old = ParameterSpace.from_json(source.space_config)
    new = ParameterSpace.from_json(study.space_config)
    if not shared_names(old, new):
        return (
            f"their spaces share no parameter: it has {', '.join(old.names[:8])}, and "
            f"{study.name!r} has {', '.join(new.names[:8])}"
        )

    if agent is None or agent.transfers:
        return None

    try:
        check_growth(old, new)
    except SettingsError as error:
        return (
            f"its space is another one ({error}), and the agent {agent.kind} learns from its own "
            "space alone; archive agents NAME says whether an agent learns from others"
        )

    return None


def _with_one_objective(study: Study, sources: Sequence[Study]) -> list[Study]:
    """Return the sources with the objective of their task and protocol.

    It is the study's objective if a source has it, else the objective of the first source.
    """
    objectives: dict[tuple[str, str, str], Objective] = {}
    for source in sorted(sources, key=lambda source: source.objectives[0] != study.objectives[0]):
        objectives.setdefault(_task(source), source.objectives[0])

    kept = []
    for source in sources:
        if source.objectives[0] == objectives[_task(source)]:
            kept.append(source)

    return kept


def _check_pairs(study: Study, recorded: Sequence[Study], sources: Sequence[Study]) -> None:
    """Check each new source against the recorded and the other new ones of its task."""
    firsts = {_task(source): source for source in reversed(recorded)}
    for source in sources:
        first = firsts.setdefault(_task(source), source)
        if source.objectives[0] != first.objectives[0]:
            raise UsageError(
                f"{study.name!r} cannot start warm from both {first.name!r} and {source.name!r}: their values are "
                f"{first.objectives[0]} and {source.objectives[0]}, and both have the protocol {source.protocol}: choose one"
            )


def _task(study: Study) -> tuple[str, str, str]:
    return study.task, study.protocol, study.space


def _same(study: Study, source: Study) -> bool:
    return same_task(study, source.task, source.protocol, source.space)
