"""`connect`: with settings, an address, or names of settings; clear errors for anything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from archive.api import connect
from archive.errors import SettingsError, StoreUnavailableError, UsageError


def test_an_address_may_come_first(archive, store_settings):
    archive.studies.names()
    given = {name: getattr(store_settings, name) for name in ("home", "user", "password")}
    if store_settings.embedded:
        with pytest.raises(StoreUnavailableError, match="localhost:1"):
            connect("neo4j://localhost:1", home=store_settings.home, patience=0.0)

        return

    with connect(store_settings.uri, **given) as found:
        assert found.studies.names() == []


def test_other_arguments_get_an_error_with_the_way_out():
    with pytest.raises(SettingsError, match=r"not the address of a Neo4j server: '/tmp/archive'"):
        connect("/tmp/archive")

    with pytest.raises(UsageError, match="in a folder, home=FOLDER"):
        connect(Path("/tmp/archive"))

    with pytest.raises(TypeError, match="a configuration or overrides, not both"):
        connect("neo4j://localhost:1", uri="neo4j://localhost:2")
