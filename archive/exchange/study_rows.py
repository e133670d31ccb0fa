"""Rows of a study for other programs: one row per proposal, with its result.

`rows_of` has metrics, hyperparameters and named decisions as maps, `flat` has one column for each. Times are ISO
8601 in UTC, values in the task's own unit.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError
from archive.store.properties import METRIC, from_json, with_prefix
from archive.store.records import State, StateName, is_cancelled
from archive.store.studies.configurations import (
    configuration_columns,
    read_configurations,
)
from archive.store.studies.rows import PARAMETER, Row, read_rows
from archive.values import timestamp

if TYPE_CHECKING:
    from archive.api import Archive

FlatRow = dict[str, Any]
"""A row with a column for each metric, hyperparameter and named decision."""

LARGEST_EXACT = 2**53
"""Integer up to which a float has each one."""
MAPS = {
    "metrics": "metric_",
    "hyperparameters": "hyperparameter_",
    "configuration": "parameter_",
}
"""Columns that hold maps, with the prefix of the columns that they become."""

TEXT = "string"
INTEGER = "int64"
NUMBER = "float64"
TRUTH = "bool"
"""Types of columns, by their names in Arrow."""
TYPES = {
    **dict.fromkeys(
        ("study", "proposal", "state", "architecture", "agent", "worker", "reason"), TEXT
    ),
    **dict.fromkeys(
        ("created", "started", "finished", "device", "hardware", "answered_from"), TEXT
    ),
    **dict.fromkeys(("number", "attempts", "epochs", "seed"), INTEGER),
    **dict.fromkeys(
        ("acquisition", "mean", "std", "priority", "fidelity", "value", "seconds"), NUMBER
    ),
    **dict.fromkeys(("cancelled", "partial"), TRUTH),
}
"""Type of each column of a row, whatever the rows have; every metric is a number."""


@dataclass(frozen=True)
class ExportItem:
    """Proposal of an exported study.

    CSV and parquet have a column per metric, hyperparameter and named decision.

    Attributes:
        study: Name of the study.
        proposal: Id of the proposal.
        number: Its number in the study.
        state: Its state.
        cancelled: Whether it was cancelled, rather than failed or pruned.
        architecture: Key of the architecture.
        agent: Id of the agent that made it.
        acquisition: The agent's acquisition value.
        mean: The score that the surrogate expects, larger is better.
        std: The surrogate's standard deviation of it.
        priority: Larger is claimed first.
        fidelity: Fraction of the full training that is asked for.
        attempts: Number of attempts that were lost.
        worker: The worker that holds it, or held it last.
        reason: Why it failed.
        created: When it was proposed.
        started: When it was last claimed.
        finished: When it ended.
        value: The objective, once it is known.
        epochs: Epochs of the result.
        seconds: Wall-clock time of the training.
        seed: Seed that the training used.
        device: Where it ran.
        hardware: Name of the device's hardware.
        answered_from: Id of the evaluation that it repeats without a training.
        partial: Whether the value is the result of a part of the training.
        metrics: Final metrics by name.
        hyperparameters: Training settings that differ from the protocol.
        configuration: Values of the space's named decisions, by name, in the order of the space.
    """

    study: str
    proposal: str
    number: int
    state: StateName
    cancelled: bool
    architecture: str
    agent: str | None
    acquisition: float | None
    mean: float | None
    std: float | None
    priority: float
    fidelity: float | None
    attempts: int
    worker: str | None
    reason: str | None
    created: str | None
    started: str | None
    finished: str | None
    value: float | None
    epochs: int | None
    seconds: float | None
    seed: int | None
    device: str | None
    hardware: str | None
    answered_from: str | None
    partial: bool
    metrics: Mapping[str, float | None]
    hyperparameters: Mapping[str, Any]
    configuration: Mapping[str, Any]


@dataclass(frozen=True)
class ExportDocument:
    """A study exported as JSON.

    Attributes:
        proposals: By number.
    """

    proposals: list[ExportItem]


@dataclass(frozen=True)
class ExportLine(ExportItem):
    """A line of a study exported as `jsonl`."""


def rows_of(archive: Archive, study: str) -> list[ExportItem]:
    """Return one row per proposal of a study, by number.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    record = archive.studies.get(study)
    rows = archive.connection.read(lambda tx: read_rows(tx, _COLUMNS, study=record.name))
    configurations = read_configurations(archive.connection, record)
    items = [_item(record.name, row, configurations) for row in rows]
    return sorted(items, key=lambda item: item.number)


def flat(rows: Sequence[ExportItem]) -> list[FlatRow]:
    """Return rows with the same columns, one for each metric, hyperparameter and decision."""
    metrics: set[str] = set()
    settings: set[str] = set()
    for row in rows:
        metrics |= row.metrics.keys()
        settings |= row.hyperparameters.keys()

    parameters = configuration_columns([row.configuration for row in rows])
    flat_rows = []
    for row in rows:
        flat_row: FlatRow = {name: getattr(row, name) for name in row_names()}
        flat_row |= {f"metric_{name}": row.metrics.get(name) for name in sorted(metrics)}
        for name in sorted(settings):
            flat_row[f"hyperparameter_{name}"] = row.hyperparameters.get(name)

        for name in parameters:
            flat_row[PARAMETER + name] = row.configuration.get(name)

        flat_rows.append(flat_row)

    return flat_rows


def to_csv(rows: Sequence[FlatRow]) -> str:
    """Return flat rows as CSV with a header; lists, maps, booleans are JSON, None is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0] if rows else row_names())
    for row in rows:
        writer.writerow(
            json.dumps(value) if isinstance(value, list | dict | bool) else value
            for value in row.values()
        )

    return text.getvalue()


def to_parquet(rows: Sequence[FlatRow]) -> bytes:
    """Return flat rows as a parquet file, with columns as `of_one_type` makes them.

    A column has its type whatever the rows: exports of two studies can be concatenated.

    Raises:
        SettingsError: pyarrow is not installed.
    """
    check_parquet()
    import pyarrow
    from pyarrow import parquet

    uniform = of_one_type(rows)
    arrow_fields = []
    columns = []
    for name in rows[0] if rows else row_names():
        values = [row[name] for row in uniform]
        kind = _type_of(name, values)
        if kind == NUMBER:
            # Arrow refuses an integer that is not exact as a float.
            values = [None if value is None else float(value) for value in values]

        arrow_fields.append(pyarrow.field(name, pyarrow.type_for_alias(kind)))
        columns.append(pyarrow.array(values, arrow_fields[-1].type))

    content = io.BytesIO()
    parquet.write_table(
        pyarrow.Table.from_arrays(columns, schema=pyarrow.schema(arrow_fields)), content
    )
    return content.getvalue()


def of_one_type(rows: Sequence[FlatRow]) -> list[FlatRow]:
    """Return rows with columns of numbers, text or booleans; other columns become JSON."""
    typed = list(map(dict, rows))
    for name in typed[0] if typed else ():
        if not _is_of_one_type([row[name] for row in rows]):
            for row in typed:
                row[name] = None if row[name] is None else json.dumps(row[name])

    return typed


def check_parquet() -> None:
    """Check that parquet can be written.

    Raises:
        SettingsError: pyarrow is not installed.
    """
    if find_spec("pyarrow") is None:
        raise SettingsError("parquet needs pyarrow: pip install pyarrow")


def _type_of(name: str, values: Sequence[Any]) -> str:
    """Return the type of a column; a hyperparameter has the type of its values."""
    if name in TYPES:
        return TYPES[name]

    present = [value for value in values if value is not None]
    if name.startswith(MAPS["metrics"]) or not present:
        return NUMBER

    if all(map(_is_text, present)):
        return TEXT

    if all(map(_is_truth, present)):
        return TRUTH

    # A study with integer rates alone has the type of a study with other rates.
    exact = all(isinstance(value, float) or abs(value) <= LARGEST_EXACT for value in present)
    return NUMBER if exact else INTEGER


def _is_of_one_type(column: Sequence[Any]) -> bool:
    present = [value for value in column if value is not None]
    return any(all(map(check, present)) for check in (_is_number, _is_text, _is_truth))


def _is_number(value: Any) -> bool:
    # Parquet has no larger integers.
    return isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


_AS_STORED = (
    "proposal",
    "number",
    "architecture",
    "agent",
    "acquisition",
    "mean",
    "std",
    "fidelity",
    "worker",
    "reason",
    "value",
    "epochs",
    "seconds",
    "seed",
    "device",
    "hardware",
    "answered_from",
)
_COLUMNS = (
    *_AS_STORED,
    "state",
    "priority",
    "attempts",
    "proposed",
    "started",
    "finished",
    "partial",
    "metrics",
    "hyperparameters",
)
"""Columns of a row (`archive.store.studies.rows`)."""


def _item(study: str, row: Row, configurations: Mapping[int, Mapping[str, Any]]) -> ExportItem:
    # A promoted proposal has the result of its last rung.
    values = dict(zip(_COLUMNS, row, strict=True))
    state = State(values["state"])
    return ExportItem(
        study=study,
        **{name: values[name] for name in _AS_STORED},
        state=state.label,
        cancelled=is_cancelled(state, values["reason"]),
        priority=values["priority"] or 0.0,
        attempts=values["attempts"] or 0,
        created=timestamp(values["proposed"]),
        started=timestamp(values["started"]),
        finished=timestamp(values["finished"]),
        partial=bool(values["partial"]),
        metrics=with_prefix(METRIC, dict(values["metrics"] or ())),
        hyperparameters=dict(sorted(from_json(values["hyperparameters"]).items())),
        configuration=configurations.get(values["number"], {}),
    )


def row_names() -> list[str]:
    """Return the columns of a row but `MAPS`."""
    return [field.name for field in fields(ExportItem) if field.name not in MAPS]
