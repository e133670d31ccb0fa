"""The transports of the tools: a real process over stdio, and HTTP within a page."""

from __future__ import annotations

import logging
import sys

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from archive.cli.serving import language_models
from archive.dashboard import application
from archive.dashboard.access import Access
from archive.mcp import server
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
            return (
                tools,
                await client.call_tool("studies"),
                await client.call_tool("study", {"study": "none"}),
            )

    tools, studies, wrong = anyio.run(work)
    assert "query" in tools and "propose" not in tools
    assert studies.structured_content["studies"][0]["best"] == 0.25
    assert wrong.content[0].text.endswith("unknown study 'none': known: study")


def test_a_server_leaves_the_logging_of_its_process_as_it_is(monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    server.create(ArchiveAccess(lambda: None))
    assert logging.getLogger().handlers == []


def test_the_dashboard_serves_the_tools_behind_its_token(archive):
    evaluate(archive, [0.25])
    token = "a token of sixteen"
    address = "http://127.0.0.1:8765"
    page = application.create(
        archive, Access(token, "127.0.0.1", 8765), extensions=[language_models(archive, False)]
    )

    async def work():
        bearer = {"Authorization": f"Bearer {token}"}
        async with (
            page.router.lifespan_context(page),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(page), base_url=address) as web,
        ):
            allowed = httpx2.AsyncClient(
                transport=httpx2.ASGITransport(page), base_url=address, headers=bearer
            )
            async with (
                allowed,
                Client(streamable_http_client(f"{address}/mcp", http_client=allowed)) as client,
            ):
                answer = await client.call_tool("studies")

            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            headers = {"Accept": "application/json, text/event-stream"}
            wrong = ({}, {"Authorization": "Bearer wrong"}, {"Authorization": token})
            foreign = (
                {**bearer, "Host": "evil.example"},
                {**bearer, "Origin": "http://evil.example"},
            )
            pages = ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"})
            refused = [
                await web.post("/mcp", json=message, headers={**headers, **each})
                for each in (*wrong, *foreign, *pages)
            ]
            return answer, [*refused, await web.get("/mcp", headers=headers)]

    answer, refused = anyio.run(work)
    assert answer.structured_content["studies"][0]["best"] == 0.25
    assert [response.status_code for response in refused] == [
        401,
        401,
        401,
        421,
        403,
        403,
        403,
        401,
    ]
    for response in refused:
        if response.status_code == 401:
            assert response.headers["www-authenticate"] == "Bearer"
            assert (
                "'Authorization: Bearer TOKEN', with the token of the address"
                in response.json()["error"]
            )

    assert refused[0].json()["error"].startswith("a token is needed")
    assert refused[1].json()["error"].startswith("the token is wrong")


def test_without_its_extra_the_command_says_what_to_install(store_settings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = Shell(store_settings, tmp_path).types("mcp", code=2)
    assert done.stderr == "error: the MCP SDK is not installed: pip install 'nas-archive[mcp]'\n"
