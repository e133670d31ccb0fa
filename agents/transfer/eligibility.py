"""Which studies another one may start warm from.

| the source's              | is to the study                 | for whom                                               |
|---------------------------|---------------------------------|--------------------------------------------------------|
| task, protocol, space     | observations (`sources.split`)  | every agent                                            |
| space, or a space whose   | something to expect             | agents that transfer (`Agent.transfers`); others leave |
| networks can be compared  | (`transfer.coordinator`)        | it alone                                               |
| space is another one      | nothing, and is refused         | nobody                                                 |
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


def chosen(archive: Archive, asked: Study, sources: Sources, agent: Agent | None = None) -> list[str]:
    """Return the names of the studies that a study starts warm from, and check them.

    Args:
        archive: Where they are.
        asked: The study; it need not be stored yet.
        sources: Names, or `"all"` that have evaluations which are of use.
        agent: Who searches; None for one that is not known yet, which may make use of any.

    Raises:
        UnknownNameError: There is no study of a name.
        UsageError: A name is the study's own, its networks cannot be compared with the study's, or the agent cannot
            make use of another task.
    """
    if sources == "all":
        others = [each for each in archive.studies.list() if each.study.name != asked.name]
        evaluated = [each.study for each in others if any(each.counts.get(state) for state in State if state.evaluated)]
        return [other.name for other in evaluated if not _useless(asked, other, agent)]
    for name in sources:
        source = archive.studies.get(name)
        if name == asked.name:
            raise UsageError(f"the study {name!r} cannot start warm from itself")
        if reason := _useless(asked, source, agent):
            raise UsageError(f"{asked.name!r} cannot start warm from the study {name!r}: {reason}")
    return list(sources)


def _useless(asked: Study, source: Study, agent: Agent | None) -> str | None:
    """Return why a source is of no use, None where it is."""
    if _same(asked, source):
        return None
    if not comparable(source.space, asked.space):
        return f"it searched the space {source.space}, whose networks nothing compares with those of {asked.space}"
    if agent is not None and not agent.transfers:
        return (
            f"its task is {source.task} ({source.protocol}), and the agent {agent.kind} learns from its own task "
            "alone; `archive agents` shows those that learn from others"
        )
    return None


def _same(asked: Study, source: Study) -> bool:
    return same_task(asked, source.task, source.protocol, source.space)
