"""Parser of the files of tables: rows with a cell and numbers each, as arrays grouped by
network.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from archive import cache
from archive.cache import Arrays
from archive.errors import CodecError, InvalidArchitectureError, SettingsError, UnusableFileError
from archive.spaces.tables import costs
from archive.spaces.tables.choice_columns import COLUMNS, NO_OPTIONS, choice_form
from archive.spaces.tables.classes import Described, Shared, classes
from archive.spaces.tables.forms import FORMS, TableForm
from archive.values import decimal


def parsed(path: Path, content: bytes, options: Mapping[str, Sequence[str]] = NO_OPTIONS) -> Arrays:
    """Return the arrays of a table (`archive.spaces.tables.classes.classes`).

    Args:
        path: The file, for messages; the suffix `.gz` means that it is compressed.
        content: Its bytes.
        options: As of `archive.spaces.tables.reader.Table.load`.

    Raises:
        UnusableFileError: It is no table, or a row describes no cell.
    """
    try:
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except UnicodeDecodeError:
        raise UnusableFileError(
            f"{path} is no table: it is no UTF-8 text, save it as UTF-8"
        ) from None
    except (OSError, EOFError, zlib.error, csv.Error, ValueError) as error:
        raise UnusableFileError(f"{path} is no table", f"{path} is no table: {error}") from None

    # A line without an entry is no row, but counts where rows are numbered: readers look for the
    # row in the file.
    filled = [number for number, line in enumerate(lines) if any(entry.strip() for entry in line)]
    if not filled:
        raise UnusableFileError(f"{path} is no table: it is empty")

    head = lines[filled[0]]
    rows = [lines[number] for number in filled[1:]]
    row_numbers = [number - filled[0] for number in filled[1:]]
    form = _form(path, head, rows, row_numbers, options)
    # Loading the precomputed cells takes as long as parsing hundreds of rows.
    known = form.known() if len(rows) >= cache.WORTH else {}
    shared = Shared({}, {})
    cells = []
    for row, number in zip(rows, row_numbers, strict=True):
        cells.append(_cell(path, form, head, row, number, known, shared))

    texts = {}
    for place, name in enumerate(head):
        if name not in (*form.cell, *form.labels):
            texts[name] = [row[place] for row in rows]

    columns, unusable = _columns(texts, row_numbers)
    doubtful = costs.impossible(columns, texts, row_numbers)
    return classes(form.space, cells, columns, unusable, doubtful, config=form.config)


def _form(
    path: Path,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    row_numbers: Sequence[int],
    options: Mapping[str, Sequence[str]],
) -> TableForm:
    if len(head) == 1 and ";" in head[0]:
        raise UnusableFileError(
            f"the columns of {path} must be separated by commas, not by semicolons"
        )

    repeated = {name for name in head if head.count(name) > 1}
    if repeated:
        raise UnusableFileError(
            f"{path} has two columns of one name", f"{path} has two columns {min(repeated)!r}"
        )

    for form in FORMS:
        if set(form.cell) <= set(head):
            return form

    try:
        if (of_choices := choice_form(head, rows, row_numbers, options)) is not None:
            return of_choices
    except SettingsError as error:
        raise UnusableFileError(
            f"{path} describes no choices", f"{path} describes no choices: {error}"
        ) from None

    needed = ", or ".join([*(" and ".join(form.cell) for form in FORMS), *COLUMNS])
    fault = f"{path} describes no cells: it needs the columns {needed}"
    raise UnusableFileError(fault, f"{fault}, got {', '.join(head[:8]) or 'none'}")


def _cell(
    path: Path,
    form: TableForm,
    head: Sequence[str],
    row: Sequence[str],
    number: int,
    known: Mapping[tuple[str, ...], Described],
    shared: Shared,
) -> Described:
    try:
        if len(row) != len(head):
            raise CodecError(f"it has {len(row)} entries, the head has {len(head)}")

        texts = tuple(row[head.index(name)] for name in form.cell)
        return known.get(texts) or Described.of(form.read(*texts), shared)
    except (CodecError, InvalidArchitectureError) as error:
        raise UnusableFileError(
            f"row {number} of {path} describes no cell",
            f"row {number} of {path} cannot be read: {error}",
        ) from None


def _columns(
    texts: Mapping[str, Sequence[str]], row_numbers: Sequence[int]
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Return the columns of numbers by name, NaN for empty entries, and why the other columns are
    unusable.
    """
    columns: dict[str, list[float]] = {}
    unusable: dict[str, str] = {}
    for name, entries in texts.items():
        try:
            columns[name] = [decimal(entry) if entry.strip() else np.nan for entry in entries]
        except ValueError:
            unusable[name] = _first_text(entries, row_numbers)

    return columns, unusable


def _first_text(entries: Iterable[str], row_numbers: Iterable[int]) -> str:
    """Return the place and the text of the first entry that is no number."""
    for entry, number in zip(entries, row_numbers, strict=True):
        try:
            decimal(entry.strip() or "nan")
        except ValueError:
            return f"row {number} has {entry!r}"

    raise ValueError("all entries are numbers")
