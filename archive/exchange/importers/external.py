"""External results, imported as evaluations without a study: rows of tables and benchmark files.

An evaluation's id contains its origin, so importing the same file again, or a longer version, adds
new results only. A batch is one transaction. Repeating an interrupted import completes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from archive.architecture.graph import Architecture
from archive.errors import TrainingError
from archive.spaces.tables.costs import is_cost, is_count
from archive.store.architectures import batched, store
from archive.store.evaluations import Evaluations
from archive.store.metric_names import add_costs
from archive.store.records import Direction, Result
from archive.values import counted, is_duration, is_size

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.api import Archive
    from archive.spaces.tables.reader import Table


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
    provenance: Mapping[str, str] = MappingProxyType({}),
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
        provenance: Origin of the results, by names of `archive.store.records.PROVENANCE`; it
            replaces what a result says itself.
        notify: Receives a line for each quantity that is left out of a result.

    Raises:
        UsageError: The task is on record with the other direction.
    """
    count = 0
    left_out: Counter[str] = Counter()
    evaluations = Evaluations(archive.connection, archive.architectures)
    for part in batched((_usable(result, left_out) for result in results), BATCH):
        networks = [external.architecture for external in part]
        sizes = {}
        for external in part:
            sizes[external.architecture.key] = {"params": external.params, "flops": external.flops}

        stored = []
        for key in sorted(sizes):
            if set(sizes[key].values()) != {None}:
                stored.append({"key": key, **sizes[key]})

        archive.connection.write(partial(_networks, networks=networks, rows=stored), alone=True)
        rows = []
        for external in part:
            named = {**external.result.provenance, **provenance}
            result = replace(external.result, provenance=named)
            rows.append((external.id, external.architecture.key, result))

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
    """Return a result without unstorable quantities, which are counted by name."""
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
        add_costs(tx, rows)


class TableSource(Protocol):
    """Protocol of a task with a table of results."""

    @property
    def name(self) -> str:
        """Name of the task."""

    @property
    def table(self) -> Table:
        """The table."""

    def answer(self, architecture: Architecture, protocol: str | None = None) -> Result:
        """Return the result of a network.

        Raises:
            TrainingError: The table has none.
        """


def external_results(task: TableSource, protocol: str) -> Iterator[ExternalResult]:
    """Yield the result of each network of a table; every other column of numbers becomes a metric.

    Args:
        task: Task with the table.
        protocol: Name of the training protocol.
    """
    table = task.table
    columns = {}
    for name in table.columns:
        columns[name] = table.costs(name) if is_cost(name) else table.column(name)

    for index, network in enumerate(table.architectures):
        try:
            result = task.answer(network, protocol)
        except TrainingError:
            continue  # no value in the table

        row = {}
        for name, values in columns.items():
            if values[index] == values[index]:
                row[name] = float(values[index])

        metrics = {**row, **result.metrics}
        whole = replace(result, metrics=metrics, provenance=table.provenance)
        size = {name: _size(row, name) for name in ("params", "flops")}
        yield ExternalResult(f"{task.name}/{protocol}/{network.key}", network, whole, **size)


def left_out(table: Table, value: str = "") -> Iterator[str]:
    """Yield a line for each cost with invalid entries: networks with such an entry lack it.

    Args:
        table: The table.
        value: Column of the values, which is read as it is.
    """
    for name, entries in table.impossible.items():
        if name == value:
            continue

        what = "a size from 0 to 2^63 - 1" if is_count(name) else "a finite number >= 0"
        yield (
            f"the column {name!r} is left out for {counted(len(entries.classes), 'network')} "
            f"of {table.origin}: {entries.first}, which is not {what}"
        )


def _size(row: Mapping[str, float], name: str) -> int | None:
    exact = row.get(name)
    millions = row.get(f"{name}_millions")
    size = exact if exact is not None else None if millions is None else 1e6 * millions
    return round(size) if size is not None and is_size(size) else None
