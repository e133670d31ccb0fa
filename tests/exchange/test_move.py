"""The move of an embedded archive to a Neo4j server, by the command that refusals of other machines
show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from archive.api import Archive
from archive.database.connection import Connection
from archive.exchange.load import load
from archive.server.access import way_to_neo4j
from archive.store import schema
from tests.conftest import SERVERS
from tests.support.dumped import dumped, fill


@pytest.mark.whole
@pytest.mark.every_server
@pytest.mark.lasts(8)
@pytest.mark.skipif("neo4j" not in SERVERS, reason="the archive moves to Neo4j")
@pytest.mark.parametrize("store_settings", ["neo4j"], indirect=True)
def test_the_shown_pipe_moves_an_embedded_archive_to_neo4j(archive, store_settings, home, tmp_path):
    with Connection.open(home) as connection:
        schema.migrate(connection)
        fill(Archive(connection))
        before = dumped(Archive(connection), tmp_path / "before")

    secret = tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text(store_settings.password)
    command = re.search(r"\((archive --home .*? archive load)\)", way_to_neo4j(home.home))[1]
    command = command.replace("neo4j://HOST:7687", store_settings.uri).replace(
        "=FILE", f"={secret}"
    )
    own = {name: value for name, value in os.environ.items() if not name.startswith("ARCHIVE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}"
    moved = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env={
            **own,
            "PATH": path,
            "ARCHIVE_USER": store_settings.user or "neo4j",
            "ARCHIVE_HOME": str(tmp_path / "no"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert moved.returncode == 0, moved.stderr
    assert re.search(r"proposal\W+6\W+6", moved.stdout)
    # Neo4j holds exactly what the embedded server held, and the way back brings nothing new.
    assert dumped(archive, tmp_path / "after") == before
    with Connection.open(home) as connection:
        assert not any(load(connection, tmp_path / "after")[1].values())
