"""Tables as people have them: gaps, texts, dates, other separators, decimal commas, and Parquet.

| column  | entries                                   | inputs                                      |
|---------|-------------------------------------------|---------------------------------------------|
| number  | `1.5`; `1,5` and `1.234,5` beside `;`     | the number, and whether it was a gap        |
| date    | `2024-01-31`, `2024-01-31 10:00`,         | days since 1970, month, weekday, hour if    |
|         | `31.1.2024`, `1/31/2024`                  | there are times; whether it was a gap       |
| text    | all else                                  | one input for each frequent text            |
| empty   | gaps alone                                | none                                        |

Gaps are empty entries, `NA`, `N/A`, `NaN`, `null` and `?`. A gap becomes the median of its column,
or the most frequent text. Scikit-learn's transformers do both, fitted on the training rows alone.
A column that is nearly all numbers is refused with the row of the entry that is none.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import UnusableFileError
from archive.trainer.datasets import targets
from archive.trainer.datasets.column_encoding import MixedTable, check_cells, table_content
from archive.trainer.datasets.targets import Kind
from archive.trainer.datasets.text_columns import (
    ADVICE,
    MixedColumn,
    TextEntries,
    column_of_texts,
    has_decimal_commas,
    target_of_texts,
)
from archive.trainer.datasets.user_readers import (
    LARGEST,
    FileContent,
    check_head,
    decode_text,
    separator_of,
    split_head,
)


def read_mixed_csv(path: Path, content: bytes, target: str, kind: Kind | None) -> FileContent:
    """Return the rows of a CSV with gaps, texts, dates, other separators or decimal commas.

    Args:
        path: Path of the file, for messages.
        content: Content of the file.
        target: Name of the column to predict.
        kind: Kind of the target; None infers it.

    Raises:
        UnusableFileError: It is no such file; the message names the row and the column.
    """
    text = decode_text(path, content)
    separator = separator_of(text, target)
    try:
        head, body = split_head(text, separator)
    except csv.Error as error:
        raise UnusableFileError(f"{path} is no CSV", f"{path} is no CSV: {error}") from None

    if not head:
        raise UnusableFileError(f"{path} is no CSV: it is empty")

    check_head(path, head, target)
    entries = _entries(path, head, body, separator)
    rows = len(next(iter(entries.values())).codes)
    check_cells(path, rows, len(head))
    commas = separator != "," and any(map(has_decimal_commas, entries.values()))
    answers, answer_kind, advice = target_of_texts(
        path, head.index(target), target, entries.pop(target), kind, commas
    )
    columns = []
    for name, column in entries.items():
        columns.append(column_of_texts(path, head.index(name), name, column, commas))

    form = {"separator": separator, "decimal": "," if commas else "."}
    return table_content(MixedTable(path, tuple(columns), form), answers, answer_kind, advice)


def _entries(path: Path, head: Sequence[str], body: str, separator: str) -> dict[str, TextEntries]:
    """Return the entries of each column by its name, without the rows that have none."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    wrong: list[tuple[int | None, int]] = []

    def refuse(row: Any) -> str:
        wrong.append((row.number, row.actual_columns))
        return "error"

    raw = body.encode()
    names = [str(index) for index in range(len(head))]
    if not raw.strip():
        return {name: TextEntries((), np.empty(0, np.int64)) for name in head}

    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(raw),
            read_options=arrow_csv.ReadOptions(
                column_names=names, use_threads=False, block_size=max(2**20, min(len(raw), 2**26))
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        if raw.count(b'"') % 2:
            raise UnusableFileError(f"{path} is no CSV: a quote has no end") from None

        if wrong:
            row, count = wrong[0]
            row_name = "a row" if row is None else f"row {row}"
            raise UnusableFileError(
                f"{row_name} of {path} has {count} entries, the header has {len(head)}"
            ) from None

        reason = " ".join(str(error).split())[:200]
        raise UnusableFileError(f"{path} is no CSV", f"{path} is no CSV: {reason}") from None

    columns: dict[str, TextEntries] = {}
    for name, column in zip(head, table.columns, strict=True):
        columns[name] = _distinct(column.combine_chunks())

    return _without_blank_rows(columns)


def _distinct(column: Any) -> TextEntries:
    """Return the distinct stripped texts of an Arrow column in sorted order."""
    encoded = column.dictionary_encode()
    stripped = np.array([text.strip() for text in encoded.dictionary.to_pylist()], dtype=object)
    ordered = sorted(set(stripped))
    position = {text: number for number, text in enumerate(ordered)}
    lookup = np.array([position[text] for text in stripped], np.int64)
    return TextEntries(tuple(ordered), lookup[encoded.indices.to_numpy(zero_copy_only=False)])


def _without_blank_rows(columns: dict[str, TextEntries]) -> dict[str, TextEntries]:
    blank: NDArray[np.bool_] | None = None
    for column in columns.values():
        empty = (
            column.codes == column.texts.index("")
            if "" in column.texts
            else np.zeros(len(column.codes), np.bool_)
        )
        blank = empty if blank is None else blank & empty

    if blank is None or not blank.any():
        return columns

    kept: dict[str, TextEntries] = {}
    for name, column in columns.items():
        used, codes = np.unique(column.codes[~blank], return_inverse=True)
        kept[name] = TextEntries(tuple(column.texts[code] for code in used), codes)

    return kept


def read_parquet(path: Path, content: bytes, target: str, kind: Kind | None) -> FileContent:
    """Return the rows of a Parquet file; arguments and errors as of `read_mixed_csv`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        # An index of pandas is no input.
        file = parquet.ParquetFile(pa.BufferReader(content))
        kept = [name for name in file.schema_arrow.names if not name.startswith("__index_level_")]
        flat = flatten_structs(file.schema_arrow.empty_table())
        head = [name for name in flat.column_names if not name.startswith("__index_level_")]
        rows = file.metadata.num_rows
        check_head(path, head, target)
        check_cells(path, rows, len(head))
        table = flatten_structs(file.read(columns=kept, use_threads=False))
        columns = {name: table.column(name).combine_chunks() for name in head}
        for column in columns.values():
            column.validate(full=True)
    except UnusableFileError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UnusableFileError(
            f"{path} is no Parquet file", f"{path} is no Parquet file: {reason}"
        ) from None

    answers, answer_kind, advice = _target_of_array(
        path, head.index(target), target, columns.pop(target), kind
    )
    inputs = []
    for name, column in columns.items():
        inputs.append(_column_of_array(path, head.index(name), name, column))

    return table_content(MixedTable(path, tuple(inputs)), answers, answer_kind, advice)


def flatten_structs(table: Any) -> Any:
    """Return an Arrow table whose structs are columns, `size.width` of the struct `size`."""
    import pyarrow as pa

    while any(map(pa.types.is_struct, table.schema.types)):
        table = table.flatten()

    return table


def _column_of_array(path: Path, index: int, name: str, column: Any) -> MixedColumn:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type

    if column.null_count == len(column):
        return MixedColumn(name, "empty")

    if _is_number(kind):
        return MixedColumn(name, "number", _floats(path, index, name, column)[:, None])

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column_of_texts(path, index, name, _distinct(column.fill_null("")), commas=False)

    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return MixedColumn(name, "date", _date_parts(path, index, name, column))

    fault = f"{path} has a column that is neither of numbers, texts nor dates"
    raise UnusableFileError(fault, f"{fault}: {name!r} is of {kind}; write the file without it")


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    is_real = types.is_floating(kind) or types.is_decimal(kind)
    return bool(types.is_integer(kind) or is_real or types.is_boolean(kind))


def _floats(path: Path, index: int, name: str, column: Any) -> NDArray[np.float64]:
    """Return numbers of an Arrow column, NaN for gaps."""
    import pyarrow as pa

    # An integer above 2^53 loses its last digits.
    kept = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
    values: NDArray[np.float64] = (
        kept.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    )
    # Arithmetic with a signalling NaN is a warning of numpy; a gap is a quiet one.
    values = np.where(np.isnan(values), np.nan, values)
    wrong = np.flatnonzero(np.abs(values) > LARGEST)
    if len(wrong):
        fault = f"row {wrong[0] + 1} of {path} must have a finite number up to {LARGEST:.1e}"
        raise UnusableFileError(f"{fault} in the column {index + 1}", f"{fault} in {name!r}")

    return values


def _date_parts(path: Path, index: int, name: str, column: Any) -> NDArray[np.float64]:
    import pyarrow as pa
    from pyarrow import compute

    try:
        moments = column.cast(pa.timestamp("s"), safe=False)
        days = _floats(path, index, name, moments.cast(pa.int64())) / 86_400
        month = _floats(path, index, name, compute.month(moments))
        weekday = _floats(path, index, name, compute.day_of_week(moments))
    except pa.ArrowException:
        fault = f"{path} has a date that cannot be read"
        raise UnusableFileError(fault, f"{fault} in the column {name!r}") from None

    hours = (days - np.floor(days)) * 24
    parts = [days, month, weekday]
    if (hours > 0).any():
        parts.append(hours)

    return np.stack(parts, axis=1)


def _target_of_array(
    path: Path, index: int, target: str, column: Any, kind: Kind | None
) -> tuple[NDArray[Any], Kind, str]:
    """Return the answers, their kind, and the advice on classes with too few rows."""
    import pyarrow as pa

    if column.null_count:
        row = column.is_null().to_pylist().index(True) + 1
        raise UnusableFileError(f"row {row} of {path} has nothing in the column {target!r}")

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()

    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return target_of_texts(path, index, target, _distinct(column), kind, commas=False)

    if not _is_number(column.type):
        fault = f"the target of {path} must be numbers, texts or booleans"
        raise UnusableFileError(fault, f"{fault}, got {column.type}")

    is_exact = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    values = column.to_numpy(zero_copy_only=False) if is_exact else _floats(path, 0, target, column)
    if not is_exact and np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0]) + 1
        raise UnusableFileError(f"row {row} of {path} has nothing in the column {target!r}")

    answer_kind = kind or targets.kind_of_array(values, of_images=False)
    if answer_kind == "classes":
        advice = "" if kind or pa.types.is_boolean(column.type) else ADVICE
        return targets.classes_of_array(values), "classes", advice

    return values.astype(np.float64), "values", ""
