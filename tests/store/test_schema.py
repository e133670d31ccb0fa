"""The schema on both servers: every id is unique, every migration recorded once, however many migrate at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from archive.errors import QueryError, SchemaVersionError
from archive.store import schema

pytestmark = pytest.mark.dialect

DROPPED = [pair for migration in schema.MIGRATIONS for pair in migration.dropped]
IDENTIFIERS = [pair for migration in schema.MIGRATIONS for pair in migration.unique if pair not in DROPPED]
LOOKED_UP = [pair for migration in schema.MIGRATIONS for pair in migration.indexed]


@pytest.fixture
def bare(connection):
    """A connection to a server without schema; it is put back after the test."""
    forget_schema(connection)
    yield connection
    connection.query("MATCH (m:SchemaMigration) DELETE m", write=True)
    schema.migrate(connection)


def forget_schema(connection):
    for name, owner in connection.query("SHOW CONSTRAINTS YIELD name, type").rows:
        assert owner
        connection.query(f"DROP CONSTRAINT `{name}`", write=True)
    for name, kind in connection.query("SHOW INDEXES YIELD name, type").rows:
        if kind != "LOOKUP":
            connection.query(f"DROP INDEX `{name}`", write=True)
    connection.query("MATCH (m:SchemaMigration) DELETE m", write=True)


def recorded(connection):
    return [
        version
        for (version,) in connection.query(
            "MATCH (m:SchemaMigration) RETURN m.version AS version ORDER BY version"
        ).rows
    ]


def test_versions_count_up_from_one():
    assert [migration.version for migration in schema.MIGRATIONS] == list(range(1, schema.CURRENT_VERSION + 1))


@pytest.mark.parametrize(("label", "name"), IDENTIFIERS)
def test_an_identifier_is_unique(connection, label, name):
    # No data has this value: the migrations' own record is numbered from 1.
    create = f"CREATE (:{label} {{{name}: $value}})"
    connection.query(create, {"value": -7}, write=True)
    with pytest.raises(QueryError):
        connection.query(create, {"value": -7}, write=True)
    connection.query(f"MATCH (n:{label} {{{name}: -7}}) DELETE n", write=True)


@pytest.mark.parametrize(("label", "name"), LOOKED_UP + IDENTIFIERS)
def test_what_is_looked_up_has_an_index(connection, label, name):
    found = connection.query("SHOW INDEXES YIELD labelsOrTypes, properties").rows
    assert ([label], [name]) in found


@pytest.mark.parametrize(("label", "name"), DROPPED)
def test_what_nobody_looks_up_has_none(connection, label, name):
    found = connection.query("SHOW INDEXES YIELD labelsOrTypes, properties").rows
    assert ([label], [name]) not in found
    connection.query(f"UNWIND [-7, -7] AS value CREATE (:{label} {{{name}: value}})", write=True)
    connection.query(f"MATCH (n:{label} {{{name}: -7}}) DELETE n", write=True)


def test_migrating_again_changes_nothing(connection):
    before = connection.query("MATCH (m:SchemaMigration) RETURN m.version, m.name, m.applied").rows
    schema.migrate(connection)
    assert connection.query("MATCH (m:SchemaMigration) RETURN m.version, m.name, m.applied").rows == before
    assert schema.version(connection) == schema.CURRENT_VERSION


def test_nothing_but_the_record_is_left_behind(connection):
    assert connection.query("MATCH (n) WHERE NOT n:SchemaMigration RETURN n").rows == []


def test_many_may_migrate_at_once(bare, open_connection):
    connections = [open_connection() for _ in range(4)]
    with ThreadPoolExecutor(len(connections)) as pool:
        list(pool.map(schema.migrate, connections))
    assert recorded(bare) == [migration.version for migration in schema.MIGRATIONS]
    found = bare.query("SHOW INDEXES YIELD labelsOrTypes, properties").rows
    assert all(([label], [name]) in found for label, name in LOOKED_UP + IDENTIFIERS)


def test_a_migration_that_was_cut_off_is_finished(bare):
    # As after a kill: some of the constraints stand, none is on record.
    bare.query("CREATE CONSTRAINT study_name_unique IF NOT EXISTS FOR (n:Study) REQUIRE n.name IS UNIQUE", write=True)
    schema.migrate(bare)
    assert recorded(bare) == [migration.version for migration in schema.MIGRATIONS]


def test_a_newer_archive_is_refused(bare):
    schema.migrate(bare)
    newer = schema.CURRENT_VERSION + 1
    bare.query("CREATE (:SchemaMigration {version: $version, name: 'later'})", {"version": newer}, write=True)
    with pytest.raises(SchemaVersionError, match=f"version {newer}.*pip install --upgrade"):
        schema.migrate(bare)
