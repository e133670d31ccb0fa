"""External results, imported as evaluations without a study: rows of tables and benchmark files.

An evaluation's id contains its origin, so importing the same file again, or a longer version, adds
new results only. A batch is one transaction. Repeating an interrupted import completes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.store import costs
from archive.store.architectures import batched, store
from archive.store.evaluations import Evaluations
from archive.store.records import Direction, Result
from archive.values import counted, is_duration, is_size

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
    notify: Callable[[str], None] | None = None,
) -> int:
    """Add results to the archive, and return their number; existing ones do not change.

    Seconds that are no duration, and sizes that are none, are left out.

    Args:
        archive: The archive.
        task: Name of the task.
        protocol: Name of the training protocol.
        results: Any number of results; they are read one batch at a time.
        direction: Whether larger or smaller values are better; None leaves it to the task's other
            results.
        notify: Receives a line for each quantity that is left out of a result.

    Raises:
        UsageError: The task is on record with the other direction.
    """
    count = 0
    left_out: Counter[str] = Counter()
    evaluations = Evaluations(archive.connection, archive.architectures)
    for part in batched((_usable(result, left_out) for result in results), BATCH):
        networks = [external.architecture for external in part]
        sizes = {
            external.architecture.key: {"params": external.params, "flops": external.flops}
            for external in part
        }
        known = [
            {"key": key, **sizes[key]}
            for key in sorted(sizes)
            if set(sizes[key].values()) != {None}
        ]
        archive.connection.write(partial(_networks, networks=networks, rows=known), alone=True)
        rows = [(external.id, external.architecture.key, external.result) for external in part]
        evaluations.add(task, protocol, rows, direction=direction)
        count += len(part)

    if notify is not None:
        for name, number in left_out.items():
            notify(
                f"{name} of {counted(number, 'result')} are left out: they must be {_FORMS[name]}"
            )

    return count


_FORMS = {
    "seconds": "a finite number >= 0",
    "params": "a whole number from 0 to 2^63 - 1",
    "flops": "a whole number from 0 to 2^63 - 1",
}


def _usable(external: ExternalResult, left_out: Counter[str]) -> ExternalResult:
    """Return a result without quantities that the store does not take, which are counted by
    name.
    """
    seconds = external.result.seconds
    if seconds is not None and not is_duration(seconds):
        left_out["seconds"] += 1
        external = replace(external, result=replace(external.result, seconds=None))

    if external.params is not None and not is_size(external.params):
        left_out["params"] += 1
        external = replace(external, params=None)

    if external.flops is not None and not is_size(external.flops):
        left_out["flops"] += 1
        external = replace(external, flops=None)

    return external


def _networks(
    tx: ManagedTransaction, networks: Sequence[Architecture], rows: Sequence[Mapping[str, Any]]
) -> None:
    store(tx, networks)
    if rows:
        costs.add(tx, rows)
