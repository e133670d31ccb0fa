"""The shape of the data: constraints and indexes, put in place by recorded migrations.

Each migration has a number and is applied once; a (:SchemaMigration {version, name, applied}) node says so. Every
statement may run twice, so that two processes may migrate at once and a killed migration is simply run again.
A migration is never edited after its release: a change of mind is the next one.

Where a server needs its own form of something, the form lives here and nowhere else, with one exception. The
statements of a trial's transactions name the index that they look nodes up by, `USING INDEX SEEK`. Neo4j takes an index
for empty until it has counted what it holds, and would rather scan it then; and the plan of a statement that follows a
write, it keeps for as long as it runs. What is not named may be scanned for years, in an archive that was new when it
was planned. The embedded server passes over the words.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import LiteralString, NamedTuple

import neo4j
from neo4j.exceptions import Neo4jError

from archive.database.connection import Connection
from archive.errors import QueryError, SchemaVersionError
from archive.store import conversions

_ALREADY_THERE = frozenset(
    [
        "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
        "Neo.ClientError.Schema.ConstraintAlreadyExists",
        "Neo.ClientError.Schema.IndexAlreadyExists",
    ]
)
_ATTEMPTS = 5
_READ_VERSION: LiteralString = "MATCH (m:SchemaMigration) RETURN max(m.version) AS version"
_RECORD: LiteralString = """
MERGE (m:SchemaMigration {version: $version})
ON CREATE SET m.name = $name, m.applied = timestamp()
"""


class Migration(NamedTuple):
    """One step of the schema.

    Attributes:
        version: Its number, counted from 1.
        name: What it does.
        unique: Properties that identify a node: `(label, property)`.
        indexed: Properties that nodes are looked up by: `(label, property)`.
        dropped: What an earlier migration made unique, and nothing needs any more: `(label, property)`.
        relationships: Types of relationship that it introduces.
        convert: Changes data that an earlier release wrote; runs after the rest, and may run again.
    """

    version: int
    name: str
    unique: tuple[tuple[str, str], ...] = ()
    indexed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    relationships: tuple[str, ...] = ()
    convert: Callable[[Connection], None] | None = None


MIGRATIONS = (
    Migration(
        1,
        "identifiers, and what searches and trainers look up",
        unique=(
            ("SchemaMigration", "version"),
            ("Study", "name"),
            ("Task", "id"),
            ("Space", "id"),
            ("Agent", "id"),
            ("Worker", "id"),
            ("Proposal", "id"),
            ("Evaluation", "id"),
            ("Architecture", "key"),
            ("Layer", "id"),
            ("Checkpoint", "uri"),
        ),
        indexed=(
            ("Architecture", "functional_key"),
            ("Architecture", "space"),
            ("Layer", "op"),
            ("Proposal", "state"),
            ("Proposal", "study"),
            ("Space", "name"),
            ("Task", "name"),
        ),
        relationships=(
            "CLAIMED", "DISTANCE", "FEEDS", "HAS_LAYER", "IN", "MADE", "MORPHED_INTO", "OF", "ON", "PROPOSED",
            "RESULTED_IN", "SAVED", "WARM_STARTED_FROM",
        ),
    ),
    Migration(2, "networks as one text on their nodes", convert=conversions.write_codes),
    Migration(
        3,
        "pages of what studies found",
        unique=(("Page", "id"), ("Whole", "id")),
        relationships=("HAS_PAGE", "HAS_WHOLE"),
    ),
    # Layers are found by way of their network: to keep their ids unique took a quarter of the time to store one.
    Migration(4, "layers without ids", dropped=(("Layer", "id"),)),
    Migration(5, "open proposals by study", indexed=(("Proposal", "open"),), convert=conversions.mark_open),
    # Results are read from their nodes (`archive.store.result_columns`): a copy may outlive a user's change of them.
    Migration(6, "no copies of results", dropped=(("Page", "id"), ("Whole", "id")), convert=conversions.delete_pages),
)  # fmt: skip
CURRENT_VERSION = MIGRATIONS[-1].version


def migrate(connection: Connection) -> None:
    """Bring the archive to this release's schema; at once when it is there already.

    Raises:
        SchemaVersionError: A newer release wrote the archive.
    """
    found = version(connection)
    if found > CURRENT_VERSION:
        raise SchemaVersionError(
            f"the archive at {connection.address} has schema version {found}, written by a newer release; this one "
            f"knows {CURRENT_VERSION}: upgrade with pip install --upgrade nas-archive"
        )
    for migration in MIGRATIONS[found:]:
        _apply_patiently(connection, migration)


def version(connection: Connection) -> int:
    """The number of the last migration on record; 0 for an empty database."""

    def work(transaction: neo4j.ManagedTransaction) -> int:
        record = transaction.run(_READ_VERSION).single(strict=True)
        return int(record["version"] or 0)

    return connection.read(work)


def _apply_patiently(connection: Connection, migration: Migration) -> None:
    # Two processes that define the same things at once trip over each other in ways of the server's own (Neo4j: an
    # "unexpected error", beside deadlocks). Run again, a process finds the other one's work done.
    for attempt in range(_ATTEMPTS):
        try:
            return _apply(connection, migration)
        except QueryError:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(random.uniform(0.1, 0.5) * 2**attempt)


def _apply(connection: Connection, migration: Migration) -> None:
    for statement in _statements(migration):
        _define(connection, statement)
    if connection.dialect == "embedded":
        connection.write(lambda transaction: _introduce(transaction, migration.relationships))
    else:
        connection.read(lambda transaction: transaction.run("CALL db.awaitIndexes(120)").consume())
    if migration.convert is not None:
        migration.convert(connection)

    def record(transaction: neo4j.ManagedTransaction) -> None:
        transaction.run(_RECORD, version=migration.version, name=migration.name).consume()

    connection.write(record)


def _statements(migration: Migration) -> Iterator[str]:
    """The forms that both servers understand."""
    for label, name in migration.unique:
        yield (
            f"CREATE CONSTRAINT {label.lower()}_{name}_unique IF NOT EXISTS FOR (n:{label}) REQUIRE n.{name} IS UNIQUE"
        )
    for label, name in migration.indexed:
        yield f"CREATE INDEX {label.lower()}_{name} IF NOT EXISTS FOR (n:{label}) ON (n.{name})"
    for label, name in migration.dropped:
        yield f"DROP CONSTRAINT {label.lower()}_{name}_unique IF EXISTS"


def _define(connection: Connection, statement: str) -> None:
    def work(transaction: neo4j.ManagedTransaction) -> None:
        try:
            transaction.run(statement).consume()
        except Neo4jError as error:
            # Another process was faster between the server's look at IF NOT EXISTS and its own definition.
            if error.code not in _ALREADY_THERE:
                raise

    connection.write(work)


def _introduce(transaction: neo4j.ManagedTransaction, relationships: tuple[str, ...]) -> None:
    """Make the types of relationship known to the embedded server.

    It defines a type inside the first transaction that uses it, which then conflicts with every other one.
    """
    for name in relationships:
        transaction.run(f"CREATE (:SchemaScratch)-[:{name}]->(:SchemaScratch)").consume()
    transaction.run("MATCH (n:SchemaScratch) DETACH DELETE n").consume()
