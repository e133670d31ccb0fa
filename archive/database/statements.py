"""Shared statements of the store: locks, derived properties, and counted writes.

Derived properties depend on the state of a proposal.

`MATCH … SET` silently skips rows without a match. On ArcadeDB, an existing row is skipped very
rarely: a traversal that races with a commit on the same node may see no relationships (about one
row in 50,000, at a thousand writes a second). Neighbours of a row are therefore looked up by an
index, not through nodes with many writers, and a statement that must not skip rows counts the rows
that it wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from archive.errors import IncompleteWriteError

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record

RowT = TypeVar("RowT", bound=Mapping[str, Any])
Label = Literal["Architecture", "Study", "Weights", "Worker"]

KEYS: Mapping[Label, str] = {
    "Architecture": "key",
    "Study": "name",
    "Weights": "uri",
    "Worker": "id",
}
"""Labels of the nodes that are locked as such, each with the property that identifies them."""


def revised(node: str) -> str:
    """Return the assignment that locks a node: `SET {revised('s')}`.

    A changed property is a write lock on Neo4j, and a conflict at commit on ArcadeDB.
    """
    return f"{node}.revision = coalesce({node}.revision, 0) + 1"


def rewritten(study: str) -> str:
    """Return the assignments that must follow a change of proposals outside the queue: `SET {…}`.

    Readers with cached proposals then read all of them again (`archive.store.snapshots`), the next
    addition counts the proposals (`archive.queue.admission`), and the next result at a rung reads
    all others (`archive.queue.rungs`).
    """
    uncounted = f"{study}.admitted = null, {study}.next_number = null, {study}.rung_borders = null"
    return f"{study}.rewritten = coalesce({study}.rewritten, 0) + 1, {uncounted}"


def lock_statement(label: Label) -> str:
    """Return the statement that locks the nodes of `$ids`."""
    return f"""
UNWIND $ids AS id
MATCH (n:{label} {{{KEYS[label]}: id}})
USING INDEX SEEK n:{label}({KEYS[label]})
SET {revised("n")}
"""


def lock(tx: ManagedTransaction, label: Label, ids: Iterable[str]) -> None:
    """Lock nodes, so that other transactions that lock one of them cannot commit before this one.

    Args:
        tx: The transaction.
        label: Label of the nodes.
        ids: Identifiers of the nodes. All callers lock them in one order, which prevents deadlocks.
    """
    tx.run(lock_statement(label), ids=sorted(set(ids))).consume()


def follows_from_state(finished: str) -> str:
    """Return the clauses that follow every change of the state of a proposal `p`.

    An open proposal, waiting or running, has the name of its study in `open`, which is indexed; an
    ended one has `finished`.

    Args:
        finished: Cypher expression for the time at which an ended proposal ended.
    """
    return f"""SET p.open = CASE WHEN p.state IN ['WAITING', 'RUNNING'] THEN p.study END
SET p.finished = CASE WHEN p.open IS NULL THEN {finished} END,
    p.suspected = CASE WHEN p.open IS NOT NULL THEN p.suspected END"""


def by_column(rows: Iterable[RowT], name: str) -> dict[Any, RowT]:
    """Return rows by their value in a column, in their order; of equal values, the last row."""
    return {row[name]: row for row in rows}


def write_all(
    tx: ManagedTransaction, statement: str, rows: Sequence[Mapping[str, Any]], **parameters: Any
) -> Record:
    """Run a statement that returns the number of written `$rows`, and return its record.

    The number's name is `written`.

    Args:
        tx: The transaction.
        statement: Unwinds `$rows`, and ends with `RETURN count(*) AS written`, possibly with
            further columns.
        rows: At least one.
        parameters: Others of the statement.

    Raises:
        IncompleteWriteError: The statement wrote fewer rows; the connection then runs the
            transaction again.
    """
    record = tx.run(statement, rows=list(rows), **parameters).single(strict=True)
    if record["written"] != len(rows):
        raise IncompleteWriteError(record["written"], [str(row["id"]) for row in rows])

    return record
