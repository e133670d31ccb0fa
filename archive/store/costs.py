"""Costs of networks, on their nodes: known from outside, and never changed once they are there."""

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
    """Store `params` and `flops` of networks, by `key`, where they have none yet."""
    tx.run(SET, rows=rows).consume()
