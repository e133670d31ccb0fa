"""Costs of networks: on their nodes, imported values that never change once they are stored; names
of measured ones.

An evaluation has the costs of its network for its task as metrics (`archive.trainer.trial.costs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archive.values import checked_size

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

METRICS = ("params", "flops", "latency_ms", "latency_iqr_ms", "latency_batch", "peak_memory_bytes")
"""Metrics of an evaluation that are costs."""

SET = """
UNWIND $rows AS row
MATCH (a:Architecture {key: row.key})
USING INDEX SEEK a:Architecture(key)
SET a.params = coalesce(a.params, row.params), a.flops = coalesce(a.flops, row.flops)
"""


def add(tx: ManagedTransaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store `params` and `flops` of networks by `key`, for those without such values.

    Raises:
        UsageError: One is no whole number from 0 to 2^63 - 1.
    """
    checked = [
        {**row, **{name: checked_size(name, row[name]) for name in ("params", "flops")}}
        for row in rows
    ]
    tx.run(SET, rows=checked).consume()
