"""An archive that the first schema's release wrote, node by node, on each server: migrated, read, and searched on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from archive.api import Archive
from archive.architecture import codec
from archive.errors import SchemaVersionError
from archive.exchange.load import load
from archive.store import conversions, schema
from archive.store.records import Result
from tests.conftest import wipe
from tests.support.dumped import dumped
from tests.support.stores import STRAYS, Suggestion, cells, count

pytestmark = pytest.mark.every_server

OLD = json.loads((Path(__file__).parent / "archive-of-schema-1.json").read_text(encoding="utf-8"))
EXPECTED = OLD["expected"]
OPEN = sum(properties.get("state") in ("WAITING", "RUNNING") for _, properties in OLD["nodes"])


@pytest.fixture
def old(connection):
    """A connection to what the earlier release left behind; the schema's record is put back after the test."""
    connection.query("MATCH (m:SchemaMigration) DETACH DELETE m", write=True)
    nodes = [(labels[0], {**properties, "place": at}) for at, (labels, properties) in enumerate(OLD["nodes"])]
    for label, rows in _grouped(nodes).items():
        connection.query(f"UNWIND $rows AS row CREATE (n:{label}) SET n = row", {"rows": rows}, write=True)
    ends = [((kind, nodes[a][0], nodes[b][0]), [a, p, b]) for a, kind, p, b in OLD["relationships"]]
    for (kind, tail, head), rows in _grouped(ends).items():
        create = f"""UNWIND $rows AS row MATCH (a:{tail} {{place: row[0]}}) MATCH (b:{head} {{place: row[2]}})
                     CREATE (a)-[r:{kind}]->(b) SET r = row[1]"""
        connection.query(create, {"rows": rows}, write=True)
    connection.query("MATCH (n) REMOVE n.place", write=True)
    yield connection
    connection.query("MATCH (m:SchemaMigration) DETACH DELETE m", write=True)
    wipe(connection)
    schema.migrate(connection)


def _grouped(pairs):
    groups = {}
    for name, row in pairs:
        groups.setdefault(name, []).append(row)
    return groups


def versions(connection):
    return [row[0] for row in connection.query("MATCH (m:SchemaMigration) RETURN m.version ORDER BY m.version").rows]


def test_everything_is_read_as_it_was_written(old):
    assert versions(old) == [1]
    schema.migrate(old)
    assert versions(old) == list(range(1, schema.CURRENT_VERSION + 1))
    archive = Archive(old)
    found = [[e.id, e.architecture.key, e.value, dict(e.curve)] for e in archive.studies.evaluations()]
    assert found == EXPECTED["evaluations"]
    assert [each.state.value for each in archive.proposals.list("first")] == EXPECTED["states"]
    assert archive.studies.sources("second") == ["first"]
    for key, network in archive.architectures.get_many(EXPECTED["networks"]).items():
        assert codec.to_dict(network) == EXPECTED["networks"][key]
        assert network.functional_key == EXPECTED["functional_keys"][key]
        # Identity is for ever: this release gives the same network the same key.
        assert codec.from_dict(EXPECTED["networks"][key]).key == key
    assert count(old, "(a:Architecture) WHERE a.code IS NULL") == 0
    assert (count(old, STRAYS), count(old, "(p:Proposal) WHERE p.open = p.study")) == (0, OPEN)


def test_it_is_dumped_loaded_and_searched_on(old, tmp_path):
    schema.migrate(old)
    first = dumped(Archive(old), tmp_path / "one")
    wipe(old)
    load(old, tmp_path / "one")
    assert dumped(Archive(old), tmp_path / "two") == first
    archive = Archive(old)
    agent = archive.proposals.register_agent("random", {}, "2")
    known, new = cells(9)[0], cells(9)[8]
    # A network that the earlier release knew is known still.
    (made,) = archive.proposals.create("first", agent, [Suggestion(known), Suggestion(new)])
    assert made.number == len(EXPECTED["states"])
    claim = archive.proposals.claim("worker", study="first")
    assert archive.proposals.complete(claim.id, claim.token, Result(0.875))
    assert archive.studies.snapshot("first").incumbent.value == 0.875
    assert len(archive.studies.history("second")) == 4


def test_a_conversion_that_was_cut_off_goes_on_and_nothing_goes_back(old, monkeypatch):
    monkeypatch.setattr(conversions, "BATCH", 2)
    calls = []

    def cut(tx, keys, write=conversions._write_codes):
        calls.append(keys)
        if len(calls) == 2:
            raise KeyboardInterrupt
        write(tx, keys)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(conversions, "_write_codes", cut)
        schema.migrate(old)
    assert versions(old) == [1]
    assert count(old, "(a:Architecture) WHERE a.code IS NULL") == len(EXPECTED["networks"]) - 2
    schema.migrate(old)
    assert count(old, "(a:Architecture) WHERE a.code IS NULL") == 0
    # The earlier release refuses what this one has migrated.
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        patched.setattr(schema, "CURRENT_VERSION", 1)
        with pytest.raises(SchemaVersionError, match=f"schema version {versions(old)[-1]}.*this one knows 1: upgrade"):
            schema.migrate(old)
