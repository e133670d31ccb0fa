"""Refusal of other machines: one line with the commands that move the archive to Neo4j."""

from __future__ import annotations

import pytest

from archive import settings
from archive.database import driver_errors
from archive.errors import SettingsError
from archive.server.access import refuse_address, refuse_remote


def test_a_launcher_is_refused_over_an_embedded_archive(tmp_path):
    with pytest.raises(SettingsError) as refused:
        refuse_remote(settings.load(home=tmp_path, environment={}), "archive launch slurm")

    message = str(refused.value)
    assert "\n" not in message and message.startswith("archive launch slurm needs")
    assert f"archive --home {tmp_path} dump | ARCHIVE_DB=neo4j://HOST:7687" in message
    assert "docker run" in message
    refuse_remote(
        settings.load(home=tmp_path, uri="bolt://db:7687", environment={}), "archive launch slurm"
    )


def test_a_trainer_is_refused_that_has_an_embedded_server_by_its_address(tmp_path):
    tunnel = settings.load(home=tmp_path, uri="bolt://127.0.0.1:40123", environment={})
    with pytest.raises(
        SettingsError,
        match=r"127\.0\.0\.1:40123 is an embedded archive.*archive "
        r"load",
    ):
        refuse_address(tunnel, "embedded")

    refuse_address(tunnel, "neo4j")
    refuse_address(settings.load(home=tmp_path, environment={}), "embedded")


@pytest.mark.parametrize(
    ("address", "hinted"),
    [("bolt://node7:41234", True), ("bolt://node7:7687", False), ("bolt://localhost:41234", False)],
)
def test_an_unreachable_address_of_an_embedded_server_says_that_it_serves_its_own_machine(
    address, hinted
):
    from neo4j.exceptions import ServiceUnavailable

    error = driver_errors.translate(ServiceUnavailable("refused"), address, "neo4j", None)
    assert ("embedded archive serves its own machine" in str(error)) is hinted
