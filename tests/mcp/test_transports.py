"""The transports of the tools: a real process over stdio, and HTTP within a page."""

from __future__ import annotations

import logging
import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from archive.mcp import server, transports
from archive.mcp.access import ArchiveAccess
from tests.support.commands import Shell
from tests.support.stores import evaluate


@pytest.mark.lasts(8)
def test_a_client_starts_the_command_and_talks_over_stdio(archive, store_settings, tmp_path):
    evaluate(archive, [0.25])
    shell = Shell(store_settings, tmp_path)
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "archive.cli.main", "mcp"], env=shell.environment
    )

    async def work():
        async with Client(command) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            return tools, await client.call_tool("studies"), await client.call_tool("study", {"name": "none"})

    tools, studies, wrong = anyio.run(work)
    assert "query" in tools and "propose" not in tools
    assert studies.structured_content["studies"][0]["best"] == 0.25
    assert wrong.content[0].text.endswith("unknown study 'none': known: study")


def test_a_server_leaves_the_logging_of_its_process_as_it_is(monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    server.create(ArchiveAccess(lambda: None))
    assert logging.getLogger().handlers == []


def test_a_page_serves_the_tools_beside_its_own_routes(archive):
    evaluate(archive, [0.25])
    tools = server.create(ArchiveAccess(lambda: archive))
    routes = [Route("/", lambda _: PlainTextResponse("page")), *transports.application(tools).routes]

    @asynccontextmanager
    async def lifespan(_):
        async with transports.running(tools):
            yield

    page = Starlette(routes=routes, lifespan=lifespan)

    async def work():
        transport = httpx2.ASGITransport(page)
        async with (
            page.router.lifespan_context(page),
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as web,
        ):
            async with Client(streamable_http_client("http://127.0.0.1:8080/mcp", http_client=web)) as client:
                answer = await client.call_tool("studies")
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            headers = {"Accept": "application/json, text/event-stream"}
            foreign = [
                await web.post("/mcp", json=message, headers={**headers, **wrong})
                for wrong in ({"Host": "evil.example"}, {"Origin": "http://evil.example"})
            ]
            return answer, (await web.get("/")).text, [response.status_code for response in foreign]

    answer, text, foreign = anyio.run(work)
    assert answer.structured_content["studies"][0]["best"] == 0.25
    assert (text, foreign) == ("page", [421, 403])


def test_without_its_extra_the_command_says_what_to_install(store_settings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = Shell(store_settings, tmp_path).types("mcp", code=2)
    assert done.stderr == "error: the MCP SDK is not installed: pip install 'nas-archive[mcp]'\n"
