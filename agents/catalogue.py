"""Metadata of all agents, plug-ins included.

The metadata of built-in agents stand in their classes. `catalogue.json` is a copy, so that a list
of the agents imports none of them, nor scipy and numba with them:

    python -m archive.agents.catalogue agents/catalogue.json
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path

from archive.agents import registry
from archive.agents.registry import AgentInfo
from archive.errors import SettingsError
from archive.values import read_summary


def info(name: str) -> AgentInfo:
    """Return the metadata of an agent; without any, the first line of its docstring is the summary.

    Raises:
        UnknownNameError: No agent has this name.
        SettingsError: The agent of a plug-in cannot be loaded, or is none.
    """
    if name in registry.registry.built_in and name in _copy():
        return _copy()[name]

    return _info_of_class(name)


def infos() -> dict[str, AgentInfo]:
    """Return the metadata of all agents by name.

    An agent that cannot be loaded has its error as summary.
    """
    metadata: dict[str, AgentInfo] = {}
    for name in registry.names():
        try:
            metadata[name] = info(name)
        except SettingsError as error:
            metadata[name] = AgentInfo(summary=str(error))

    return metadata


def copy_text() -> str:
    """Return the text of `catalogue.json` as the classes of the built-in agents have it."""
    rows = {name: asdict(_info_of_class(name)) for name in sorted(registry.registry.built_in)}
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


@cache
def _copy() -> dict[str, AgentInfo]:
    rows = json.loads((files(__package__) / "catalogue.json").read_text(encoding="utf-8"))
    return {
        name: AgentInfo(**{**row, "spaces": tuple(row["spaces"])}) for name, row in rows.items()
    }


def _info_of_class(name: str) -> AgentInfo:
    from archive.agents.base import Agent

    made = registry.registry.maker(name)
    if isinstance(made, type):
        registry.registry.load_class(name, Agent)  # type: ignore[type-abstract]

    metadata: AgentInfo | None = getattr(made, "info", None)
    if metadata is None:
        metadata = AgentInfo(summary=read_summary(made).rstrip("."))

    return metadata


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(copy_text(), encoding="utf-8")
