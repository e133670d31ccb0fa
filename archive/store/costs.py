"""Costs of networks on their nodes: imported values that never change once they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

SET = """
UNWIND $rows AS row
MATCH (a:Architecture {key: row.key})
USING INDEX SEEK a:Architecture(key)
SET a.params = coalesce(a.params, row.params), a.flops = coalesce(a.flops, row.flops)
"""


def add(tx: ManagedTransaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store `params` and `flops` of networks by `key`, for those without such values."""
    tx.run(SET, rows=rows).consume()
