"""Transports of a server: standard input and output for a local client, HTTP for a page that mounts it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

PATH = "/mcp"


def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve one client over standard input and output, until it closes the input.

    While the server runs, nothing else reaches standard output: the SDK points it at standard error.
    """
    anyio.run(server.run_stdio_async)


def application(server: MCPServer[Any], *, path: str = PATH, hosts: Sequence[str] | None = None) -> Starlette:
    """Return the server as an ASGI application with one route, for streamable HTTP without sessions.

    A page takes its `routes`, and enters `running(server)` in its own lifespan. Authentication is the page's.

    Args:
        server: The server; it has one application.
        path: Path of the route.
        hosts: Accepted values of the headers Host and, with their scheme, Origin, `:*` for any port; None for those of
            this machine. An empty list leaves the check to the page.
    """
    return server.streamable_http_app(
        streamable_http_path=path, json_response=True, stateless_http=True, transport_security=_security(hosts)
    )


@asynccontextmanager
async def running(server: MCPServer[Any]) -> AsyncIterator[None]:
    """Run the server behind its application; enter it once, in the lifespan of the page."""
    async with server.session_manager.run():
        yield


def _security(hosts: Sequence[str] | None) -> TransportSecuritySettings | None:
    if hosts is None:
        return None
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=bool(hosts), allowed_hosts=list(hosts), allowed_origins=origins
    )
