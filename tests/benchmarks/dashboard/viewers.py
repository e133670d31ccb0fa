"""Viewers of a study: clients that ask for what its open page asks for, and draw nothing.

    page ─ points ─ stream of news ── news with results ──> table, curves, lineage

A viewer keeps the intervals of `static/views/study.js`. Viewers run in a separate process, so that
they do not hold the interpreter of the server.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import urlencode

PARTS: dict[str, tuple[float, dict[str, Any]]] = {
    "proposals": (
        2.0,
        {"sort": "value", "order": "desc", "offset": 0, "limit": 50, "state": "", "find": ""},
    ),
    "curves": (5.0, {"top": 20}),
    "lineage": (10.0, {}),
}
"""Least seconds between two requests of each part of the page, and the parameters of the
request."""
START_SECONDS = 60.0
"""Longest time until all viewers of a process have the study."""
STEP = 0.2


@dataclass
class Received:
    """Counts of the answered requests of viewers, of their messages of news with results, and of
    bytes.
    """

    requests: int = 0
    news: int = 0
    bytes: int = 0


class Viewer:
    """A viewer of one study.

    Args:
        port: Port of the page on this machine.
        token: Token of access.
        study: Name of the study.

    Attributes:
        received: Its counts so far.
        opened: Set as soon as it has the study and its stream of news is open.
    """

    def __init__(self, port: int, token: str, study: str) -> None:
        self.received = Received()
        self.opened = threading.Event()
        self._port = port
        self._study = study
        self._headers = {"authorization": f"Bearer {token}"}
        self._ended = threading.Event()
        self._changed = threading.Event()
        self._wanted = set(PARTS)
        self._best = b""
        self._stream: socket.socket | None = None

    def run(self) -> None:
        """Watch the study until `stop`, from another thread."""
        version = self._open()
        asking = threading.Thread(target=self._ask, daemon=True)
        asking.start()
        topics = [("topic", f"study:{self._study}@{version}"), ("topic", "workers@")]
        connection = HTTPConnection("127.0.0.1", self._port)
        connection.connect()
        self._stream = connection.sock
        answer = _answer(connection, f"/events?{urlencode(topics)}", self._headers)
        self.opened.set()
        try:
            while line := answer.readline():
                self._read(line)
        except (OSError, HTTPException):
            if not self._ended.is_set():
                raise

        connection.close()
        asking.join()

    def stop(self) -> None:
        """End `run`, which has opened the stream."""
        self._ended.set()
        if self._stream is not None:
            self._stream.shutdown(socket.SHUT_RDWR)

    def _open(self) -> str:
        """Load the page and the points of the study, and return their version."""
        connection = HTTPConnection("127.0.0.1", self._port)
        self._get(connection, f"/study?{urlencode({'study': self._study})}")
        points = self._get(connection, f"/api/study/points?{urlencode({'study': self._study})}")
        connection.close()
        return str(json.loads(points[4 : 4 + int.from_bytes(points[:4], "little")])["version"])

    def _read(self, line: bytes) -> None:
        """Take a line of the stream; results make the parts of the page out of date."""
        self.received.bytes += len(line)
        if not line.startswith(b"data:") or b'"rows"' not in line:
            return

        self.received.news += 1
        begin = line.find(b'"best":')
        best = line[begin : line.find(b"}", begin)]
        self._wanted |= {"proposals", "curves"} if best == self._best else set(PARTS)
        self._best = best
        self._changed.set()

    def _ask(self) -> None:
        """Request the parts that are out of date, each after its interval."""
        due = dict.fromkeys(PARTS, 0.0)
        while not self._ended.is_set():
            self._changed.wait(STEP)
            self._changed.clear()
            for name in sorted(self._wanted):
                seconds, parameters = PARTS[name]
                if time.monotonic() < due[name]:
                    continue

                self._wanted.discard(name)
                due[name] = time.monotonic() + seconds
                # The server keeps an unused connection for five seconds only.
                connection = HTTPConnection("127.0.0.1", self._port)
                self._get(
                    connection,
                    f"/api/study/{name}?{urlencode({'study': self._study, **parameters})}",
                )
                connection.close()

    def _get(self, connection: HTTPConnection, path: str) -> bytes:
        content = _answer(connection, path, self._headers).read()
        self.received.requests += 1
        self.received.bytes += len(content)
        return content


@contextmanager
def viewers(port: int, token: str, study: str, count: int) -> Iterator[Received]:
    """Run viewers in a separate process during a block, from when they have the study.

    Args:
        port: Port of the page on this machine.
        token: Token of access.
        study: Name of the study.
        count: Number of viewers.

    Yields:
        The counts of all of them, filled in at the end of the block.

    Raises:
        RuntimeError: The viewers could not begin, or have failed.
    """
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe()
    process = context.Process(
        target=_watch, args=(port, token, study, count, child_end), daemon=True
    )
    process.start()
    child_end.close()
    received = Received()
    try:
        if not parent_end.poll(START_SECONDS) or parent_end.recv() != "open":
            raise RuntimeError(
                f"{count} viewers have not opened the study {study} within {START_SECONDS:g} s"
            )

        yield received
        parent_end.send("end")
        received.requests, received.news, received.bytes = parent_end.recv()
    except EOFError:
        raise RuntimeError("the viewers have failed") from None
    finally:
        parent_end.close()
        process.join(START_SECONDS)
        process.kill()


def _watch(port: int, token: str, study: str, count: int, pipe: Any) -> None:
    watching = [Viewer(port, token, study) for _ in range(count)]
    threads = [threading.Thread(target=viewer.run, daemon=True) for viewer in watching]
    for thread in threads:
        thread.start()

    if not all(viewer.opened.wait(START_SECONDS) for viewer in watching):
        return

    pipe.send("open")
    pipe.recv()
    alive = all(thread.is_alive() for thread in threads)
    for viewer in watching:
        viewer.stop()

    if alive:
        totals = (vars(viewer.received).values() for viewer in watching)
        pipe.send(tuple(map(sum, zip(*totals, strict=True))))


def _answer(connection: HTTPConnection, path: str, headers: dict[str, str]) -> HTTPResponse:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"{path.partition('?')[0]} answered {answer.status}")

    return answer
