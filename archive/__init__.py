"""A graph database of every neural architecture you evaluate, and search agents that learn from it.

    import archive

    with archive.connect() as store:
        for row in store.query("MATCH (s:Study) RETURN s.name AS study").rows:
            print(row)

Names are loaded when they are first used, so that `import archive` loads neither a driver nor
torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.api import Archive as Archive
    from archive.api import connect as connect
    from archive.architecture.graph import Architecture as Architecture
    from archive.architecture.graph import Layer as Layer
    from archive.errors import ArchiveError as ArchiveError
    from archive.runs.recording import record as record
    from archive.searches.call import search as search
    from archive.trainer.recipes.declarations import recipe as recipe

__version__ = "0.1.0"

_HOMES = {
    "Archive": "archive.api",
    "ArchiveError": "archive.errors",
    "Architecture": "archive.architecture.graph",
    "Layer": "archive.architecture.graph",
    "connect": "archive.api",
    "recipe": "archive.trainer.recipes.declarations",
    "record": "archive.runs.recording",
    "search": "archive.searches.call",
}

_PACKAGES = ("agents", "frames", "plots", "report")
"""Parts of the package that need no import statement: `archive.plots.best_so_far(…)`."""

__all__ = [
    "Architecture",
    "Archive",
    "ArchiveError",
    "Layer",
    "connect",
    "recipe",
    "record",
    "search",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it, or a part of the package."""
    if name in _PACKAGES:
        return import_module(f"archive.{name}")

    if name not in _HOMES:
        raise AttributeError(f"module 'archive' has no attribute {name!r}")

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
