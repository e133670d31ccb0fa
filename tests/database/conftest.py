"""Fixtures of connections."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest


@pytest.fixture
def address(connection):
    """Host and port of the server, user and password."""
    uri, user, password = connection.login
    return urlsplit(uri).hostname, urlsplit(uri).port, user, password
