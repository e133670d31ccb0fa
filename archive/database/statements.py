"""Writes that must reach every row they are given.

A statement that matches what it changes passes over, without a word, what it does not find. On the embedded server
that happens, very seldom, to what is there: whoever follows the relationships of a node, while another transaction
that adds some to it commits, may find none of them for an instant (one row in some 50,000, with a thousand writes a
second). So what belongs to a row is looked up by an index, not by way of nodes that everybody writes to; and a
statement that must not pass over anything counts what it wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archive.errors import IncompleteWriteError

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record


def write_all(tx: ManagedTransaction, statement: str, rows: Sequence[Mapping[str, Any]], **parameters: Any) -> Record:
    """Run a statement that returns, as `written`, how many of `$rows` it wrote; return all that it returns.

    Args:
        tx: The transaction.
        statement: Unwinds `$rows`, and ends with `RETURN count(*) AS written`, and more of that kind.
        rows: At least one.
        parameters: Others of the statement.

    Raises:
        IncompleteWriteError: It wrote fewer; the connection then runs the transaction again.
    """
    found = tx.run(statement, rows=list(rows), **parameters).single(strict=True)
    if found["written"] != len(rows):
        raise IncompleteWriteError(found["written"], [str(row["id"]) for row in rows])
    return found
