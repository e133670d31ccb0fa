"""Rows of a table as runs: a mapping says which column is what."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from archive.architecture.graph import Architecture
from archive.architecture.open_graphs.operation_graphs import read_graph
from archive.errors import InvalidArchitectureError, UsageError
from archive.runs.arguments import split_seed
from archive.runs.history.external_run import (
    ExternalHistory,
    ExternalRun,
    cause_of,
    describe,
    is_success,
)
from archive.runs.history.table_columns import (
    RunMapping,
    check_columns,
    curve_columns,
    curve_points,
    identity_of,
    list_columns,
    named_columns,
    start_of,
    text_of,
)
from archive.runs.history.table_files import TableRow
from archive.store.properties import latest
from archive.values import as_float

MOST_TEXT = 200
"""Longest text that is a value of a run; a longer one is left out, unless it is the reason."""


def runs_of_rows(rows: Sequence[TableRow], mapping: RunMapping) -> ExternalHistory:
    """Return the rows of a table as runs, in their order; a row without an id has its number.

    Args:
        rows: The rows, oldest first.
        mapping: Which column is what.

    Raises:
        UsageError: A column of the mapping is in no row, an id is there twice, or a time is none.
    """
    columns = list_columns(rows)
    check_columns(mapping, columns)
    return _Table(rows, mapping, columns).history()


class _Table:
    """The rows of a table as runs."""

    def __init__(
        self, rows: Sequence[TableRow], mapping: RunMapping, columns: Sequence[str]
    ) -> None:
        """Read identities, and decide what each column is."""
        self._rows = rows
        self._mapping = mapping
        self._columns = columns
        self._steps = curve_columns(mapping, columns)
        self._values = self._value_columns()
        self._networks = self._read_networks()
        self._identities = self._read_identities()

    def history(self) -> ExternalHistory:
        """Return the runs, and the columns of which nothing is kept."""
        runs = []
        for position, identity in enumerate(self._identities):
            row = self._rows[position]
            curve = self._curve(row)
            values, seed = self._values_and_seed(row)
            status = text_of(row, self._mapping.status)
            cause = cause_of(status or "")
            motivation = text_of(row, self._mapping.motivation)
            if status is not None and cause is None and not is_success(status):
                motivation = describe(None, motivation, [status])

            runs.append(
                ExternalRun(
                    identity=identity,
                    values=values,
                    metrics=self._metrics(row, curve),
                    curve=curve,
                    parent=self._parent(row),
                    motivation=motivation,
                    reason=None if cause is None else f"{status}, as the table says",
                    cause=None if cause is None else cause.value,
                    started=start_of(row, self._mapping.started),
                    seed=seed,
                    network=self._networks[position],
                )
            )

        kept = {*self._values, *self._mapped(), *self._mapping.metrics, *self._mapping.curves}
        for steps in self._steps.values():
            kept |= {column for _, column in steps}

        return ExternalHistory(runs, [column for column in self._columns if column not in kept])

    def _read_networks(self) -> list[Architecture | None]:
        """Return the network of each row; None where its cell is empty."""
        column = self._mapping.graph
        networks: list[Architecture | None] = []
        for position, row in enumerate(self._rows):
            cell = None if column is None else row.get(column)
            try:
                is_empty = _is_missing(cell) or cell == ""
                network = None if is_empty else read_graph(cell, self._mapping.unordered)
            except InvalidArchitectureError as error:
                raise UsageError(
                    f"row {position + 1} has no graph in the column {column}: {error}"
                ) from error

            networks.append(network)

        self._check_unordered(networks)
        return networks

    def _check_unordered(self, networks: Iterable[Architecture | None]) -> None:
        """Check that the operations without an order of inputs are operations of the graphs.

        Raises:
            UsageError: One is not: its graphs would be told apart by the order.
        """
        operations: set[str] = set()
        for network in networks:
            if network is not None:
                operations.update(layer.op for layer in network.layers[1:-1])

        lowered = {operation.lower() for operation in operations}
        for name in self._mapping.unordered:
            if name.lower() not in lowered:
                listed = ", ".join(sorted(operations)[:20]) or "none"
                raise UsageError(
                    f"no graph has the operation {name!r:.60} without an order of inputs; "
                    f"operations: {listed}"
                )

    def _read_identities(self) -> dict[str, int]:
        """Return the position of each row by its id."""
        positions: dict[str, int] = {}
        repeats: dict[str, int] = {}
        for position, row in enumerate(self._rows):
            identity = str(position)
            if self._mapping.identity is not None:
                identity = identity_of(row.get(self._mapping.identity, ""))

            if not identity:
                raise UsageError(
                    f"row {position + 1} has no id in the column {self._mapping.identity!r}"
                )

            if identity in positions:
                self._check_repeat(identity, positions[identity], position)
                number = repeats.get(identity, 1) + 1
                while f"{identity} ({number})" in positions:
                    number += 1

                repeats[identity] = number
                identity = f"{identity} ({number})"

            positions[identity] = position

        return positions

    def _check_repeat(self, identity: str, first: int, second: int) -> None:
        """Check that two rows of one id trained the same network on the same values.

        Raises:
            UsageError: They did not.
        """
        before = self._networks[first]
        after = self._networks[second]
        is_repeat = before is not None and after is not None and before.key == after.key
        values = self._values_and_seed(self._rows[first])[0]
        if not is_repeat or values != self._values_and_seed(self._rows[second])[0]:
            raise UsageError(
                f"rows {first + 1} and {second + 1} have one id, {identity!r:.60}: name another "
                "column, or none, which numbers the rows"
            )

    def _mapped(self) -> set[str]:
        return {self._mapping.objective, *named_columns(self._mapping)}

    def _value_columns(self) -> list[str]:
        """Return the columns with values that a run was given."""
        mapping = self._mapping
        if mapping.values is not None:
            return list(mapping.values)

        taken = self._mapped() | {*mapping.metrics, *mapping.curves}
        for steps in self._steps.values():
            taken |= {column for _, column in steps}

        kept = []
        for column in self._columns:
            texts = [row[column] for row in self._rows if isinstance(row.get(column), str)]
            if column not in taken and all(len(text) <= MOST_TEXT for text in texts):
                kept.append(column)

        return kept

    def _values_and_seed(self, row: TableRow) -> tuple[dict[str, Any], int | None]:
        """Return the values of a row by name, and its seed."""
        if self._mapping.seed is not None:
            _, seed = split_seed({"seed": row.get(self._mapping.seed)})
            return self._row_values(row), seed

        if self._mapping.values is not None:
            # A user who names the columns of values names the seed as well.
            return self._row_values(row), None

        return split_seed(self._row_values(row))

    def _row_values(self, row: TableRow) -> dict[str, Any]:
        values = {}
        for column in self._values:
            value = row.get(column)
            if not _is_missing(value):
                values[re.sub(r"[^A-Za-z0-9_]", "_", column)] = value

        return values

    def _parent(self, row: TableRow) -> str | None:
        """Return the id of the parent of a row."""
        column = self._mapping.parent
        if column is None or row.get(column) in (None, ""):
            return None

        identity = identity_of(row[column])
        without_zero = identity.removesuffix(".0")
        return without_zero if identity not in self._identities else identity

    def _metrics(self, row: TableRow, curve: dict[str, list[float]]) -> dict[str, float]:
        objective = self._mapping.objective
        value = as_float(row.get(objective))
        if value is None:
            value = latest(curve).get(objective)

        metrics = {} if value is None else {objective: value}
        for column in self._mapping.metrics:
            number = as_float(row.get(column))
            if number is not None:
                metrics[column] = number

        return metrics

    def _curve(self, row: TableRow) -> dict[str, list[float]]:
        """Return the curves of a row as lists of one length, NaN where a step has no value."""
        points: dict[int, dict[str, float]] = {}
        for name in self._mapping.curves:
            for step, number in curve_points(row, name, self._steps.get(name, ())):
                points.setdefault(step, {})[name] = number

        steps = sorted(points)
        if not steps:
            return {}

        curve = {"epoch": [float(step) for step in steps]}
        for name in self._mapping.curves:
            curve[name] = [points[step].get(name, math.nan) for step in steps]

        return curve


def _is_missing(cell: Any) -> bool:
    """Return whether a cell has no value: JSON and Parquet write null or NaN."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))
