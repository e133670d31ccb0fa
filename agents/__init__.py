"""Search agents: `get("nasbot", space)`, `names()`, and `study(archive, name, space)`.

A plug-in adds an agent through an entry point of the group `archive.agents`: a name, and a class
derived from `Agent`. Its constructor takes a space, then the agent's settings as keyword arguments:
strings, numbers, booleans, None, or lists and mappings of these. A study records the settings as
passed. `docs/extending.md` has an example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archive.agents.ask_tell.opening import study
from archive.agents.registry import configured, get, names, settings

if TYPE_CHECKING:
    from archive.agents.nearest import Similar
    from archive.api import Archive
    from archive.architecture.graph import Architecture

__all__ = ["configured", "get", "names", "settings", "similar", "study"]


def similar(
    archive: Archive,
    architecture: Architecture | str,
    k: int = 10,
    kernel: str = "otmann",
    **how: Any,
) -> Similar:
    """Return the nearest architectures of an archive; see `archive.agents.nearest.similar`."""
    # Imported lazily: it imports the kernels.
    from archive.agents import nearest

    return nearest.similar(archive, architecture, k, kernel, **how)
