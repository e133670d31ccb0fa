"""Migration of schema 6 to 7: weights keep all they have, however often the migration is
interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from archive import settings
from archive.database.user_query import run_query
from archive.store import schema
from archive.store.records import Result, Weights
from tests.support.dumped import dumped, fill
from tests.support.stores import cells, count, everywhere, propose

TO_SCHEMA_6 = (
    (
        "CREATE CONSTRAINT checkpoint_uri_unique IF NOT EXISTS FOR (c:Checkpoint) REQUIRE c.uri IS "
        "UNIQUE"
    ),
    "MATCH (w:Weights) CREATE (c:Checkpoint {uri: w.uri}) SET c += properties(w)",
    (
        "MATCH (e:Evaluation)-[:SAVED]->(w:Weights) MATCH (c:Checkpoint {uri: w.uri}) CREATE "
        "(e)-[:SAVED]->(c)"
    ),
    "MATCH (w:Weights) DETACH DELETE w",
    "DROP CONSTRAINT weights_uri_unique IF EXISTS",
    "MATCH (m:SchemaMigration) WHERE m.version > 6 DELETE m",
    # What a user adds is kept, too.
    "MATCH (c:Checkpoint {uri: 'file:///0'}) MATCH (d:Checkpoint {uri: 'file:///1'}) "
    "CREATE (c)-[:`SAME AS` {by: 'ann'}]->(d) SET c.note = 'good', c.used = 5",
    (
        "MATCH (c:Checkpoint {uri: 'file:///1'}) MATCH (s:Study {name: 'one'}) CREATE "
        "(c)-[:SHOWN_BY "
        "{page: 3}]->(s)"
    ),
)
NODES = "MATCH (n:{label}) RETURN properties(n) AS properties"
RELATIONSHIPS = """
MATCH (n:{label})-[r]-(other)
RETURN n.uri, type(r), startNode(r) = n, properties(r), coalesce(other.id, other.name, other.uri)
"""
MIGRATE_AND_DIE = """
import os, signal
from archive import settings
from archive.database.connection import Connection
from archive.store import schema
from archive.store import schema

convert, calls = schema._rename_batch, []

def convert_and_die(tx, **names):
    converted = convert(tx, **names)
    calls.append(converted)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return converted

schema._rename_batch, schema.RENAME_BATCH = convert_and_die, 2
with Connection.open(settings.load()) as connection:
    schema.migrate(connection)
"""


def graph(connection, label):
    """Return all that is known of the weights, as sorted text."""
    queries = (NODES.format(label=label), RELATIONSHIPS.format(label=label))
    return [sorted(map(repr, run_query(connection, query).rows)) for query in queries]


@pytest.fixture
def former(archive, connection):
    """An archive of schema 6 with seven weights, one of them of two evaluations."""
    fill(archive)
    for name, number in (("a", 0), ("b", 1), ("c", 2), ("d", 3), ("e", 3)):
        propose(archive, cells(1), name)
        claim = archive.proposals.claim("w", study=name)
        saved = Weights(f"file:///{number}", f"{number}" * 64, number)
        archive.proposals.complete(claim.id, claim.token, Result(0.5, weights=saved))

    for statement in TO_SCHEMA_6:
        run_query(connection, statement, write=True)

    assert (schema.version(connection), count(connection, "(:Weights)")) == (6, 0)
    assert count(connection, "(:Evaluation)-[:SAVED]->(:Checkpoint)") == 8
    yield archive
    schema.migrate(connection)


def check_migrated(connection, before):
    assert graph(connection, "Weights") == before
    assert (schema.version(connection), count(connection, "(:Checkpoint)")) == (
        schema.MIGRATIONS[-1].version,
        0,
    )
    indexed = run_query(connection, "SHOW INDEXES YIELD labelsOrTypes, properties").rows
    assert (["Weights"], ["uri"]) in indexed and (["Checkpoint"], ["uri"]) not in indexed


@pytest.mark.every_server
def test_weights_keep_their_properties_and_relationships(former, connection, tmp_path):
    before = graph(connection, "Checkpoint")
    schema.migrate(connection)
    check_migrated(connection, before)
    assert former.weights.of_evaluation("a#00000") == Weights("file:///0", "0" * 64, 0)
    assert former.weights.of_evaluation("d#00000") == former.weights.of_evaluation("e#00000")
    # A dump reads every record.
    assert dumped(former, tmp_path / "after")


def test_an_interrupted_migration_goes_on(former, connection, monkeypatch):
    before = graph(connection, "Checkpoint")
    monkeypatch.setattr(schema, "RENAME_BATCH", 3)
    convert = schema._rename_batch
    calls = []

    def interrupted(tx, **names):
        converted = convert(tx, **names)
        calls.append(names)
        if len(calls) == 2:
            raise KeyboardInterrupt

        return converted

    monkeypatch.setattr(schema, "_rename_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        schema.migrate(connection)

    assert (count(connection, "(:Weights)"), count(connection, "(:Checkpoint)")) == (3, 4)
    assert (count(connection, "()-[:SAVED]->()"), schema.version(connection)) == (8, 6)
    schema.migrate(connection)
    check_migrated(connection, before)


@pytest.mark.whole
def test_a_killed_migration_goes_on(former, connection, store_settings):
    before = graph(connection, "Checkpoint")
    environment = {**os.environ, **settings.environment(store_settings)}
    ended = subprocess.run(
        [sys.executable, "-c", MIGRATE_AND_DIE], env=environment, timeout=100, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    # The second batch was not committed.
    assert (count(connection, "(:Weights)"), count(connection, "(:Checkpoint)")) == (2, 5)
    schema.migrate(connection)
    check_migrated(connection, before)


@pytest.mark.whole
def test_many_may_migrate_at_once(former, connection, open_connection, monkeypatch):
    monkeypatch.setattr(schema, "RENAME_BATCH", 1)
    before = graph(connection, "Checkpoint")
    connections = [open_connection() for _ in range(4)]
    everywhere(lambda at: schema.migrate(connections[at]), 4)
    check_migrated(connection, before)


def test_weights_that_are_there_already_take_over_the_relationships(former, connection):
    run_query(
        connection, "CREATE (:Weights {uri: 'file:///3', sha256: 'new', bytes: 3})", write=True
    )
    schema.migrate(connection)
    assert (
        count(connection, "(:Evaluation)-[:SAVED]->(:Weights {uri: 'file:///3', sha256: 'new'})")
        == 2
    )
