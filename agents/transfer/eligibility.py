"""Eligible source studies of a warm start.

| the source has the study's    | its evaluations serve as                            | for agents                     |
|-------------------------------|-----------------------------------------------------|--------------------------------|
| task, protocol and space      | observations (`source_tasks.split`)                 | all                            |
| space, or a comparable space  | data of a source task (`transfer.coordinator`)      | that transfer; others ignore   |
|                               |                                                     | them (`Agent.transfers`)       |
| neither                       | nothing: the source is refused                      | none                           |

A source of the study's task and protocol with another objective or direction is refused, too: its values would be
observations of another quantity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from archive.agents.transfer.cell_vocabulary import comparable
from archive.agents.transfer.source_tasks import same_task
from archive.errors import UsageError
from archive.store.records import State

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.store.records import Study

Sources = Sequence[str] | Literal["all"]


def chosen(archive: Archive, study: Study, sources: Sources, agent: Agent | None = None) -> list[str]:
    """Return the names of a study's sources, checked.

    Args:
        archive: The archive of the studies.
        study: The study; it need not be stored yet.
        sources: Names, or `"all"` for every eligible study with evaluations.
        agent: The agent of the search; None where it is not chosen yet: every comparable source is then eligible.

    Raises:
        UnknownNameError: A source is no study of the archive.
        UsageError: A source is the study itself, its networks cannot be compared with the study's, it has another
            objective for the same task and protocol, or the agent does not transfer from other tasks.
    """
    if sources == "all":
        others = [each for each in archive.studies.list() if each.study.name != study.name]
        evaluated = [each.study for each in others if any(each.counts.get(state) for state in State if state.evaluated)]
        return [other.name for other in evaluated if not _ineligible(study, other, agent)]
    for name in sources:
        source = archive.studies.get(name)
        if name == study.name:
            raise UsageError(f"the study {name!r} cannot start warm from itself")
        if reason := _ineligible(study, source, agent):
            raise UsageError(f"{study.name!r} cannot start warm from the study {name!r}: {reason}")
    return list(sources)


def _ineligible(study: Study, source: Study, agent: Agent | None) -> str | None:
    """Return why a source is not eligible; None where it is."""
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
            "alone; `archive agents` shows those that learn from others"
        )
    return None


def _same(study: Study, source: Study) -> bool:
    return same_task(study, source.task, source.protocol, source.space)
