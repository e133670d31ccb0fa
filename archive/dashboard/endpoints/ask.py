"""Questions: saved queries, and Cypher that can only read.

Every query passes the guard of `archive.database.user_query`, also on a page that may write: the
page's own changes have separate endpoints. A query ends after the server's limit of time, and
only a few run at once, so that no browser can keep the database busy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import BoundedSemaphore
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of, body, options_of, text_of
from archive.dashboard.wire import json_response, select_attributes
from archive.database.user_query import QueryResult
from archive.errors import ReadOnlyError, UnknownStatementError, UsageError
from archive.queries import catalogue, saved

ROWS = 1000
MOST_ROWS = 10_000
AT_ONCE = 4
"""Number of queries that run at once."""
PATIENCE_SECONDS = 10.0

_running = BoundedSemaphore(AT_ONCE)


def _catalogue(request: Request) -> Response:
    queries: list[dict[str, Any]] = []
    for query in map(catalogue.get, catalogue.names()):
        about = select_attributes(query, "name", "summary", "cypher")
        queries.append({**about, "parameters": list(map(vars, query.parameters.values()))})

    return json_response({"queries": queries})


async def _query(request: Request) -> Response:
    """Run Cypher, or a saved query by its name."""
    archive = archive_of(request)
    document = await body(request)
    values = _parameters(document)
    options = _options(document)
    options["timeout"] = options_of(request).query_seconds
    if "name" in document:
        name = text_of(document, "name", longest=200)

        def answer() -> tuple[QueryResult, str | None]:
            result = saved.run(archive.connection, name, values, **options)
            empty = not result.rows and not options["skip"]
            return result, saved.why_empty(archive.connection, name, values) if empty else None
    else:
        cypher = text_of(document, "cypher")

        def answer() -> tuple[QueryResult, str | None]:
            try:
                return archive.query(cypher, values, **options), None
            except UnknownStatementError:
                raise
            except ReadOnlyError as error:
                # The rest of the message has the option of another command.
                refused = str(error).partition(";")[0]
                raise ReadOnlyError(
                    f"{refused}; the page only reads: archive query --write can change"
                ) from None

    result, why = await run_in_threadpool(_in_turn, answer)
    about = {
        "columns": result.columns,
        "rows": result.rows,
        "truncated": result.truncated,
        "why_empty": why,
    }
    return json_response(about)


def _in_turn(
    answer: Callable[[], tuple[QueryResult, str | None]],
) -> tuple[QueryResult, str | None]:
    if not _running.acquire(timeout=PATIENCE_SECONDS):
        raise UsageError(f"{AT_ONCE} queries are running already: try again when one has ended")

    try:
        return answer()
    finally:
        _running.release()


def _parameters(document: Mapping[str, Any]) -> dict[str, Any]:
    values = document.get("parameters", {})
    if not isinstance(values, dict):
        raise UsageError("parameters must be a JSON object")

    return values


def _options(document: Mapping[str, Any]) -> dict[str, Any]:
    options = {"limit": document.get("limit", ROWS), "skip": document.get("skip", 0)}
    for name, least, most in (("limit", 1, MOST_ROWS), ("skip", 0, 10**9)):
        value = options[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise UsageError(f"{name} must be an integer between {least} and {most}, got {value!r}")

    return options


ROUTES = [Route("/api/queries", _catalogue), Route("/api/query", _query, methods=["POST"])]
