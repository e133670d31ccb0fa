"""Runs of Neptune, from the Parquet files of its exporter, or from a table of runs.

In the exporter's files a row is an attribute of a run, or one point of a series:

    project_id, run_id                          the run
    attribute_path, attribute_type              `metrics/loss`, `float_series`
    step, timestamp                             of a point, a decimal and a time; null otherwise
    int_value, float_value, string_value, bool_value, datetime_value, string_set_value
                                                the value, in the column of its type

The exporter (https://github.com/neptune-ai/neptune-exporter, `model.py`) writes the parts of a run
as `PROJECT/RUN_part_0.parquet`, `RUN_part_1.parquet` ….

In a table of the older client, `project.fetch_runs_table().to_pandas().to_csv("runs.csv")`, a row is
a run and a column an attribute: `sys/id`, `sys/state`, `parameters/lr`, `metrics/loss` with the last
value of a series; tags are one text, separated by commas, and a commit stands for the repository
(https://github.com/neptune-ai/neptune-client, `metadata_containers_table.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any

from archive.errors import UsageError, first_line
from archive.queue.causes import Cause
from archive.runs.arguments import split_seed
from archive.runs.history.external_run import (
    ExternalHistory,
    ExternalRun,
    Omissions,
    check_path,
    code_of,
    describe,
    find_files,
    flat_values,
    sorted_runs,
)
from archive.runs.history.table_columns import list_columns, time_of
from archive.runs.history.table_files import read_parquet, read_rows
from archive.runs.measurements import MOST_METRICS, Measurements, direction_of
from archive.runs.run_log import END_LETTERS
from archive.values import as_float, is_number

_RUN_COLUMNS = ("project_id", "run_id", "attribute_path", "attribute_type", "step", "timestamp")
_COLUMNS = {
    "int": "int_value",
    "float": "float_value",
    "string": "string_value",
    "bool": "bool_value",
    "datetime": "datetime_value",
    "string_set": "string_set_value",
    "float_series": "float_value",
    "string_series": "string_value",
}
"""Column of the value of each type that is read."""

_SYSTEM = "sys/"
_MACHINE = ("monitoring/", "runtime/")
_METRIC_GROUPS = ("metrics/", "metric/")
_TEXT_COLUMNS = ("sys/id", "sys/name", "sys/description", "sys/tags", "source_code/git")
_SETTINGS = ("param", "config", "hparam", "hyper", "args", "setting")
"""Begins of groups whose numbers are settings, whatever their names."""


def read_neptune(path: Path, metrics: Collection[str] = ()) -> ExternalHistory:
    """Return the runs of the exporter's files, or of a table.

    Args:
        path: A Parquet file of the exporter, a folder with such files at any depth, or a table of
            runs as CSV, TSV or JSON.
        metrics: Columns of a table that are metrics, beside those whose names say so.

    Raises:
        UsageError: There is no such folder or table, or no file of the exporter in it.
    """
    check_path(path)
    if path.is_file() and path.suffix != ".parquet":
        return _read_table(path, metrics)

    if metrics:
        raise UsageError("--metrics names columns of a table of runs: the exporter's files say it")

    files = find_files(path, lambda name: name.endswith(".parquet"))
    if not files:
        raise UsageError(f"{path} has no Parquet files of Neptune's exporter (*.parquet)")

    left_out = Omissions()
    attributes: dict[tuple[str, str], _NeptuneRun] = {}
    for file in files:
        try:
            for project, run_id, row in _read_rows(file):
                run = attributes.setdefault((project, run_id), _NeptuneRun(project, run_id))
                run.take(row, left_out)
        except UsageError as error:
            left_out.add("files that cannot be read", first_line(error, 200))

    if not attributes:
        raise UsageError(f"{path} has no run of Neptune: {'; '.join(left_out.texts())[:300]}")

    # A parent is named by either of its ids.
    names: dict[tuple[str, str], str] = {}
    for run in attributes.values():
        for name in (run.run_id, run.system.get("id"), run.system.get("custom_run_id")):
            if isinstance(name, str):
                names[run.project, name] = run.identity

    runs = []
    for run in attributes.values():
        if run.is_running():
            left_out.add("runs that still run", run.run_id)
        else:
            runs.append(run.external(names))

    return ExternalHistory(sorted_runs(runs), left_out.texts())


def _read_table(path: Path, metrics: Collection[str]) -> ExternalHistory:
    """Return the runs of a table with a column for each attribute."""
    rows = read_rows(path, None, _TEXT_COLUMNS)
    columns = list_columns(rows)
    for name in ("sys/id", *metrics):
        if name not in columns:
            raise UsageError(f"the table {path} has no column {name!r:.60}")

    left_out = Omissions()
    runs: dict[str, ExternalRun] = {}
    for number, row in enumerate(rows, 1):
        identity = row.get("sys/id")
        if not identity or identity in runs:
            what = f"the id of an earlier one, {identity!r:.60}" if identity else "no id"
            raise UsageError(f"row {number} of {path} has {what} in the column sys/id")

        attributes = _NeptuneRun(str(identity).rpartition("-")[0], str(identity))
        for column, value in row.items():
            attributes.take(_cell(column, value, metrics), left_out)

        if attributes.is_running():
            left_out.add("runs that still run", str(identity))
        else:
            runs[str(identity)] = attributes.external({})

    return ExternalHistory(sorted_runs(runs.values()), left_out.texts())


def _cell(column: str, value: Any, metrics: Collection[str]) -> _AttributeRow:
    """Return a cell of a table as an attribute."""
    if column == "sys/tags":
        value = [tag.strip() for tag in str(value or "").split(",")]

    is_metric = column in metrics or column.lower().startswith(_METRIC_GROUPS)
    kind = "string"
    if is_number(value):
        kind = "float_series" if is_metric else "float"

    return _AttributeRow(column, kind, None, None, value)


def _read_rows(file: Path) -> Iterator[tuple[str, str, _AttributeRow]]:
    """Yield project, run and content of each row."""
    names = [*_RUN_COLUMNS, *dict.fromkeys(_COLUMNS.values())]
    table = read_parquet(file, names)
    for name, kind in (("step", "decimal"), ("float_value", "double")):
        if not str(table.schema.field(name).type).startswith(kind):
            raise UsageError(f"{file} is no file of the exporter: {name} has another type")

    for batch in table.to_batches(max_chunksize=65_536):
        columns = {name: batch.column(name).to_pylist() for name in names}
        for position in range(batch.num_rows):
            kind = columns["attribute_type"][position]
            column = _COLUMNS.get(kind)
            row = _AttributeRow(
                columns["attribute_path"][position] or "",
                kind,
                columns["step"][position],
                columns["timestamp"][position],
                None if column is None else columns[column][position],
            )
            yield columns["project_id"][position], columns["run_id"][position], row


@dataclass(frozen=True, slots=True)
class _AttributeRow:
    """One row: an attribute, or a point of a series."""

    path: str
    kind: str
    step: Decimal | None
    time: datetime | None
    value: Any


@dataclass
class _NeptuneRun:
    """All that the rows of one run say."""

    project: str
    run_id: str
    system: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    series: dict[str, list[tuple[Decimal, float]]] = field(default_factory=dict)
    output: list[str] = field(default_factory=list)
    ended: int | None = None

    @property
    def identity(self) -> str:
        """Id of the run in all of Neptune."""
        return f"neptune/{self.project}/{self.run_id}"

    def take(self, row: _AttributeRow, left_out: Omissions) -> None:
        """Take a row."""
        if row.time is not None:
            moment = time_of(row.time)
            self.ended = max(self.ended or 0, moment or 0)

        if row.value is None and row.kind in _COLUMNS:
            return

        if row.path.startswith(_SYSTEM):
            self.system[row.path.removeprefix(_SYSTEM)] = row.value
        elif row.kind == "string_series":
            self._take_text(row, left_out)
        elif row.kind not in _COLUMNS:
            left_out.add("files, histograms and series of files", row.path)
        elif row.path.startswith(_MACHINE):
            left_out.add("metrics of the machine", row.path)
        elif row.kind == "float_series":
            self._take_point(row, left_out)
        elif row.kind == "float" and _is_result(row.path):
            self.metrics[row.path] = float(row.value)
        else:
            is_time = isinstance(row.value, datetime)
            self.values[row.path] = row.value.isoformat() if is_time else row.value

    def is_running(self) -> bool:
        """Return whether the run had no end when it was exported."""
        return str(self.system.get("state", "")).lower() in ("running", "active")

    def external(self, names: dict[tuple[str, str], str]) -> ExternalRun:
        """Return the run.

        Args:
            names: Ids of the runs by their project and any of their names.
        """
        values, seed = split_seed(flat_values(self.values, ("source_code/git",)))
        measurements = self._measure()
        system = self.system
        parent = system.get("forking/parent") or system.get("parent")
        started = time_of(system.get("creation_time"))
        finished = self.ended
        seconds = as_float(system.get("running_time"))
        if started is not None and seconds is not None and seconds > 0:
            finished = started + int(seconds * 1000)

        has_failed = system.get("failed") is True
        entry = self.values.get("source_code/entrypoint")
        commit = self.values.get("source_code/git")
        tags = [*(system.get("tags") or ()), *(system.get("group_tags") or ())]
        return ExternalRun(
            identity=self.identity,
            values=values,
            metrics=measurements.latest,
            curve=measurements.curve(),
            parent=None if not parent else names.get((self.project, parent), str(parent)),
            project=self.project,
            motivation=describe(
                system.get("experiment/name") or system.get("name") or self.run_id,
                system.get("description"),
                tags,
            ),
            started=started,
            finished=finished,
            seed=seed,
            reason="failed, as Neptune says" if has_failed else None,
            cause=Cause.TRAINING.value if has_failed else None,
            program=PurePath(entry).name if isinstance(entry, str) else None,
            code=code_of(commit, None) if isinstance(commit, str) else None,
            commit=commit if isinstance(commit, str) else None,
            log_end="\n".join(self.output)[-END_LETTERS:] or None,
        )

    def _take_text(self, row: _AttributeRow, left_out: Omissions) -> None:
        if row.path.endswith(("stdout", "stderr")):
            self.output.append(str(row.value).rstrip("\n"))
            # Its end is kept.
            del self.output[:-1000]
        else:
            left_out.add("series of texts", row.path)

    def _take_point(self, row: _AttributeRow, left_out: Omissions) -> None:
        if row.path not in self.series and len(self.series) >= MOST_METRICS:
            left_out.add(f"metrics beyond {MOST_METRICS} of a run", row.path)
            return

        points = self.series.setdefault(row.path, [])
        points.append((Decimal(len(points)) if row.step is None else row.step, float(row.value)))

    def _measure(self) -> Measurements:
        measurements = Measurements()
        measurements.add(None, self.metrics)
        by_step: dict[int, dict[str, float]] = {}
        for name, points in self.series.items():
            points.sort()
            # Steps may be fractions, which are numbered.
            is_whole = all(step == int(step) for step, _ in points)
            for number, (step, value) in enumerate(points):
                by_step.setdefault(int(step) if is_whole else number, {})[name] = value

        for moment in sorted(by_step):
            measurements.add(moment, by_step[moment])

        return measurements


def _is_result(path: str) -> bool:
    """Return whether a single number is a metric by its name, and no setting by its group."""
    return direction_of(path) is not None and not path.lower().startswith(_SETTINGS)
