"""What migrations do to data that an earlier release wrote: batches that may run again, each one transaction.

Others may be at work meanwhile, of the earlier release too: what they add in the old form is still understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from archive import architectures, stored_code

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.connection import Connection

BATCH = 500

WITHOUT_CODE = "MATCH (a:Architecture) WHERE a.code IS NULL RETURN a.key AS key ORDER BY key LIMIT $limit"

SET_CODE = """
UNWIND $rows AS row
MATCH (a:Architecture {key: row.key})
SET a.code = row.code
"""


def write_codes(connection: Connection) -> None:
    """Give every architecture its text (`archive.stored_code`), from its layers and edges."""
    while keys := connection.read(_without_code):
        connection.write(partial(_write_codes, keys=keys))


def _without_code(tx: ManagedTransaction) -> list[str]:
    return [row["key"] for row in tx.run(WITHOUT_CODE, limit=BATCH)]


def _write_codes(tx: ManagedTransaction, keys: Sequence[str]) -> None:
    found = architectures.load(tx, keys)
    rows = [{"key": key, "code": stored_code.encode(found[key])} for key in sorted(found)]
    tx.run(SET_CODE, rows=rows).consume()
