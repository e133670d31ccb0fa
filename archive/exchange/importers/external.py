"""External results, imported as evaluations without a study: rows of tables and benchmark files.

An evaluation's id contains its origin, so importing the same file again, or a longer version, adds new results only. A
batch is one transaction. Repeating an interrupted import completes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.store import costs
from archive.store.architectures import batched, store
from archive.store.evaluations import Evaluations
from archive.store.records import Direction, Result

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.api import Archive

BATCH = 250
"""Results of one transaction."""


@dataclass(frozen=True)
class ExternalResult:
    """One external result.

    Attributes:
        id: Id of the evaluation; equal for the same result of the same origin.
        architecture: The network.
        result: Value, metrics and costs.
        params: Number of weights of the network, if known.
        flops: Operations of one forward pass, if known.
    """

    id: str
    architecture: Architecture
    result: Result
    params: int | None = None
    flops: int | None = None


def add(
    archive: Archive,
    task: str,
    protocol: str,
    results: Iterable[ExternalResult],
    *,
    direction: Direction | None = None,
) -> int:
    """Add results to the archive, and return their number; existing ones do not change.

    Args:
        archive: The archive.
        task: Name of the task.
        protocol: Name of the training protocol.
        results: Any number of results; they are read one batch at a time.
        direction: Whether larger or smaller values are better; None leaves it to the task's other results.

    Raises:
        UsageError: The task is on record with the other direction.
    """
    count = 0
    evaluations = Evaluations(archive.connection, archive.architectures)
    for part in batched(results, BATCH):
        networks = [each.architecture for each in part]
        sizes = {each.architecture.key: {"params": each.params, "flops": each.flops} for each in part}
        known = [{"key": key, **sizes[key]} for key in sorted(sizes) if set(sizes[key].values()) != {None}]
        archive.connection.write(partial(_networks, networks=networks, rows=known), alone=True)
        rows = [(each.id, each.architecture.key, each.result) for each in part]
        evaluations.add(task, protocol, rows, direction=direction)
        count += len(part)
    return count


def _networks(tx: ManagedTransaction, networks: Sequence[Architecture], rows: Sequence[Mapping[str, Any]]) -> None:
    store(tx, networks)
    if rows:
        costs.add(tx, rows)
