"""The web server of the page: a socket, and uvicorn on it until a signal.

The socket listens first, so that a port in use is one clear error, and so that the address with the
token can be shown before the first request.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn

from archive import values
from archive.dashboard.access import Access
from archive.dashboard.application import Extension, Options, create
from archive.errors import UsageError

if TYPE_CHECKING:
    from archive.api import Archive

PORT = 8765
"""Port of the dashboard unless another one is given."""


class DashboardServer:
    """A dashboard with the socket that it listens on.

    Args:
        archive: The archive to show.
        host: Address to listen on.
        port: Port; 0 for a free one.
        token: Token of access; None for a random one.
        names: Further host names by which browsers may reach it.
        options: Settings of the page.
        extensions: Further routes.

    Raises:
        UsageError: The address cannot be used.
        SettingsError: The token is too short.
    """

    def __init__(
        self,
        archive: Archive,
        *,
        host: str = "127.0.0.1",
        port: int = PORT,
        token: str | None = None,
        names: tuple[str, ...] = (),
        options: Options | None = None,
        extensions: Sequence[Extension] = (),
    ) -> None:
        """Bind the socket; `run` serves."""
        self._socket = _bound(host, port)
        login = {} if token is None else {"token": token}
        try:
            self.access = Access(
                host=host, port=self._socket.getsockname()[1], names=names, **login
            )
            self.application = create(archive, self.access, options, extensions)
        except BaseException:
            self._socket.close()
            raise

        config = uvicorn.Config(
            self.application,
            log_level="critical",  # an access log would contain the token of the first request
            log_config=None,
            timeout_graceful_shutdown=1,  # streams of news never end by themselves
            server_header=False,
            lifespan="on",
        )
        self._server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """Address of the page, without the token."""
        host = self.access.host
        shown = socket.gethostname() if host in ("0.0.0.0", "::", "") else values.in_url(host)
        return f"http://{shown}:{self.access.port}/"

    @property
    def address_with_token(self) -> str:
        """Address that opens the page without further ado; a secret."""
        return f"{self.address}?token={self.access.token}"

    @property
    def started(self) -> bool:
        """Whether requests are answered."""
        return self._server.started

    def run(self) -> None:
        """Serve until SIGINT, SIGTERM or `stop`."""
        try:
            # Ctrl-C is the ordinary end; uvicorn raises it again once it has closed the
            # connections.
            with suppress(KeyboardInterrupt):
                self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End `run`, from another thread."""
        self.application.state.news.close()
        self._server.should_exit = True


def _bound(host: str, port: int) -> socket.socket:
    bound = socket.socket(values.family_of(host), socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        # A browser that opens the printed address at once waits for the answer instead of being
        # refused.
        bound.listen()
    except (OSError, OverflowError) as error:
        bound.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} of {host} is in use: choose another one, or --port 0 for a free one"
            ) from None

        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"cannot listen on {host}, port {port}: {reason}") from None

    return bound
