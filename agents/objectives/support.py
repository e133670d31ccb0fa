"""Agents for studies with several objectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.agents.registry import registry
from archive.errors import ArchiveError, UsageError

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.store.records import Study

DEFAULT = "portfolio"
"""Default agent of a search with several objectives."""


def check(agent: Agent, study: Study) -> None:
    """Check that an agent searches for all objectives of a study.

    Raises:
        UsageError: The study has several objectives, and the agent searches for one.
    """
    if study.further and not agent.several_objectives:
        names = ", ".join(objective.name for objective in study.objectives)
        raise UsageError(
            f"the agent {agent.kind} searches for one objective, and the study {study.name!r} "
            f"has several, {names}: choose one of {', '.join(capable())}"
        )


def capable() -> list[str]:
    """Return the names of the agents that search for several objectives."""
    return list(filter(_is_capable, registry.names()))


def _is_capable(name: str) -> bool:
    try:
        return bool(getattr(registry.load(name), "several_objectives", False))
    except ArchiveError:
        # Another package's agent that cannot be loaded.
        return False
