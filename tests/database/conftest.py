"""Fixtures of connections."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from archive.database import connection as connections


@pytest.fixture
def address(connection):
    """Host and port of the server, user and password."""
    uri, user, password = connection.login
    return urlsplit(uri).hostname, urlsplit(uri).port, user, password


@pytest.fixture
def impatient_driver(monkeypatch):
    """Let the driver give up at once, where a test waits for nothing else."""
    monkeypatch.setattr(connections, "_DRIVER_RETRY_SECONDS", 0.1)
