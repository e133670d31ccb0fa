"""Importer of the results of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from archive.errors import TrainingError
from archive.exchange.importers.external import ExternalResult

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
    columns = {name: table.column(name) for name in table.columns}
    for at, network in enumerate(table.architectures):
        try:
            result = task.answer(network, protocol)
        except TrainingError:
            continue  # no value in the table
        row = {name: float(values[at]) for name, values in columns.items() if values[at] == values[at]}
        whole = replace(result, metrics={**row, **result.metrics})
        size = {name: _size(row, name) for name in ("params", "flops")}
        yield ExternalResult(f"{task.name}/{protocol}/{network.key}", network, whole, **size)


def _size(row: Mapping[str, float], name: str) -> int | None:
    if name in row:
        return round(row[name])
    return round(1e6 * row[f"{name}_millions"]) if f"{name}_millions" in row else None
