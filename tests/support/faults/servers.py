"""Servers that can be killed and started again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from archive import settings
from archive.server import embedded as server
from archive.settings import Settings
from tests.support import java_only


@dataclass
class Store:
    """A server that can be killed, and comes back."""

    settings: Settings
    kill: Callable[[], None]


@contextlib.contextmanager
def embedded(home: Path) -> Iterator[Store]:
    """The embedded server over a folder; whoever asks it next starts it again."""
    own = settings.load(home=home, environment=java_only(), patience=60.0)

    def kill() -> None:
        status = server.status(own)
        for pid in (status.java_pid, status.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                if pid:
                    psutil.Process(pid).kill()

    try:
        yield Store(own, kill)
    finally:
        server.stop(own)


@contextlib.contextmanager
def neo4j(home: Path) -> Iterator[Store]:
    """A real Neo4j, started again three seconds after a kill."""
    from tests.support.neo4j import server as neo4j_server

    with neo4j_server.Neo4jServer.start(neo4j_server.LTS, home / "server") as running:

        def kill() -> None:
            running.kill()
            time.sleep(3)
            running.launch()

        login = {"uri": running.uri, "user": running.user, "password": running.password}
        yield Store(settings.load(home=home, environment={}, patience=60.0, **login), kill)


STORES = {"embedded": embedded, "neo4j": neo4j}
