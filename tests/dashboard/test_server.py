"""The server of the page: it listens from the beginning, and Ctrl-C is its ordinary end."""

from __future__ import annotations

import signal
import socket
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from archive.dashboard.server import DashboardServer
from archive.errors import SettingsError
from tests.support import wait_until
from tests.support.commands import shell


def test_the_port_listens_before_the_address_is_shown(archive):
    server = DashboardServer(archive, port=0)
    try:
        with socket.create_connection(("127.0.0.1", server.access.port), timeout=5.0):
            assert not server.started
    finally:
        server._socket.close()


def test_the_port_is_free_where_the_application_cannot_be_made(archive, monkeypatch):
    def fail(*arguments):
        raise SettingsError("no application")

    monkeypatch.setattr("archive.dashboard.server.create", fail)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]

    with pytest.raises(SettingsError, match="no application"):
        DashboardServer(archive, port=port)

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5.0)


def test_ctrl_c_ends_the_page_quietly(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as user:
        served = user.starts("dashboard", "--port", "0")
        address = wait_until(
            lambda: [line for line in user.said.splitlines() if line.startswith("http")]
        )[0]
        parts = urlsplit(address)
        with closing(HTTPConnection(parts.hostname, parts.port, timeout=30.0)) as page:
            page.request("GET", f"/?{parts.query}")
            with page.getresponse() as answer:
                assert answer.status < 400

        wait_until(lambda: "Ctrl-C ends the page" in user.said)
        before = user.said
        served.send_signal(signal.SIGINT)
        assert served.wait(30.0) == 0
        assert user.said == before
