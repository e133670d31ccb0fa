"""Columns of a table of runs: which is what, and what their cells say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from archive.errors import UsageError
from archive.runs.history.table_files import TableRow
from archive.runs.run_folder import now
from archive.values import is_number

if TYPE_CHECKING:
    from archive.store.records import Direction

LAST_SECOND = 253_402_300_800
"""First second after the year 9999, since 1970; milliseconds in place of seconds are beyond it."""


@dataclass(frozen=True)
class RunMapping:
    """Which column of a table is what.

    Attributes:
        objective: The metric that runs are judged by.
        direction: Whether larger or smaller values are better.
        identity: Id of a run in the table; None numbers the rows.
        parent: Id of the run that it is a change of; None without one.
        motivation: Reason for the run.
        started: Time of its start: ISO 8601, or seconds since 1970.
        status: Word for its outcome: `crash`, `failed`, `timeout` and the like are failures, any other
            word goes with the reason.
        seed: Its seed; None takes the columns whose names say so (`archive.runs.arguments`), unless
            they are among `values`.
        metrics: Further metrics.
        values: Values that the run was given; None takes all other columns.
        curves: Curves: a column with a list, or the begin of the names of columns with steps,
            `train_loss` for `train_loss_1` and `train_loss_100`.
        graph: The network that it trained, as a graph of operations
            (`archive.architecture.open_graphs.operation_graphs.read_graph`).
        unordered: Operations of these graphs whose inputs have no order, beside sums, products and
            the like.
    """

    objective: str
    direction: Direction
    identity: str | None = None
    parent: str | None = None
    motivation: str | None = None
    started: str | None = None
    status: str | None = None
    seed: str | None = None
    metrics: tuple[str, ...] = ()
    values: tuple[str, ...] | None = None
    curves: tuple[str, ...] = ()
    graph: str | None = None
    unordered: tuple[str, ...] = ()


def list_columns(rows: Sequence[TableRow]) -> list[str]:
    """Return the columns of rows, in the order of their first occurrence."""
    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row)

    return list(columns)


def check_columns(mapping: RunMapping, columns: Sequence[str]) -> None:
    """Check that the columns of a mapping are there.

    Raises:
        UsageError: One is not; the message names those that are.
    """
    named = [*mapping.metrics, *(mapping.values or ())]
    if mapping.objective not in mapping.curves:
        named.append(mapping.objective)

    named += named_columns(mapping)
    for column in named:
        if column not in columns:
            raise UsageError(f"the table has no column {column!r:.60}: it has {_listed(columns)}")

    for name in mapping.curves:
        if name not in columns and not _step_columns(name, columns):
            raise UsageError(
                f"the table has no column {name!r:.60}, nor {name}_1: it has {_listed(columns)}"
            )


def named_columns(mapping: RunMapping) -> list[str]:
    """Return the columns that say what a run is, beside its metrics and values."""
    optional = (
        mapping.identity,
        mapping.parent,
        mapping.motivation,
        mapping.started,
        mapping.status,
        mapping.seed,
        mapping.graph,
    )
    return [column for column in optional if column is not None]


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(columns[:20])
    return f"{shown} and {len(columns) - 20} more" if len(columns) > 20 else shown


def curve_columns(mapping: RunMapping, columns: Sequence[str]) -> dict[str, list[tuple[int, str]]]:
    """Return step and name of the columns of each curve that has one column for each step."""
    steps = {}
    for name in mapping.curves:
        if name not in columns:
            steps[name] = _step_columns(name, columns)

    return steps


def _step_columns(name: str, columns: Sequence[str]) -> list[tuple[int, str]]:
    """Return step and name of the columns of a curve: `train_loss_100` is step 100."""
    steps = []
    for column in columns:
        rest = column.removeprefix(f"{name}_")
        if rest != column and rest.isdecimal():
            steps.append((int(rest), column))

    return steps


def curve_points(
    row: TableRow, name: str, steps: Sequence[tuple[int, str]]
) -> list[tuple[int, float]]:
    """Return step and value of the points of a curve in a row."""
    if steps:
        pairs = [(step, row.get(column)) for step, column in steps]
    else:
        cell = row.get(name)
        listed = cell.replace(",", " ").split() if isinstance(cell, str) else cell
        values = listed if isinstance(listed, list) else [cell]
        pairs = list(enumerate(values, 1))

    points = []
    for step, value in pairs:
        number = _number(value)
        if number is not None:
            points.append((step, number))

    return points


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None

    return number if math.isfinite(number) else None


def text_of(row: TableRow, column: str | None) -> str | None:
    """Return a cell as text; None where it is empty, or no column is named."""
    value = None if column is None else row.get(column)
    return None if value in (None, "") else str(value).encode(errors="replace").decode()


def identity_of(value: Any) -> str:
    """Return the id of a run in a cell as text.

    A column of whole numbers where one is missing is often written as `3.0`.
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))

    return str(value)


def start_of(row: TableRow, column: str | None) -> int:
    """Return the start of a run in milliseconds since 1970; now where the table has none.

    Raises:
        UsageError: The cell is no time.
    """
    value = None if column is None else row.get(column)
    if value in (None, ""):
        return now()

    moment = time_of(value)
    if moment is None:
        raise UsageError(
            f"the column {column} has a cell that is no time: {value!r:.60}; times are as "
            "2026-08-31, 2026-08-31T12:30:00Z, or seconds since 1970"
        )

    return moment


def time_of(value: Any) -> int | None:
    """Return a time in milliseconds since 1970; None for any other value.

    Args:
        value: A time as ISO 8601 or as Python has it, UTC without a time zone, or seconds since
            1970.
    """
    if is_number(value):
        return int(value * 1000) if 0 <= value < LAST_SECOND else None

    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        return None

    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)

    return int(moment.timestamp() * 1000)
