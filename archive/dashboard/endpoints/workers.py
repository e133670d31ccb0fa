"""The queue: what waits, over all studies, and what failed last. Workers come with the news."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of
from archive.dashboard.wire import json_response
from archive.queue import reachability, workers

SHOWN = 200

WAITING = """
MATCH (s:Study)
WITH s.name AS study
MATCH (p:Proposal {open: study})
WHERE p.state = 'WAITING'
RETURN p.id AS id, study, p.number AS number, p.architecture AS architecture, p.agent AS agent,
       coalesce(p.priority, 0.0) AS priority, p.attempts AS attempts, p.created AS created, p.reason AS reason,
       p.cause AS cause
ORDER BY priority DESC, created, id LIMIT $shown
"""

FAILED = """
MATCH (p:Proposal {state: 'FAILED'})
RETURN p.id AS id, p.study AS study, p.number AS number, p.architecture AS architecture, p.reason AS reason,
       p.cause AS cause, p.worker AS worker, p.attempts AS attempts, p.finished AS finished
ORDER BY finished DESC, id LIMIT $shown
"""


def _queue(request: Request) -> Response:
    connection = archive_of(request).connection
    waiting, failed = connection.read(
        lambda tx: (tx.run(WAITING, shown=SHOWN).data(), tx.run(FAILED, shown=SHOWN).data())
    )
    blocked = reachability.unreachable(connection, workers.statuses(connection))
    unreachable = [
        {"study": one.study, "proposals": one.proposals, "first": one.first, "why": str(one)}
        for one in blocked
    ]
    return json_response(
        {"waiting": waiting, "failed": failed, "unreachable": unreachable, "shown": SHOWN}
    )


ROUTES = [Route("/api/queue", _queue)]
