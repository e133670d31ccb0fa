"""Eligible source studies of a warm start.

| the source has the study's    | its evaluations serve as                            | for agents                     |
|-------------------------------|-----------------------------------------------------|--------------------------------|
| task, protocol and space      | observations (`source_tasks.split`)                 | all                            |
| space, or a comparable space  | data of a source task (`transfer.coordinator`)      | that transfer; others ignore   |
|                               |                                                     | them (`Agent.transfers`)       |
| neither                       | nothing: the source is refused                      | none                           |

A source on `choices` with other options behind the same labels is refused
(`archive.architecture.choice_operations`).

A source of the study's task and protocol with another objective or direction is refused, too: its
values would be observations of another quantity. So are two sources of one other task and protocol
whose objectives differ, since one model is fitted to the values of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from archive.agents.transfer.cell_vocabulary import comparable
from archive.agents.transfer.source_tasks import same_task
from archive.architecture.choice_operations import conflict
from archive.errors import UsageError
from archive.store.records import State

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.store.records import Objective, Study

Sources = Sequence[str] | Literal["all"]


def chosen(
    archive: Archive, study: Study, sources: Sources, agent: Agent | None = None
) -> list[str]:
    """Return the names of a study's sources, checked.

    Args:
        archive: The archive of the studies.
        study: The study; it need not be stored yet.
        sources: Names, or `"all"` for every eligible study with evaluations.
        agent: The agent of the search; None where it is not chosen yet: every comparable source is
            then eligible.

    Raises:
        UnknownNameError: A source is no study of the archive.
        UsageError: A source is not eligible: it is the study itself, its networks cannot be
            compared with those of the study, the agent does not transfer from other tasks, or a
            study or another source of the same task and protocol has another objective.
    """
    if sources == "all":
        others = [each for each in archive.studies.list() if each.study.name != study.name]
        evaluated = [
            each.study
            for each in others
            if any(each.counts.get(state) for state in State if state.evaluated)
        ]
        eligible = [other for other in evaluated if not _ineligible(study, other, agent)]
        return [other.name for other in _of_one_quantity(study, eligible)]

    studies = [archive.studies.get(name) for name in sources]
    for source in studies:
        if source.name == study.name:
            raise UsageError(f"the study {source.name!r} cannot start warm from itself")

        if reason := _ineligible(study, source, agent):
            raise UsageError(
                f"{study.name!r} cannot start warm from the study {source.name!r}: {reason}"
            )

    _check_pairs(
        study, [archive.studies.get(name) for name in archive.studies.sources(study.name)], studies
    )
    return list(sources)


def _ineligible(study: Study, source: Study, agent: Agent | None) -> str | None:
    """Return why a source is not eligible; None where it is."""
    if source.space == study.space and (
        names := conflict(study.space, source.space_config, study.space_config)
    ):
        return (
            f"its space {source.space} has {names[0]} where that of {study.name!r} has {names[1]}, so that networks of "
            "one key are different ones"
        )

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


def _of_one_quantity(study: Study, sources: Sequence[Study]) -> list[Study]:
    """Return sources such that all of one task and protocol have the same objective.

    It is the study's objective if one of them has that, else the objective of the first one.
    """
    objectives: dict[tuple[str, str, str], Objective] = {}
    for one in sorted(sources, key=lambda one: one.objectives[0] != study.objectives[0]):
        objectives.setdefault(_task(one), one.objectives[0])

    return [one for one in sources if one.objectives[0] == objectives[_task(one)]]


def _check_pairs(study: Study, known: Sequence[Study], sources: Sequence[Study]) -> None:
    """Check each new source against the known and the other new ones of its task and protocol."""
    firsts = {_task(one): one for one in reversed(known)}
    for one in sources:
        first = firsts.setdefault(_task(one), one)
        if one.objectives[0] != first.objectives[0]:
            raise UsageError(
                f"{study.name!r} cannot start warm from both {first.name!r} and {one.name!r}: their values are "
                f"{first.objectives[0]} and {one.objectives[0]}, and both have the protocol {one.protocol}: choose one"
            )


def _task(study: Study) -> tuple[str, str, str]:
    return study.task, study.protocol, study.space


def _same(study: Study, source: Study) -> bool:
    return same_task(study, source.task, source.protocol, source.space)
