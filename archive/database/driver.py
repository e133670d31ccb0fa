"""Import of the Neo4j driver without pandas and pyarrow, for commands."""

from __future__ import annotations

import sys

_OPTIONAL = ("pandas", "pyarrow")


def load() -> None:
    """Import the driver without pandas and pyarrow, which it otherwise imports if they are installed: half a second.

    Without them the driver accepts none of their values as parameters of a statement, and commands pass none. Nothing
    changes in a process that has imported the driver already. The process may import both packages afterwards.
    """
    if "neo4j" in sys.modules:
        return
    hidden = [name for name in _OPTIONAL if name not in sys.modules]
    # An entry of None makes an import fail, as if the package were not installed.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        import neo4j  # noqa: F401
    finally:
        for name in hidden:
            del sys.modules[name]
