"""Rows of a study for other programs: one row a proposal, with its result.

`rows_of` has metrics and hyperparameters as maps, `flat` has one column for each. Times are ISO
8601 in UTC, values in the task's own unit.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Evaluation, Proposal

StudyRow = dict[str, Any]

LARGEST_EXACT = 2**53
"""Integer up to which a float has each one."""
MAPS = {"metrics": "metric_", "hyperparameters": "hyperparameter_"}
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
"""Type of each column of a row, whatever the rows have; that of every metric is a number."""

_OF_PROPOSAL = (
    "agent",
    "acquisition",
    "mean",
    "std",
    "priority",
    "fidelity",
    "attempts",
    "worker",
    "reason",
)
_TIMES = ("created", "started", "finished")
_OF_RESULT = ("value", "epochs", "seconds", "seed", "device", "hardware", "answered_from")


def rows_of(archive: Archive, study: str) -> list[StudyRow]:
    """Return one row a proposal of a study, by number.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    name = archive.studies.get(study).name
    results = {each.id: each for each in archive.studies.evaluations(name, curves=False)}
    return [_row(proposal, results.get(proposal.id)) for proposal in archive.proposals.list(name)]


def flat(rows: Sequence[StudyRow]) -> list[StudyRow]:
    """Return rows with a column for each metric and hyperparameter, the same columns in all of
    them.
    """
    columns = {column: sorted({name for row in rows for name in row[column]}) for column in MAPS}
    return [
        {
            **{name: value for name, value in row.items() if name not in MAPS},
            **{
                f"{MAPS[column]}{name}": row[column].get(name)
                for column in MAPS
                for name in columns[column]
            },
        }
        for row in rows
    ]


def to_csv(rows: Sequence[StudyRow]) -> str:
    """Return flat rows as CSV with a line of names; lists, maps and booleans are JSON, None is
    empty.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0] if rows else _row_names())
    for row in rows:
        writer.writerow(
            json.dumps(each) if isinstance(each, list | dict | bool) else each
            for each in row.values()
        )

    return text.getvalue()


def to_parquet(rows: Sequence[StudyRow]) -> bytes:
    """Return flat rows as a parquet file, with columns as `of_one_type` makes them.

    A column has its type whatever the rows: exports of two studies can be concatenated.

    Raises:
        SettingsError: pyarrow is not installed.
    """
    check_parquet()
    import pyarrow
    from pyarrow import parquet

    uniform = of_one_type(rows)
    fields = []
    columns = []
    for name in rows[0] if rows else _row_names():
        values = [row[name] for row in uniform]
        kind = _type_of(name, values)
        if kind == NUMBER:
            # Arrow refuses an integer that is not exact as a float.
            values = [None if value is None else float(value) for value in values]

        fields.append(pyarrow.field(name, pyarrow.type_for_alias(kind)))
        columns.append(pyarrow.array(values, fields[-1].type))

    content = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_arrays(columns, schema=pyarrow.schema(fields)), content)
    return content.getvalue()


def of_one_type(rows: Sequence[StudyRow]) -> list[StudyRow]:
    """Return flat rows whose columns hold numbers, text or booleans; any other column is JSON, None
    stays None.
    """
    mixed = [
        name
        for name in (rows[0] if rows else ())
        if not _is_of_one_type([row[name] for row in rows])
    ]
    return [
        {**row, **{name: None if row[name] is None else json.dumps(row[name]) for name in mixed}}
        for row in rows
    ]


def check_parquet() -> None:
    """Check that parquet can be written.

    Raises:
        SettingsError: pyarrow is not installed.
    """
    if find_spec("pyarrow") is None:
        raise SettingsError("parquet needs pyarrow: pip install pyarrow")


def _type_of(name: str, values: Sequence[Any]) -> str:
    """Return the type of a column; that of a hyperparameter, which has none of its own, is that of
    its values.
    """
    if name in TYPES:
        return TYPES[name]

    known = [value for value in values if value is not None]
    if name.startswith(MAPS["metrics"]) or not known:
        return NUMBER

    if all(map(_is_text, known)):
        return TEXT

    if all(map(_is_truth, known)):
        return TRUTH

    # A study whose rates are all integers has the type of one whose rates are not.
    exact = all(isinstance(value, float) or abs(value) <= LARGEST_EXACT for value in known)
    return NUMBER if exact else INTEGER


def _is_of_one_type(column: Sequence[Any]) -> bool:
    known = [value for value in column if value is not None]
    return any(all(check(value) for value in known) for check in (_is_number, _is_text, _is_truth))


def _is_number(value: Any) -> bool:
    # Parquet has no larger integers.
    return isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _row(proposal: Proposal, result: Evaluation | None) -> StudyRow:
    # A promoted proposal has the result of its last rung.
    return {
        "study": proposal.study,
        "proposal": proposal.id,
        "number": proposal.number,
        "state": proposal.state.value.lower(),
        "cancelled": proposal.cancelled,
        "architecture": proposal.architecture_key,
        **{name: getattr(proposal, name) for name in _OF_PROPOSAL},
        **{name: _time(getattr(proposal, name)) for name in _TIMES},
        **{name: None if result is None else getattr(result, name) for name in _OF_RESULT},
        "partial": result is not None and result.partial,
        "metrics": {} if result is None else _plain(result.metrics),
        "hyperparameters": _plain(proposal.hyperparameters),
    }


def _row_names() -> list[str]:
    """Return the columns of a study without proposals."""
    head = ("study", "proposal", "number", "state", "cancelled", "architecture")
    return [*head, *_OF_PROPOSAL, *_TIMES, *_OF_RESULT, "partial"]


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in sorted(values)}


def _time(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None

    return (
        datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")[:-6]
        + "Z"
    )
