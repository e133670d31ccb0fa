"""Refusal of other machines by the embedded server, with the way to a Neo4j server that they can
reach.

The embedded server listens on the loopback interface, and its writers take turns by locks on local
files. A launcher calls `refuse_remote` before it starts anything on another machine.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from archive.errors import SettingsError
from archive.settings import Settings

START_NEO4J = "NEO4J_AUTH=neo4j/PASSWORD docker run -d -p 7687:7687 -e NEO4J_AUTH neo4j:5.26"
"""Command that starts Neo4j; its password is in the environment and in no process list."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_FIRST_EPHEMERAL_PORT = 32_768


def refuse_remote(settings: Settings, what: str) -> None:
    """Refuse to serve other machines from the embedded server.

    Args:
        settings: Location of the archive.
        what: What needs other machines, as the beginning of the message, such as `archive launch
            slurm`.

    Raises:
        SettingsError: The archive is in the embedded server; one line with the commands that move
            it to Neo4j.
    """
    if settings.embedded:
        raise SettingsError(
            f"{what} needs a database that other machines reach, and the embedded archive over "
            f"{settings.home} serves "
            f"one machine: {way_to_neo4j(settings.home)}"
        )


def refuse_address(settings: Settings, dialect: str) -> None:
    """Refuse a trainer that reaches an embedded server by an address, as through a tunnel from
    another machine.

    Args:
        settings: Location of the archive.
        dialect: Dialect of the server that answers there
            (`archive.database.connection.Connection.dialect`).

    Raises:
        SettingsError: It is an embedded server.
    """
    if settings.uri is not None and dialect == "embedded":
        raise SettingsError(
            f"the server at {settings.uri} is an embedded archive, which serves trainers of its "
            "own machine only, by "
            f"ARCHIVE_HOME in place of ARCHIVE_DB: {way_to_neo4j(Path('HOME'))}"
        )


def way_to_neo4j(home: Path) -> str:
    """Return how to start Neo4j, and how to bring the embedded archive of a home there, as one
    line.
    """
    return (
        f"start Neo4j on a machine that all reach ({START_NEO4J}), bring the archive there "
        f"(archive --home {home} dump "
        "| ARCHIVE_DB=neo4j://HOST:7687 ARCHIVE_PASSWORD_FILE=FILE archive load), and set "
        "ARCHIVE_DB and "
        "ARCHIVE_PASSWORD_FILE on all machines"
    )


def is_loopback(uri: str) -> bool:
    """Whether the address of a server means a different machine on each machine."""
    return (urlsplit(uri).hostname or "") in _LOOPBACK


def hint_for(uri: str) -> str:
    """Return the end of a message about an unreachable address that may be an embedded server's;
    else nothing.
    """
    parts = urlsplit(uri)
    # Neo4j's port is fixed; that of an embedded server is ephemeral.
    if is_loopback(uri) or (parts.port or 0) < _FIRST_EPHEMERAL_PORT:
        return ""

    return f"; an embedded archive serves its own machine only: {way_to_neo4j(Path('HOME'))}"
