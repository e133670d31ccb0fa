"""The import of the Neo4j driver by a command."""

from __future__ import annotations

import sys


def load() -> None:
    """Import the driver without pandas, which it otherwise imports wherever it is installed: 0.4 s of every command.

    Without it the driver takes no pandas values as parameters of a statement, and a command has none. A process that
    has imported either already is left as it is, and may import pandas afterwards.
    """
    if "neo4j" in sys.modules or "pandas" in sys.modules:
        return
    # None makes an import fail, as if it were not installed.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        import neo4j  # noqa: F401
    finally:
        del sys.modules["pandas"]
