"""The database schema: constraints and indexes, applied by recorded migrations.

Each migration has a version and is applied once; a (:SchemaMigration {version, name, applied}) node
records it. Every statement may run twice, so that two processes may migrate at the same time and an
interrupted migration runs again. A released migration is never edited: a correction is the next
migration.

Differences between the servers' dialects are confined to this module, with two exceptions:

- The timeout of a user's query is enforced by Neo4j, and for ArcadeDB by
  `archive.database.user_query`.
- The statements of a trial's transactions name their index, `USING INDEX SEEK`. Until Neo4j has
  gathered statistics it assumes that indexes are empty and prefers scans, and it keeps the plan of
  a statement that follows a write for as long as it runs: a statement without the hint that was
  planned in a new archive may scan for years. ArcadeDB ignores the hint.

A conversion changes stored data. It works in batches of one transaction each, and continues after
an interruption, because converted nodes no longer match.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, LiteralString, NamedTuple

import neo4j
from neo4j.exceptions import Neo4jError

from archive.backoff import Backoff
from archive.database.connection import Connection
from archive.errors import QueryError, SchemaVersionError

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

_ALREADY_THERE = frozenset(
    [
        "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists",
        "Neo.ClientError.Schema.ConstraintAlreadyExists",
        "Neo.ClientError.Schema.IndexAlreadyExists",
    ]
)
_ATTEMPTS = 5
_READ_VERSION: LiteralString = "MATCH (m:SchemaMigration) RETURN max(m.version) AS version"
_UNFINISHED: LiteralString = """
SHOW INDEXES YIELD name, labelsOrTypes, properties, state WHERE state <> 'ONLINE' RETURN name, labelsOrTypes, properties
"""
_RECORD: LiteralString = """
MERGE (m:SchemaMigration {version: $version})
ON CREATE SET m.name = $name, m.applied = timestamp()
"""


class Migration(NamedTuple):
    """One step of the schema.

    Attributes:
        version: Number, larger than the previous migration's.
        name: Summary of the step.
        unique: Properties that identify a node: `(label, property)`.
        indexed: Properties for the lookup of nodes: `(label, property)`.
        dropped: Obsolete uniqueness constraints of earlier migrations: `(label, property)`.
        relationships: Types of relationship that the step introduces.
        convert: Changes data that an earlier release wrote (`archive.store.schema`); may run
            again. It runs when the new constraints exist, and before the obsolete ones are dropped,
            because it looks nodes up by both.
    """

    version: int
    name: str
    unique: tuple[tuple[str, str], ...] = ()
    indexed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    relationships: tuple[str, ...] = ()
    convert: Callable[[Connection], None] | None = None


BASELINE = Migration(
    6,
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
        ("Checkpoint", "uri"),
    ),
    indexed=(
        ("Architecture", "functional_key"),
        ("Architecture", "space"),
        ("Layer", "op"),
        ("Proposal", "open"),
        ("Proposal", "state"),
        ("Proposal", "study"),
        ("Space", "name"),
        ("Task", "name"),
    ),
    relationships=(
        "CLAIMED", "DISTANCE", "FEEDS", "HAS_LAYER", "IN", "MADE", "MORPHED_INTO", "OF", "ON", "PROPOSED",
        "RESULTED_IN", "SAVED", "WARM_STARTED_FROM",
    ),
)  # fmt: skip
"""The oldest schema that is migrated.

Its number is 6: earlier ones were of development versions.
"""

WEIGHTS = Migration(
    7,
    "weights under their own name",
    unique=(("Weights", "uri"),),
    dropped=(("Checkpoint", "uri"),),
    convert=lambda connection: rename_label(connection, "Checkpoint", "Weights", "uri"),
)
"""Until version 6, the label of trained weights was Checkpoint."""

PROXIES = Migration(8, "zero-cost proxies of architectures on tasks", relationships=("MEASURED",))

BUILDS = Migration(9, "networks that models build of configurations", relationships=("BUILDS",))

BLOCKS = Migration(
    10,
    "blocks of imported networks",
    relationships=("HAS_BLOCK",),
    convert=lambda connection: add_blocks(connection),
)

DERIVATIONS = Migration(
    11,
    "runs that are changes of other runs",
    relationships=("DERIVED_FROM",),
    convert=lambda connection: link_runs(connection),
)

RUN_TEXTS = Migration(
    12,
    "long texts of runs as nodes of their own",
    unique=(("RunText", "id"),),
    relationships=("HAS_TEXT",),
    convert=lambda connection: move_run_texts(connection),
)

MIGRATIONS = (BASELINE, WEIGHTS, PROXIES, BUILDS, BLOCKS, DERIVATIONS, RUN_TEXTS)
LATEST = MIGRATIONS[-1].version
"""Version of the schema that this release writes."""


def migrate(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Migrate the archive to the schema of this release.

    Return immediately if it has that schema already.

    Args:
        connection: Connection to the archive.
        migrations: All migrations of the release, by version; the first one makes an empty database
            an archive.

    Raises:
        SchemaVersionError: A newer release wrote the archive, or a development version before the
            first release.
    """
    stored = version(connection)
    first = migrations[0].version
    last = migrations[-1].version
    if stored > last:
        raise SchemaVersionError(
            f"the archive at {connection.address} has schema version {stored}, written by a newer "
            f"release; this one knows {last}: upgrade with pip install --upgrade nas-archive"
        )

    if 0 < stored < first:
        raise SchemaVersionError(
            f"the archive at {connection.address} has schema version {stored}, "
            f"written by a development version; released schemas begin with {first}: "
            "dump it with the program that wrote it, and load the dump into an empty archive"
        )

    for migration in migrations:
        if migration.version > stored:
            _apply_patiently(connection, migration)


def version(connection: Connection) -> int:
    """Return the version of the last recorded migration; 0 for an empty database."""

    def work(transaction: neo4j.ManagedTransaction) -> int:
        record = transaction.run(_READ_VERSION).single(strict=True)
        return int(record["version"] or 0)

    return connection.read(work)


def present_indexes(migrations: Sequence[Migration] = MIGRATIONS) -> dict[tuple[str, str], bool]:
    """Return the indexed properties of the present schema, and whether each is unique.

    A property is `(label, property)`.
    """
    indexes: dict[tuple[str, str], bool] = {}
    for migration in migrations:
        indexes |= dict.fromkeys(migration.unique, True)
        indexes |= dict.fromkeys(migration.indexed, False)
        for dropped in migration.dropped:
            indexes.pop(dropped, None)

    return indexes


def rebuild_indexes(connection: Connection) -> int:
    """Build every index of an embedded archive again from the records, and return their number.

    Not by ArcadeDB's `REBUILD INDEX`: it drops the index of a property that no type declares, which
    openCypher's are, and then fails to create it.

    Raises:
        QueryError: An index cannot be built, as when two records have the same identifier.
    """
    indexes = present_indexes()
    for (label, name), unique in indexes.items():
        index = ((label, name),)
        definition = Migration(0, "", unique=index) if unique else Migration(0, "", indexed=index)
        kind, suffix = ("CONSTRAINT", "_unique") if unique else ("INDEX", "")
        _define(connection, f"DROP {kind} {label.lower()}_{name}{suffix} IF EXISTS")
        for statement in _definitions(definition):
            _define(connection, statement)

    return len(indexes)


def _apply_patiently(connection: Connection, migration: Migration) -> None:
    # Two processes that define the same constraints at once may fail with server-specific errors
    # (Neo4j: an "unexpected error", besides deadlocks). The repetition finds the constraints of the
    # other process.
    backoff = Backoff(0.5, 0.5 * 2**_ATTEMPTS, share=0.8)
    for _ in range(_ATTEMPTS - 1):
        try:
            return _apply(connection, migration)
        except QueryError:
            time.sleep(backoff.next_pause())

    return _apply(connection, migration)


def _apply(connection: Connection, migration: Migration) -> None:
    for statement in _definitions(migration):
        _define(connection, statement)

    if connection.dialect == "embedded":
        connection.write(lambda transaction: _introduce(transaction, migration.relationships))
    else:
        connection.read(lambda transaction: _await_indexes(transaction, migration.indexed))

    if migration.convert is not None:
        migration.convert(connection)

    for label, name in migration.dropped:
        _define(connection, f"DROP CONSTRAINT {label.lower()}_{name}_unique IF EXISTS")

    def record(transaction: neo4j.ManagedTransaction) -> None:
        transaction.run(_RECORD, version=migration.version, name=migration.name).consume()

    connection.write(record)


def _definitions(migration: Migration) -> Iterator[str]:
    """Yield the definitions of constraints and indexes, in forms that both servers understand."""
    for label, name in migration.unique:
        yield (
            f"CREATE CONSTRAINT {label.lower()}_{name}_unique IF NOT EXISTS FOR (n:{label}) "
            f"REQUIRE n.{name} IS UNIQUE"
        )

    for label, name in migration.indexed:
        yield f"CREATE INDEX {label.lower()}_{name} IF NOT EXISTS FOR (n:{label}) ON (n.{name})"


def _define(connection: Connection, statement: str) -> None:
    def work(transaction: neo4j.ManagedTransaction) -> None:
        try:
            transaction.run(statement).consume()
        except Neo4jError as error:
            # Another process defined it between the server's check of IF NOT EXISTS and its own
            # definition.
            if error.code not in _ALREADY_THERE:
                raise

    connection.write(work)


def _await_indexes(
    transaction: neo4j.ManagedTransaction, indexed: Collection[tuple[str, str]]
) -> None:
    """Wait until Neo4j has filled these indexes, for at most two minutes each.

    Not `db.awaitIndexes`, which waits for all of the database: where another process drops one
    meanwhile, it waits for that until the time is up.
    """
    names = []
    for name, labels, keys in transaction.run(_UNFINISHED).values():
        if (*labels, *keys) in indexed:
            names.append(name)

    for name in names:
        transaction.run("CALL db.awaitIndex($name, 120)", name=name).consume()


def _introduce(transaction: neo4j.ManagedTransaction, relationships: tuple[str, ...]) -> None:
    """Define the types of relationship on ArcadeDB.

    ArcadeDB defines a type inside the first transaction that uses it, which then conflicts with
    every other one.
    """
    for name in relationships:
        transaction.run(f"CREATE (:SchemaScratch)-[:{name}]->(:SchemaScratch)").consume()

    transaction.run("MATCH (n:SchemaScratch) DETACH DELETE n").consume()


RENAME_BATCH = 500
"""Number of nodes in one transaction."""

# Of several processes that migrate at once, one converts at a time: each reads the remaining nodes
# under this lock.
LOCK_LABEL = "MATCH (m:SchemaMigration) WITH m ORDER BY m.version LIMIT 1 SET m.name = m.name"


def add_blocks(connection: Connection) -> None:
    """Store the blocks of the imported networks that an earlier release stored."""
    while connection.write(_add_some_blocks, alone=True):
        pass


def _add_some_blocks(tx: ManagedTransaction) -> int:
    from archive.store.architectures import add_missing_blocks

    tx.run(LOCK_LABEL).consume()
    return add_missing_blocks(tx)


def link_runs(connection: Connection) -> None:
    """Link the runs that an earlier release stored to those that they are changes of."""
    from archive.store.studies.derivations import link_missing

    link_missing(connection)


def move_run_texts(connection: Connection) -> None:
    """Give the long texts of runs that an earlier release stored nodes of their own."""
    from archive.store.studies.run_texts import move_out_of_proposals

    move_out_of_proposals(connection)


def rename_label(connection: Connection, old: str, new: str, key: str) -> None:
    """Rename the label of nodes; their properties and relationships stay.

    ArcadeDB cannot change the label of a node. So a new node with the properties and relationships
    of the old one replaces it; further labels of the old one are not kept.

    Args:
        connection: Connection to the archive.
        old: Present label of the nodes.
        new: Their future label.
        key: Property that identifies a node under both labels. Nodes without it are left unchanged.
    """
    while connection.write(partial(_rename_batch, old=old, new=new, key=key), alone=True):
        pass


def _rename_batch(tx: ManagedTransaction, old: str, new: str, key: str) -> int:
    """Rename the label of some nodes within a transaction.

    Return their number, 0 if none is left.
    """
    tx.run(LOCK_LABEL).consume()
    # The assignment locks the nodes: no other transaction adds a relationship to one that is about
    # to be deleted.
    clause = (
        f"MATCH (n:{old}) WHERE n.{key} IS NOT NULL WITH n LIMIT $batch SET n.{key} = "
        f"n.{key} RETURN n.{key} AS id"
    )
    ids = sorted({row["id"] for row in tx.run(clause, batch=RENAME_BATCH)})
    if not ids:
        return 0

    seek = f"UNWIND $ids AS id {_seek('n', old, key)}"
    tx.run(
        f"{seek} MERGE (m:{new} {{{key}: id}}) ON CREATE SET m += properties(n)", ids=ids
    ).consume()
    types = []
    for row in tx.run(f"{seek} MATCH (n)-[r]-() RETURN DISTINCT type(r) AS type", ids=ids):
        types.append(row["type"])

    for name in types:
        # A type cannot be a parameter. A relationship between two renamed nodes is copied once for
        # each end, and its copies at old nodes are deleted with them.
        for left, right in (("<-", "-"), ("-", "->")):
            ends = (
                f"MATCH (n){left}[r:`{name}`]{right}(other) CREATE "
                f"(m){left}[s:`{name}`]{right}(other)"
            )
            tx.run(
                f"{seek} {_seek('m', new, key)} {ends} SET s += properties(r)", ids=ids
            ).consume()

    tx.run(f"{seek} DETACH DELETE n", ids=ids).consume()
    return len(ids)


def _seek(node: str, label: str, key: str) -> str:
    """Return the clause that looks a node up by `id`.

    Without the hint, Neo4j may scan (`archive.store.schema`).
    """
    return f"MATCH ({node}:{label} {{{key}: id}}) USING INDEX SEEK {node}:{label}({key})"
