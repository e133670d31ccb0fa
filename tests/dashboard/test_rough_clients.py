"""Clients of every kind: whatever is sent, and wherever it is cut, the server answers in a line, or
stays silent.

A request of the test is random, from a seed: its method, path, parameters, headers and body. Some
clients leave before their body is whole, or without reading the answer.
"""

from __future__ import annotations

import json
import logging
import random
import re
import socket
import struct
import threading
from contextlib import suppress

import pytest

from archive.api import Archive
from archive.cli.serving import language_models
from archive.dashboard import application, news
from archive.dashboard.application import Options
from archive.dashboard.endpoints import changes
from archive.dashboard.server import DashboardServer
from tests.dashboard.conftest import TOKEN
from tests.support import WHOLE, wait_until
from tests.support.stores import evaluate

REQUESTS = 5000 if WHOLE else 250
SEED = 54
CUT = 0.2
"""Share of the clients that leave early."""

PATHS = sorted(
    {route.path for module in (*application.PAGES, changes) for route in module.ROUTES}
    - {"/api/map", "/api/comparison"}
    | {
        "/health",
        "/events",
        "/login",
        "/mcp",
        "/static/style.css",
        "/static/../access.py",
        "/static/",
        "//x",
        "/%00",
        "/é",
    }
)
NAMES = (
    *(
        "study",
        "network",
        "key",
        "find",
        "k",
        "kernel",
        "number",
        "numbers",
        "top",
        "axis",
        "most",
        "seconds",
        "topic",
    ),
    *(
        "order",
        "sort",
        "offset",
        "limit",
        "state",
        "theme",
        "distance",
        "space",
        "token",
        "query",
        "next",
    ),
)
WORDS = (
    *(
        "study",
        "nowhere",
        "workers",
        "studies",
        "study:study",
        "study:nowhere@3",
        "asc",
        "desc",
        "value",
        "number",
        "dark",
    ),
    *(
        "0",
        "1",
        "-1",
        "07",
        "1_0",
        "١٢",
        "1e3",
        "nan",
        "",
        " ",
        "9" * 5000,
        "\0",
        "\n",
        "'",
        "`",
        "<b>",
        "é",
        "😀",
    ),
    *(
        "..",
        "%2e%2e%2f",
        "a" * 2000,
        "otmann",
        "edit",
        "profile",
        "nasbench201",
        "study#00001",
        "@",
        ":",
        "{}",
        "null",
    ),
)
CYPHER = (
    "RETURN 1",
    "CREATE (x)",
    "RETURN $x",
    "MATCH (n RETURN n",
    "how many studies are there?",
    "",
    "RETURN 1/0",
)
METHODS = (
    "GET",
    "GET",
    "GET",
    "POST",
    "POST",
    "HEAD",
    "PUT",
    "DELETE",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "BREW",
    "get",
)
STATUSES = {200, 202, 206, 303, 304, 307, 400, 401, 403, 404, 405, 406, 409, 413, 415, 416, 421}
"""Those of the guide and of the web server: none says that the server failed."""


@pytest.fixture
def address(archive):
    """Address of a server that may write and serves the tools of language models, in a thread of
    this process."""
    evaluate(archive, [0.5, 0.7, 0.6])
    shown = Archive(archive.connection)
    server = DashboardServer(
        shown,
        port=0,
        token=TOKEN,
        options=Options(write=True),
        extensions=[language_models(shown, True)],
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started, what="the start of the dashboard")
    yield "127.0.0.1", server.access.port
    server.stop()
    thread.join()


class RoughClient:
    """A client that sends random requests over connections of its own.

    Args:
        address: Address of the server.
        seed: Seed of the requests.
        keys: Keys of networks of the archive.
    """

    def __init__(self, address, seed, keys):
        self.address = address
        self.keys = keys
        self.random = random.Random(seed)

    def word(self):
        return self.random.choice((*WORDS, *self.keys))

    def value(self, depth=0):
        """Return a random JSON value."""
        kind = self.random.randrange(9 if depth < 2 else 7)
        if kind < 3:
            return self.word()

        if kind < 6:
            return self.random.choice((None, True, -1, 0, 1.5, 2**70, -1e300, 10**400))

        if kind == 6:
            return self.random.choice(CYPHER)

        if kind == 7:
            return [self.value(depth + 1) for _ in range(self.random.randrange(3))]

        return {self.word(): self.value(depth + 1) for _ in range(self.random.randrange(3))}

    def target(self):
        path = re.sub(r"\{[^}]*\}", lambda _: self.word(), self.random.choice(PATHS))
        pairs = [(self.random.choice(NAMES), self.word()) for _ in range(self.random.randrange(4))]
        if self.random.random() < 0.5:
            pairs.append(("study", "study"))

        if self.random.random() < 0.3:
            pairs += [("network", key) for key in self.random.sample(self.keys, 2)]

        query = "&".join(f"{name}={value}" for name, value in pairs)
        quoted = "".join(
            mark if "!" < mark < "\x7f" else f"%{ord(mark):02x}" for mark in f"{path}?{query}"
        )
        return self.random.choice(
            (quoted, quoted, quoted, quoted[:60].replace("%", "%%"), path.replace(" ", ""))
        )

    def body(self):
        kind = self.random.randrange(8)
        if kind == 0:
            return self.random.randbytes(self.random.randrange(200))

        if kind == 1:
            return b"[" * 100_000

        if kind == 2:
            return b'{"cypher": "\\ud800"}'

        if kind == 3:
            return b"x" * 1_100_000

        if kind == 4:
            call = {
                "name": self.random.choice(("query", "study", "nope")),
                "arguments": self.value(),
            }
            message = {"jsonrpc": "2.0", "id": self.value(), "method": "tools/call", "params": call}
            return json.dumps(message).encode()

        names = (
            "study",
            "network",
            "proposal",
            "cypher",
            "name",
            "parameters",
            "note",
            "tags",
            "priority",
            "reason",
        )
        document = {
            name: self.value() for name in self.random.sample(names, self.random.randrange(5))
        }
        return json.dumps(self.random.choice((document, self.value())), allow_nan=True).encode()

    def request(self):
        """Return the bytes of a request; the last part of its body may be missing."""
        host = "{}:{}".format(*self.address)
        headers = {
            "Host": host,
            "Authorization": f"Bearer {TOKEN}",
            "Accept": "application/json, text/event-stream",
        }
        odd = {
            "Host": "evil.org",
            "Authorization": f"Bearer {self.random.choice(('', 'wrong', 'é'))}",
            "Accept": self.random.choice(("text/html", "*/*", "")),
            "Origin": self.random.choice((f"http://{host}", "http://evil.org", "null", "")),
            "Last-Event-ID": self.word()[:40].replace("\n", "").replace("\0", ""),
            "Content-Type": self.random.choice(
                ("application/json", "text/plain", "multipart/form-data", ";")
            ),
            "Range": self.random.choice(("bytes=0-3", "bytes=9-", "bytes=x", "bytes=-1")),
            "If-None-Match": "*",
            "Mcp-Session-Id": "x",
            "Mcp-Protocol-Version": self.random.choice(("2025-06-18", "x")),
            "Cookie": "a=b; =; archive-dashboard=é",
        }
        chosen = self.random.sample(sorted(odd), self.random.choice((0, 0, 1, 1, 2)))
        headers |= {name: odd[name] for name in chosen}
        method = self.random.choice(METHODS)
        body = b""
        if method in ("POST", "PUT", "PATCH") or self.random.random() < 0.1:
            body = self.body()
            headers.setdefault("Content-Type", "application/json")
            headers["Content-Length"] = str(len(body) + self.random.choice((0, 0, 0, 0, 100)))

        lines = [
            f"{method} {self.target()} HTTP/1.1",
            *(f"{name}: {text}" for name, text in headers.items()),
        ]
        return (
            "\r\n".join([*lines, "Connection: close", "", ""]).encode("utf-8", "surrogatepass")
            + body
        )

    def send(self):
        """Send a request, and return status, head and body of the answer; None if there is none."""
        content = self.request()
        with socket.create_connection(self.address, timeout=60.0) as connection:
            leaves = self.random.random() < CUT
            short = int(re.search(rb"Content-Length: (\d+)|$", content)[1] or 0) > len(
                content.partition(b"\r\n\r\n")[2]
            )
            with suppress(ConnectionError):
                connection.sendall(
                    content[: self.random.randrange(2 * len(content))] if leaves else content
                )

            if leaves or short:
                # Closed by a reset in half of the cases.
                linger = struct.pack("ii", self.random.randrange(2), 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return None

            return read_answer(connection)


def read_answer(connection):
    """Return status, head and body; of a stream, only the beginning."""
    received = b""
    with suppress(ConnectionError):
        while part := connection.recv(65536):
            received += part
            if b"text/event-stream" in received.partition(b"\r\n\r\n")[0]:
                break

    head, _, body = received.partition(b"\r\n\r\n")
    if not head:
        return None  # reset by the server, which had refused the body before its end

    return int(head.split()[1]), head, body


def test_no_request_leaves_a_trace(archive, address, monkeypatch, caplog, capfd):
    monkeypatch.setattr(news, "BEAT_SECONDS", 0.1)
    keys = [key for (key,) in archive.query("MATCH (a:Architecture) RETURN a.key").rows]
    client = RoughClient(address, SEED, keys)
    with caplog.at_level(logging.WARNING):
        for _ in range(REQUESTS):
            answer = client.send()
            if answer is None:
                continue

            status, head, body = answer
            assert status in STATUSES, (status, head, body[:500])
            assert b"Traceback" not in body
            if status >= 400 and b"application/json" in head and body:
                error = json.loads(body)["error"]
                # The SDK writes those of JSON-RPC.
                assert error["message"] if isinstance(error, dict) else error.count("\n") == 0, (
                    error
                )

        with socket.create_connection(address, timeout=60.0) as connection:
            host = "{}:{}".format(*address)
            connection.sendall(
                f"GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
            )
            assert read_answer(connection)[0] == 200

    assert [record.getMessage() for record in caplog.records] == []
    assert capfd.readouterr() == ("", "")
