"""`Archive.py2neo()`: a py2neo graph on the same data, for notebooks that have one."""

from __future__ import annotations

import sys

import pytest

from archive.api import connect
from archive.errors import SettingsError


@pytest.fixture
def graph(archive):
    pytest.importorskip("py2neo", reason="the extra py2neo is not installed")
    graph = archive.py2neo()
    yield graph
    graph.service.connector.close()


@pytest.mark.every_server
def test_it_reads_what_the_archive_wrote(archive, graph):
    archive.query("CREATE (:Study {name: 'a', budget: 20})-[:ON]->(:Task {id: 't'})", write=True)
    assert graph.run(
        "MATCH (s:Study)-[:ON]->(t) RETURN s.budget AS budget, t.id AS task"
    ).data() == [{"budget": 20, "task": "t"}]
    assert graph.nodes.match("Study", name="a").first()["budget"] == 20


def test_the_archive_reads_what_it_wrote(archive, graph):
    graph.run("CREATE (:Study {name: $name})", name="b")
    assert archive.query("MATCH (s:Study) RETURN s.name").rows == [("b",)]


def test_a_missing_package_names_the_extra(archive, monkeypatch):
    monkeypatch.setitem(sys.modules, "py2neo", None)
    with pytest.raises(SettingsError, match=r"pip install 'nas-archive\[py2neo\]'"):
        archive.py2neo()


def test_connect_takes_settings_or_overrides(store_settings):
    with pytest.raises(TypeError):
        connect(store_settings, home="elsewhere")


def test_connect_brings_the_schema(home):
    with connect(home) as archive:
        assert archive.query("MATCH (m:SchemaMigration) RETURN count(m) > 0").rows == [(True,)]
        assert archive.query("MATCH (s:Study) RETURN s.name").rows == []
