"""Import of the Neo4j driver without pandas, for commands."""

from __future__ import annotations

import sys


def load() -> None:
    """Import the driver without pandas, which it otherwise imports if it is installed: 0.4 s of every command.

    Without pandas the driver accepts no pandas values as parameters of a statement, and commands pass none. Nothing
    changes in a process that has imported either already. The process may import pandas afterwards.
    """
    if "neo4j" in sys.modules or "pandas" in sys.modules:
        return
    # An entry of None makes an import fail, as if the package were not installed.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        import neo4j  # noqa: F401
    finally:
        del sys.modules["pandas"]
