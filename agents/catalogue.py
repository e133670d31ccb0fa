"""What every agent says of itself, those of other packages included."""

from __future__ import annotations

import inspect

from archive.agents import registry
from archive.agents.base import AgentInfo
from archive.errors import SettingsError


def info(name: str) -> AgentInfo:
    """Return what to know of an agent before choosing it; of one that does not say, the first line of its docstring.

    Raises:
        UnknownNameError: There is no such agent.
        SettingsError: Another package's agent cannot be loaded.
    """
    made = registry.registry.load(name)
    found: AgentInfo | None = getattr(made, "info", None)
    if found is None:
        found = AgentInfo(summary=(inspect.getdoc(made) or "").partition("\n")[0].rstrip("."))
    return found


def infos() -> dict[str, AgentInfo]:
    """Return what is known of all agents, by name; of one that cannot be loaded, why it cannot."""
    found: dict[str, AgentInfo] = {}
    for name in registry.names():
        try:
            found[name] = info(name)
        except SettingsError as error:
            found[name] = AgentInfo(summary=str(error))
    return found
