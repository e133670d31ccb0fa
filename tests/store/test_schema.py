"""The schema on both servers: every id is unique, every migration recorded once, however many
migrate at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from archive.database.user_query import run_query
from archive.errors import QueryError, SchemaVersionError
from archive.store import schema

DROPPED = {pair for migration in schema.MIGRATIONS for pair in migration.dropped}
IDENTIFIERS = [
    pair for migration in schema.MIGRATIONS for pair in migration.unique if pair not in DROPPED
]
LOOKED_UP = [pair for migration in schema.MIGRATIONS for pair in migration.indexed]


@pytest.fixture
def bare(connection):
    """A connection to a server without a schema; the schema is restored after the test."""
    forget_schema(connection)
    yield connection
    run_query(connection, "MATCH (m:SchemaMigration) DELETE m", write=True)
    schema.migrate(connection)


@pytest.fixture
def toys(bare):
    """Two releases of a toy schema on a server without another schema:

    `toys(2)` migrates to the second one.
    """
    yield Toys(bare)
    run_query(bare, "MATCH (n:Toy) DELETE n", write=True)
    forget_schema(bare)


class Toys:
    """A schema: its second version drops a constraint, adds an index, and doubles the weights of
    stored toys."""

    def __init__(self, connection):
        self.connection = connection
        self.cut_off = 0
        self.batches = 0
        self.migrations = (
            schema.Migration(
                11, "toys", unique=(("SchemaMigration", "version"), ("Toy", "id"), ("Toy", "label"))
            ),
            schema.Migration(
                12,
                "toys by colour",
                indexed=(("Toy", "colour"),),
                dropped=(("Toy", "label"),),
                convert=self.convert,
            ),
        )

    def __call__(self, release=2):
        schema.migrate(self.connection, self.migrations[:release])

    def convert(self, connection):
        """Double one weight a transaction until all are doubled."""
        double = """MATCH (n:Toy) WHERE n.grams IS NULL WITH n ORDER BY n.id LIMIT 1
                    SET n.grams = 2 * n.weight RETURN count(n) AS done"""
        while connection.write(lambda tx: tx.run(double).single(strict=True)["done"]):
            self.batches += 1
            if self.batches == self.cut_off:
                raise KeyboardInterrupt

    def grams(self):
        return [
            row[0]
            for row in run_query(self.connection, "MATCH (n:Toy) RETURN n.grams ORDER BY n.id").rows
        ]

    def indexes(self):
        found = run_query(self.connection, "SHOW INDEXES YIELD labelsOrTypes, properties").rows
        return sorted(names[0] for labels, names in found if labels == ["Toy"])


def forget_schema(connection):
    for name, owner in run_query(connection, "SHOW CONSTRAINTS YIELD name, type").rows:
        assert owner
        run_query(connection, f"DROP CONSTRAINT `{name}`", write=True)

    for name, kind in run_query(connection, "SHOW INDEXES YIELD name, type").rows:
        if kind != "LOOKUP":
            run_query(connection, f"DROP INDEX `{name}`", write=True)

    run_query(connection, "MATCH (m:SchemaMigration) DELETE m", write=True)


def recorded(connection):
    return [
        version
        for (version,) in run_query(
            connection, "MATCH (m:SchemaMigration) RETURN m.version AS version ORDER BY version"
        ).rows
    ]


def test_versions_increase():
    versions = [migration.version for migration in schema.MIGRATIONS]
    assert versions == sorted(set(versions)) and versions[0] > 0


@pytest.mark.every_server
@pytest.mark.dialect
@pytest.mark.parametrize(("label", "name"), IDENTIFIERS)
def test_an_identifier_is_unique(connection, label, name):
    # No data has this value: the migrations' own record is numbered from 1.
    create = f"CREATE (:{label} {{{name}: $value}})"
    run_query(connection, create, {"value": -7}, write=True)
    with pytest.raises(QueryError):
        run_query(connection, create, {"value": -7}, write=True)

    run_query(connection, f"MATCH (n:{label} {{{name}: -7}}) DELETE n", write=True)


@pytest.mark.dialect
@pytest.mark.parametrize(("label", "name"), LOOKED_UP + IDENTIFIERS)
def test_what_is_looked_up_has_an_index(connection, label, name):
    found = run_query(connection, "SHOW INDEXES YIELD labelsOrTypes, properties").rows
    assert ([label], [name]) in found


@pytest.mark.every_server
@pytest.mark.dialect
def test_migrating_again_changes_nothing(connection):
    before = run_query(
        connection, "MATCH (m:SchemaMigration) RETURN m.version, m.name, m.applied"
    ).rows
    schema.migrate(connection)
    assert (
        run_query(connection, "MATCH (m:SchemaMigration) RETURN m.version, m.name, m.applied").rows
        == before
    )
    assert schema.version(connection) == schema.MIGRATIONS[-1].version


@pytest.mark.every_server
def test_nothing_but_the_record_is_left_behind(connection):
    assert run_query(connection, "MATCH (n) WHERE NOT n:SchemaMigration RETURN n").rows == []


@pytest.mark.every_server
@pytest.mark.dialect
def test_many_may_migrate_at_once(bare, open_connection):
    connections = [open_connection() for _ in range(4)]
    with ThreadPoolExecutor(len(connections)) as pool:
        list(pool.map(schema.migrate, connections))

    assert recorded(bare) == [migration.version for migration in schema.MIGRATIONS]
    found = run_query(bare, "SHOW INDEXES YIELD labelsOrTypes, properties").rows
    assert all(([label], [name]) in found for label, name in LOOKED_UP + IDENTIFIERS)


def test_a_migration_that_was_cut_off_is_finished(bare):
    # As after a kill: some of the constraints stand, none is on record.
    run_query(
        bare,
        "CREATE CONSTRAINT study_name_unique IF NOT EXISTS FOR (n:Study) REQUIRE n.name IS UNIQUE",
        write=True,
    )
    schema.migrate(bare)
    assert recorded(bare) == [migration.version for migration in schema.MIGRATIONS]


def test_a_newer_archive_is_refused(bare):
    schema.migrate(bare)
    newer = schema.MIGRATIONS[-1].version + 1
    run_query(
        bare,
        "CREATE (:SchemaMigration {version: $version, name: 'later'})",
        {"version": newer},
        write=True,
    )
    content = "MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties"
    before = run_query(bare, content).rows
    with pytest.raises(SchemaVersionError, match=f"version {newer}.*pip install --upgrade"):
        schema.migrate(bare)

    assert sorted(run_query(bare, content).rows, key=str) == sorted(before, key=str)


def test_an_archive_of_a_development_version_is_refused(bare):
    run_query(bare, "CREATE (:SchemaMigration {version: 3, name: 'earlier'})", write=True)
    with pytest.raises(
        SchemaVersionError, match=f"version 3.*begin with {schema.MIGRATIONS[0].version}: dump it"
    ):
        schema.migrate(bare)

    assert recorded(bare) == [3]


@pytest.mark.every_server
def test_each_release_applies_what_is_new_in_it(toys):
    toys(1)
    assert (recorded(toys.connection), toys.indexes()) == ([11], ["id", "label"])
    run_query(
        toys.connection,
        "UNWIND range(1, 3) AS id CREATE (:Toy {id: id, label: 'l' + id, weight: id})",
        write=True,
    )
    toys(2)
    assert (recorded(toys.connection), toys.indexes()) == ([11, 12], ["colour", "id"])
    assert (toys.grams(), toys.batches) == ([2, 4, 6], 3)
    # A recorded migration is not applied again.
    run_query(toys.connection, "CREATE (:Toy {id: 4, label: 'l1', weight: 4})", write=True)
    toys(2)
    assert (toys.grams(), toys.batches) == ([2, 4, 6, None], 3)
    with pytest.raises(SchemaVersionError, match=r"schema version 12.*this one knows 11: upgrade"):
        toys(1)


def test_a_migration_that_was_interrupted_goes_on(toys):
    toys(1)
    run_query(
        toys.connection,
        "UNWIND range(1, 3) AS id CREATE (:Toy {id: id, label: 'l' + id, weight: id})",
        write=True,
    )
    toys.cut_off = 2
    with pytest.raises(KeyboardInterrupt):
        toys(2)

    assert (recorded(toys.connection), toys.grams()) == ([11], [2, 4, None])
    toys(2)
    assert (recorded(toys.connection), toys.grams(), toys.batches) == ([11, 12], [2, 4, 6], 3)
