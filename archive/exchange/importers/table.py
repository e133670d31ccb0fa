"""Importer of the results of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from archive.errors import TrainingError
from archive.exchange.importers.external import ExternalResult
from archive.spaces.tables.costs import is_cost, is_count
from archive.values import counted, is_size

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.spaces.tables.reader import Table
    from archive.store.records import Result


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
    columns = {
        name: table.costs(name) if is_cost(name) else table.column(name) for name in table.columns
    }
    for at, network in enumerate(table.architectures):
        try:
            result = task.answer(network, protocol)
        except TrainingError:
            continue  # no value in the table

        row = {
            name: float(values[at]) for name, values in columns.items() if values[at] == values[at]
        }
        whole = replace(result, metrics={**row, **result.metrics})
        size = {name: _size(row, name) for name in ("params", "flops")}
        yield ExternalResult(f"{task.name}/{protocol}/{network.key}", network, whole, **size)


def left_out(table: Table, value: str = "") -> Iterator[str]:
    """Yield a line for each column of costs with entries that are none: networks with such an entry
    lack the cost.

    Args:
        table: The table.
        value: Column of the values, which is read as it is.
    """
    for name, entries in table.impossible.items():
        if name == value:
            continue

        what = "a size from 0 to 2^63 - 1" if is_count(name) else "a finite number >= 0"
        yield (
            f"the column {name!r} is left out for {counted(len(entries.classes), 'network')} of "
            f"{table.origin}: "
            f"{entries.first}, which is not {what}"
        )


def _size(row: Mapping[str, float], name: str) -> int | None:
    exact = row.get(name)
    millions = row.get(f"{name}_millions")
    size = exact if exact is not None else None if millions is None else 1e6 * millions
    return round(size) if size is not None and is_size(size) else None
