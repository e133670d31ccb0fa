"""Tables in which people keep their runs: CSV, TSV, JSON lines, a JSON list, or Parquet.

All but Parquet may be compressed by gzip.

A cell of a text file is a number, true or false where it looks like one, and nothing where it is
empty; JSON has its own values.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.errors import UsageError, first_line
from archive.runs.arguments import read_value

if TYPE_CHECKING:
    import pyarrow as pa

TableRow = dict[str, Any]

MOST_BYTES = 1 << 30
FORMATS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")


def read_rows(
    path: Path, items: str | None = None, texts: Collection[str | None] = ()
) -> list[TableRow]:
    """Return the rows of a table.

    Args:
        path: The file; its name says the format, before `.gz`.
        items: Key of the list in a JSON object; None takes the object's only list.
        texts: Columns whose cells are texts, whatever they look like: the commit `12e4567`.

    Raises:
        UsageError: It cannot be read, or is no table.
    """
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    form = suffixes[-1].lower() if suffixes else ""
    if form not in FORMATS:
        raise UsageError(
            f"a table of runs is a file {', '.join(FORMATS)}, all but the last also with .gz: "
            f"got {path.name!r}"
        )

    if form == ".parquet":
        rows: list[TableRow] = read_parquet(path).to_pylist()
        return rows

    text = _read_text(path)
    if form in (".csv", ".tsv"):
        return _separated_rows(path, text, "\t" if form == ".tsv" else ",", texts)

    if form == ".jsonl":
        return _json_lines(path, text)

    return _json_list(path, text, items)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a Parquet file.

    Args:
        path: The file.
        columns: Its columns that are read; None for all.

    Raises:
        UsageError: It cannot be read, or lacks a column.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path} has more than 1 GiB: split it")

        with pq.ParquetFile(path) as file:
            missing = sorted({*(columns or ())} - {*file.schema_arrow.names})
            if missing:
                raise UsageError(f"{path} has no column {', '.join(missing)}")

            return file.read(columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{path} cannot be read: {first_line(error, 200)}") from error


def _read_text(path: Path) -> str:
    try:
        opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
        with opened as file:
            content = file.read(MOST_BYTES + 1)

        if len(content) > MOST_BYTES:
            raise UsageError(f"{path} has more than 1 GiB: split it")

        return content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {reason}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text in UTF-8: byte {error.start}") from error


def _separated_rows(
    path: Path, text: str, separator: str, texts: Collection[str | None]
) -> list[TableRow]:
    rows = []
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        counts = Counter(name.strip() for name in reader.fieldnames or ())
        for name, number in counts.items():
            if name and number > 1:
                raise UsageError(f"{path} has two columns {name!r:.60}: rename one")

        for row in reader:
            if None in row:
                raise UsageError(f"line {reader.line_num} of {path} has more cells than the head")

            cells = {}
            for name, cell in row.items():
                # A column without a name has the numbers of the rows.
                column = name.strip()
                if cell and column:
                    value = cell.strip()
                    cells[column] = value if column in texts else read_value(value)

            rows.append(cells)
    except csv.Error as error:
        raise UsageError(f"line {reader.line_num} of {path} is no row: {error}") from error

    return rows


def _json_lines(path: Path, text: str) -> list[TableRow]:
    rows = []
    # JSON may hold the other ends of lines that Python knows, such as U+2028.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            rows.append(_object(path, f"line {number}", _parse(path, f"line {number} of", line)))

    return rows


def _json_list(path: Path, text: str, items: str | None) -> list[TableRow]:
    document = _parse(path, "the text of", text)
    if isinstance(document, dict):
        lists = [name for name, value in document.items() if isinstance(value, list)]
        if items is None and len(lists) == 1:
            items = lists[0]

        if items not in lists:
            listed_names = ", ".join(lists) or "none"
            raise UsageError(
                f"{path} is an object: --items names its list of runs, of {listed_names}"
            )

        document = document[items]

    if not isinstance(document, list):
        raise UsageError(f"{path} is no list of runs")

    rows = []
    for number, value in enumerate(document, 1):
        rows.append(_object(path, f"item {number}", value))

    return rows


def _parse(path: Path, what: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} {path} is no JSON: {error!s:.80}") from error


def _object(path: Path, what: str, value: Any) -> TableRow:
    if not isinstance(value, dict):
        raise UsageError(f"{what} of {path} is no object with names")

    return value
