"""Transports: stdin and stdout for a local client, HTTP for a page that mounts it."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, final

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/mcp"


@final
class WholeRequests:
    """ASGI application that hands a request on when its body is there.

    A client that leaves before is no failure; the SDK would log a traceback for it.

    Args:
        application: The application behind it.
    """

    def __init__(self, application: ASGIApp) -> None:
        """Keep the application."""
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the application refuses one that is too large after its beginning.

        Args:
            scope: The request.
            receive: Returns the parts of its body.
            send: Takes the answer.
        """
        received: deque[Message] = deque()
        size = 0
        whole = False
        while not whole and size <= DEFAULT_MAX_REQUEST_BODY_SIZE:
            message = await receive()
            if message["type"] == "http.disconnect":
                return

            received.append(message)
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)

        async def replay() -> Message:
            return received.popleft() if received else await receive()

        # There are no sessions, hence no stream to continue: the SDK would leave such a request
        # without an answer.
        headers = [(name, value) for name, value in scope["headers"] if name != b"last-event-id"]
        await self._application({**scope, "headers": headers}, replay, send)


def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve one client over standard input and output, until it closes the input.

    While the server runs, nothing else reaches standard output: the SDK points it at standard
    error.
    """
    anyio.run(server.run_stdio_async)


def application(
    server: MCPServer[Any], *, path: str = PATH, hosts: Sequence[str] | None = None
) -> Starlette:
    """Return the server as an ASGI application of one route: streamable HTTP without sessions.

    A page takes its `routes`, and enters `running(server)` in its own lifespan. Authentication is
    the page's.

    Args:
        server: The server; it has one application.
        path: Path of the route.
        hosts: Accepted values of the headers Host and, with their scheme, Origin, `:*` for any
            port; None for the names of this machine. An empty list leaves the check to the page.
    """
    answering = server.streamable_http_app(
        streamable_http_path=path,
        json_response=True,
        stateless_http=True,
        transport_security=_security(hosts),
    )
    for route in answering.routes:
        if isinstance(route, Route):
            route.app = WholeRequests(route.app)

    return answering


@asynccontextmanager
async def running(server: MCPServer[Any]) -> AsyncIterator[None]:
    """Run the server behind its application; enter it once, in the lifespan of the page."""
    async with server.session_manager.run():
        yield


def _security(hosts: Sequence[str] | None) -> TransportSecuritySettings | None:
    if hosts is None:
        return None

    origins = []
    for host in hosts:
        origins += [f"http://{host}", f"https://{host}"]

    return TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(hosts),
        allowed_hosts=list(hosts),
        allowed_origins=origins,
    )
