"""A TCP proxy in front of a database server, by which a test makes outages."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import TracebackType

from archive import settings
from archive.database.connection import Connection


class Proxy:
    """Forwards connections from a port of this machine.

    Args:
        port: Port of the server.
        host: Host of the server.

    Attributes:
        port: Port of the proxy.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._server = (host, port)
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._flows = threading.Event()
        self._flows.set()
        self.port = 0
        self.begin()

    def begin(self) -> None:
        """Accept connections, on the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def freeze(self) -> None:
        """Keep all connections, accept new ones, and forward nothing until `thaw`."""
        self._flows.clear()

    def thaw(self) -> None:
        """Forward what has come meanwhile, and go on."""
        self._flows.set()

    def end(self) -> None:
        """Break all connections, and refuse new ones."""
        self.thaw()
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)

            self._listener.close()
            self._listener = None

        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.end()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self._server)
                self._open |= {client, server}
                for source, target in ((client, server), (server, client)):
                    threading.Thread(
                        target=self._forward, args=(source, target), daemon=True
                    ).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._flows.wait()
                target.sendall(data)

        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

        self._open.discard(source)
        source.close()


@contextmanager
def relayed(
    address: tuple[str, int, str, str], patience: float = 30.0
) -> Iterator[tuple[Proxy, Connection]]:
    """Yield a proxy, and a connection through it to the server of (host, port, user, password)."""
    host, port, user, password = address
    with Proxy(port, host) as proxy:
        own = settings.load(
            uri=f"bolt://127.0.0.1:{proxy.port}", user=user, password=password, patience=patience
        )
        if user == "root":
            own = replace(own, database="archive")

        with Connection.open(own) as connection:
            yield proxy, connection
