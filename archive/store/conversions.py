"""What migrations do to data that an earlier release wrote: batches that may run again, each one transaction.

Others may be at work meanwhile, of the earlier release too: what they add in the old form is still understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from archive.architecture import compact
from archive.store import architectures
from archive.store.records import State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

BATCH = 500

WITHOUT_CODE = "MATCH (a:Architecture) WHERE a.code IS NULL RETURN a.key AS key ORDER BY key LIMIT $limit"

SET_CODE = """
UNWIND $rows AS row
MATCH (a:Architecture {key: row.key})
SET a.code = row.code
"""

# A proposal that waits or runs names its study once more, in a property that is indexed.
MARK_OPEN = """
MATCH (p:Proposal {state: $state}) WHERE p.open IS NULL
WITH p ORDER BY p.id LIMIT $limit
SET p.open = p.study
RETURN count(*) AS marked
"""

DELETE_PAGES = """
MATCH (n:{label}) WITH n LIMIT $limit
DETACH DELETE n
RETURN count(n) AS deleted
"""


def delete_pages(connection: Connection) -> None:
    """Delete the copies of results that earlier releases kept as Page and Whole nodes."""
    for label in ("Page", "Whole"):
        while connection.write(partial(_delete, label=label)):
            pass


def _delete(tx: ManagedTransaction, label: str) -> int:
    return int(tx.run(DELETE_PAGES.format(label=label), limit=100).single(strict=True)["deleted"])


def mark_open(connection: Connection) -> None:
    """Give proposals that wait or run the property `open`."""
    for state in (State.WAITING, State.RUNNING):
        while connection.write(partial(_mark_open, state=state)):
            pass


def _mark_open(tx: ManagedTransaction, state: State) -> int:
    return int(tx.run(MARK_OPEN, state=state.value, limit=BATCH).single(strict=True)["marked"])


def write_codes(connection: Connection) -> None:
    """Give every architecture its text (`archive.architecture.compact`), from its layers and edges."""
    while keys := connection.read(_without_code):
        connection.write(partial(_write_codes, keys=keys))


def _without_code(tx: ManagedTransaction) -> list[str]:
    return [row["key"] for row in tx.run(WITHOUT_CODE, limit=BATCH)]


def _write_codes(tx: ManagedTransaction, keys: Sequence[str]) -> None:
    found = architectures.load(tx, keys)
    rows = [{"key": key, "code": compact.encode(found[key])} for key in sorted(found)]
    tx.run(SET_CODE, rows=rows).consume()
