"""Tables of runs that people export from Weights & Biases.

| table                             | where settings and metrics are                                   |
|-----------------------------------|------------------------------------------------------------------|
| of a script with the public API   | objects in the columns `config` and `summary`                    |
| the same, made flat               | columns `config.lr`, `summary.loss`                              |
| downloaded from the page          | columns `lr`, `loss`: those that users name, or whose names say  |
|                                   | so, are metrics                                                  |
"""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from archive.errors import UsageError
from archive.runs.arguments import split_seed
from archive.runs.history.external_run import (
    ExternalHistory,
    ExternalRun,
    Omissions,
    cause_of,
    code_of,
    describe,
    flat_values,
    sorted_runs,
)
from archive.runs.history.table_columns import list_columns, text_of, time_of
from archive.runs.history.table_files import TableRow, read_rows
from archive.runs.measurements import direction_of
from archive.values import as_float, is_number

_COLUMNS = {
    "identity": ("ID", "id", "run_id"),
    "name": ("Name", "name", "display_name", "run_name"),
    "state": ("State", "state"),
    "notes": ("Notes", "notes"),
    "tags": ("Tags", "tags"),
    "group": ("Group", "group"),
    "created": ("Created", "created_at", "Start Time", "created"),
    "seconds": ("Runtime", "_runtime", "runtime", "Duration"),
    "project": ("project", "Project"),
    "commit": ("commit", "GitHub Commit"),
}
"""Columns of a run, as the page and scripts call them."""

_OTHERS = ("User", "Username", "Sweep", "End Time", "Updated", "Agent", "Hostname", "Job Type", "")

_RUNNING = ("running", "pending", "preempting")


def read_export(path: Path, metrics: Collection[str] = ()) -> ExternalHistory:
    """Return the runs of an exported table.

    Args:
        path: A CSV, TSV, JSON or Parquet file.
        metrics: Columns that are metrics, in a table that does not say so.

    Raises:
        UsageError: It cannot be read, has no metrics, or has an id twice.
    """
    rows = read_rows(path, None, [name for names in _COLUMNS.values() for name in names])
    columns = list_columns(rows)
    for name in metrics:
        if name not in columns:
            raise UsageError(f"the table has no column {name!r:.60}")

    table = _Export(path, columns, metrics)
    left_out = Omissions()
    runs: dict[str, ExternalRun] = {}
    for number, row in enumerate(rows, 1):
        run = table.run(row)
        if run.identity in runs:
            raise UsageError(
                f"row {number} of {path} has the id of an earlier one, {run.identity[:60]!r}"
            )

        if table.state(row) in _RUNNING:
            left_out.add("runs that still run", run.identity.removeprefix("wandb/"))
        else:
            runs[run.identity] = run

    for name in table.unknown:
        left_out.add("columns of objects", name)

    return ExternalHistory(sorted_runs(runs.values()), left_out.texts())


class _Export:
    """Which column of an exported table is what."""

    def __init__(self, path: Path, columns: Sequence[str], metrics: Collection[str]) -> None:
        self._path = path
        self._named: dict[str, str] = {}
        for what, names in _COLUMNS.items():
            column = next((name for name in names if name in columns), None)
            if column is not None:
                self._named[what] = column

        taken = {*_OTHERS, "config", "summary", *self._named.values()}
        free = [column for column in columns if column not in taken]
        is_divided = "summary" in columns or any(_is_grouped(column) for column in columns)
        self._metrics: list[str] = []
        self._values: list[str] = []
        for column in free:
            if column.startswith("_"):
                continue

            says_metric = not is_divided and direction_of(column) is not None
            if column in metrics or column.startswith("summary") or says_metric:
                self._metrics.append(column)
            else:
                self._values.append(column)

        self.unknown: dict[str, None] = {}

    def state(self, row: TableRow) -> str:
        """Return the state of a run; finished where the table does not say it."""
        return (self._text(row, "state") or "finished").lower()

    def run(self, row: TableRow) -> ExternalRun:
        """Return a row as a run."""
        name = self._text(row, "name")
        created = self._text(row, "created")
        identity = self._text(row, "identity") or " ".join(filter(None, (name, created)))
        if not identity:
            raise UsageError(f"{self._path} has a run without an id or a name")

        state = self.state(row)
        started = None if created is None else time_of(created)
        seconds = as_float(row.get(self._named.get("seconds", "")))
        finished = None
        if started is not None and seconds is not None and seconds >= 0:
            finished = started + int(seconds * 1000)

        values, seed = split_seed(flat_values(self._settings(row), ("_wandb",)))
        cause = cause_of(state)
        return ExternalRun(
            identity=f"wandb/{identity}",
            values=values,
            metrics=self._numbers(row),
            project=self._text(row, "project"),
            motivation=describe(
                name, self._text(row, "notes"), self._tags(row), self._text(row, "group")
            ),
            started=started,
            finished=finished,
            seed=seed,
            reason=None if cause is None else f"{state}, as the table says",
            cause=None if cause is None else cause.value,
            code=code_of(self._text(row, "commit"), None),
            commit=self._text(row, "commit"),
        )

    def _text(self, row: TableRow, what: str) -> str | None:
        return text_of(row, self._named.get(what))

    def _tags(self, row: TableRow) -> list[str]:
        cell = _read_object(row.get(self._named.get("tags", "")))
        if isinstance(cell, list):
            return list(map(str, cell))

        return [tag.strip() for tag in str(cell or "").split(",")]

    def _settings(self, row: TableRow) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        document = _read_object(row.get("config"))
        if isinstance(document, dict):
            for name, value in document.items():
                # Exports of the API's own objects have {"value": …, "desc": …}.
                is_wrapped = isinstance(value, dict) and {*value} <= {"value", "desc"}
                settings[name] = value.get("value") if is_wrapped else value

        for column in self._values:
            value = row.get(column)
            if isinstance(value, dict | list) and not _is_grouped(column):
                self.unknown[column] = None
            elif value not in (None, ""):
                settings[column.removeprefix("config.").removeprefix("config/")] = value

        return settings

    def _numbers(self, row: TableRow) -> dict[str, float]:
        numbers = {}
        document = _read_object(row.get("summary"))
        if isinstance(document, dict):
            for name, value in document.items():
                if is_number(value) and not str(name).startswith("_"):
                    numbers[str(name)] = float(value)

        for column in self._metrics:
            number = as_float(row.get(column))
            name = column
            for prefix in ("summary_metrics.", "summary.", "summary/"):
                name = name.removeprefix(prefix)

            if number is not None and not name.startswith("_"):
                numbers[name] = number

        return numbers


def _is_grouped(column: str) -> bool:
    """Return whether the name of a column says that it is a setting or a metric."""
    return column.startswith(("config.", "config/", "summary.", "summary/", "summary_metrics."))


def _read_object(cell: Any) -> Any:
    """Return an object in a cell: its text is JSON, or as Python prints it."""
    if not isinstance(cell, str):
        return cell

    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        pass

    try:
        # `float('nan')` is printed as nan, which is no literal.
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return cell
