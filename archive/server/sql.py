"""SQL of ArcadeDB, over its HTTP listener: maintenance that has no Cypher, for one embedded server.

    check(settings)                 what `CHECK DATABASE` reports
    check(settings, fix=True)       what `CHECK DATABASE FIX` changed

Only for maintenance: data are read and written over Bolt (`archive.database`).
"""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any

import psutil

from archive.errors import QueryError, StoreUnavailableError
from archive.server import embedded
from archive.server.run_file import DATABASE, HOST
from archive.settings import Settings

_SECONDS = 3600.0
"""Longest time of one statement: a check reads every record."""


def check(settings: Settings, *, fix: bool = False) -> dict[str, Any]:
    """Check every record and edge of the database, and return ArcadeDB's report.

    Args:
        settings: Settings of an embedded archive, whose server is started if it is not running.
        fix: Whether to remove unreadable records, and edges that lead nowhere. ArcadeDB then drops
            the indexes of the removed records, and cannot build indexes of undeclared properties
            again: `archive.store.schema` does.
    """
    (report,) = run(settings, "CHECK DATABASE FIX" if fix else "CHECK DATABASE")
    return report


def counts(settings: Settings) -> dict[str, int]:
    """Return the number of records of each type, by a scan."""
    numbers = {}
    for row in run(settings, "SELECT name FROM schema:types"):
        name = str(row["name"])
        numbers[name] = count(settings, name)

    return numbers


def count(settings: Settings, name: str) -> int:
    """Return the number of records of a type, by a scan."""
    # The condition keeps ArcadeDB from answering with a number that it has stored.
    (row,) = run(settings, f"SELECT count(*) AS records FROM `{name}` WHERE @rid IS NOT NULL")
    return int(row["records"])


def run(settings: Settings, statement: str) -> list[dict[str, Any]]:
    """Run a statement on the embedded server, and return its rows.

    Raises:
        QueryError: The server rejects it; the message is the server's.
        StoreUnavailableError: The server does not answer.
    """
    server = embedded.ensure_running(settings)
    login = base64.b64encode(f"{server.user}:{server.password}".encode()).decode()
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {login}"}
    body = json.dumps({"language": "sql", "command": statement, "limit": -1})
    connection = http.client.HTTPConnection(HOST, _port(settings, server.port), timeout=_SECONDS)
    try:
        connection.request("POST", f"/api/v1/command/{DATABASE}", body, headers)
        response = connection.getresponse()
        content = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise StoreUnavailableError(
            f"the server over {settings.home} does not answer: {error}", server.uri
        ) from error
    finally:
        connection.close()

    if response.status != http.client.OK:
        raise QueryError(str(content.get("detail") or content.get("error") or response.reason))

    rows: list[dict[str, Any]] = content["result"]
    return rows


def _port(settings: Settings, bolt_port: int) -> int:
    """Return the port of the HTTP listener, which ArcadeDB chooses."""
    try:
        connections = psutil.Process(embedded.status(settings).java_pid).net_connections(kind="tcp")
    except (psutil.Error, ValueError) as error:
        raise StoreUnavailableError(
            f"the server over {settings.home} does not answer: {error}"
        ) from error

    ports = {
        int(connection.laddr.port)
        for connection in connections
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port != bolt_port
    }
    if len(ports) != 1:
        raise StoreUnavailableError(f"the server over {settings.home} has no HTTP listener")

    return ports.pop()
