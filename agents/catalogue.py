"""Metadata of all agents, those of plug-ins included."""

from __future__ import annotations

import inspect

from archive.agents import registry
from archive.agents.base import Agent, AgentInfo
from archive.errors import SettingsError


def info(name: str) -> AgentInfo:
    """Return the metadata of an agent; without any, the first line of its docstring is the summary.

    Raises:
        UnknownNameError: No agent has this name.
        SettingsError: The agent of a plug-in cannot be loaded, or is none.
    """
    made = registry.registry.maker(name)
    if isinstance(made, type):
        registry.registry.load_class(name, Agent)  # type: ignore[type-abstract]
    metadata: AgentInfo | None = getattr(made, "info", None)
    if metadata is None:
        metadata = AgentInfo(summary=(inspect.getdoc(made) or "").partition("\n")[0].rstrip("."))
    return metadata


def infos() -> dict[str, AgentInfo]:
    """Return the metadata of all agents by name; the summary of one that cannot be loaded is the error."""
    metadata: dict[str, AgentInfo] = {}
    for name in registry.names():
        try:
            metadata[name] = info(name)
        except SettingsError as error:
            metadata[name] = AgentInfo(summary=str(error))
    return metadata
