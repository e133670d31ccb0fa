"""Import of the Neo4j driver without pandas, for commands."""

from __future__ import annotations

import sys


def load() -> None:
    """Import the driver without pandas: the driver imports pandas if it is installed, which takes 0.4 s.

    The driver then accepts no pandas values as parameters of statements; commands pass none. In a process that has
    imported the driver or pandas already, this function has no effect. The process may import pandas afterwards.
    """
    if "neo4j" in sys.modules or "pandas" in sys.modules:
        return
    # An entry of None makes an import fail, as if the package were not installed.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        import neo4j  # noqa: F401
    finally:
        del sys.modules["pandas"]
