"""Parser of the files of tables: rows with a cell and numbers each, as arrays grouped by network.

A table describes its networks by the columns of one form, such as `arch_str`, or by the columns of
categorical decisions, which make a space of choices:

| columns               | space                                                              |
|-----------------------|--------------------------------------------------------------------|
| `chain:NAME`, several | a chain: one decision a column, in their order; an entry is an option |
| `set:NAME`, several   | a set, likewise                                                    |
| `arch`                | a chain: one decision a character, as in NAS-Bench-Macro; `layer 1`, … |

The options of a decision are the entries of its column, sorted; numbers by their size. A column
with one entry makes no decision, except where the reader of the file knows further options.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from archive import cache
from archive.architecture import codec
from archive.architecture.choice_operations import CHAIN
from archive.architecture.genotypes.codec import from_genotype
from archive.architecture.graph import Architecture
from archive.cache import Arrays
from archive.errors import CodecError, InvalidArchitectureError, SettingsError, UnusableFileError
from archive.spaces import nasbench201_cells
from archive.spaces.choices import FORMS as CHOICE_FORMS
from archive.spaces.choices import Choices
from archive.spaces.tables import costs
from archive.spaces.tables.classes import Described, Shared, classes
from archive.values import decimal


class TableForm(NamedTuple):
    """Columns of one kind of table.

    Attributes:
        space: Name of the vocabulary.
        cell: Columns that describe a cell.
        labels: Other columns of text.
        read: Returns the architecture from the columns of `cell`.
        known: Returns precomputed cells by the columns of `cell`; these are not parsed.
        config: Settings of the space, where the table determines them.
    """

    space: str
    cell: tuple[str, ...]
    labels: tuple[str, ...]
    read: Callable[..., Architecture]
    known: Callable[[], Mapping[tuple[str, ...], Described]] = dict
    config: Mapping[str, Any] = MappingProxyType({})


def _from_matrix(vertices: str, adjacency: str, ops: str) -> Architecture:
    n = int(vertices) if vertices.isdecimal() else 0
    if len(adjacency) != n * n:
        raise CodecError(
            f"adjacency_rowmajor must have n_vertices² = {n * n} characters, got {len(adjacency)}"
        )

    if set(adjacency) - {"0", "1"}:
        raise CodecError(f"adjacency_rowmajor must hold 0 and 1, got {adjacency!r}")

    matrix = np.array(list(map(int, adjacency))).reshape(n, n)
    return codec.from_nasbench101(matrix, ops.split("|"))


FORMS = (
    TableForm(
        "nasbench201",
        ("arch_str",),
        ("index",),
        codec.from_nasbench201,
        nasbench201_cells.describe_strings,
    ),
    # Tables of NAS-Bench-Suite-Zero.
    TableForm(
        "nasbench201",
        ("net_str",),
        ("net",),
        codec.from_nasbench201,
        nasbench201_cells.describe_strings,
    ),
    TableForm("darts", ("genotype",), (), partial(from_genotype, space="darts")),
    TableForm(
        "nasbench101", ("n_vertices", "adjacency_rowmajor", "ops"), ("module_hash",), _from_matrix
    ),
)


TEXT = "arch"
COLUMNS = (*(f"{form}:NAME" for form in CHOICE_FORMS), TEXT)
"""The forms of columns of choices, for messages."""
NO_OPTIONS: Mapping[str, Sequence[str]] = MappingProxyType({})


def choice_form(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    row_numbers: Sequence[int],
    further: Mapping[str, Sequence[str]] = NO_OPTIONS,
) -> TableForm | None:
    """Return the form of a table of choices; None if it has no such column.

    Args:
        head: Names of the columns.
        rows: The entries; rows of another length are left out.
        row_numbers: Number of each row in the file, for messages.
        further: Options by the name of a decision, for decisions with one option in the rows.

    Raises:
        SettingsError: The columns make no space of choices.
    """
    whole = [row for row in rows if len(row) == len(head)]
    columns_of: dict[str, list[int]] = {}
    for form in CHOICE_FORMS:
        columns = []
        for column, name in enumerate(head):
            if name.startswith(f"{form}:"):
                columns.append(column)

        if columns:
            columns_of[form] = columns

    if len(columns_of) > 1:
        forms = " and ".join(f"{form}:NAME" for form in columns_of)
        raise SettingsError(f"its decisions are columns {forms}: choose one form")

    for form, columns in columns_of.items():
        _check_filled(head, rows, row_numbers, columns)
        decisions = {}
        for column in columns:
            decisions[head[column].partition(":")[2]] = {row[column] for row in whole}

        if len(decisions) < len(columns):
            raise SettingsError(f"two columns {form}:NAME have one name")

        names = tuple(head[column] for column in columns)
        return _form_of(_make_space(decisions, form, further), names)

    if TEXT not in head:
        return None

    characters: dict[str, set[str]] = {}
    for row in whole:
        # Texts of another length are refused row by row.
        for position, character in enumerate(row[head.index(TEXT)], 1):
            characters.setdefault(f"layer {position}", set()).add(character)

    return _form_of(_make_space(characters, CHAIN, further), (TEXT,))


def _check_filled(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    row_numbers: Sequence[int],
    columns: Sequence[int],
) -> None:
    for row, number in zip(rows, row_numbers, strict=True):
        if len(row) != len(head):
            continue

        for column in columns:
            if not row[column].strip():
                raise SettingsError(
                    f"row {number} has nothing in the column {head[column]!r}: write its "
                    "option, such as none"
                )


def _make_space(
    decisions: Mapping[str, set[str]], form: str, further: Mapping[str, Sequence[str]]
) -> Choices:
    options_of: dict[str, list[str]] = {}
    for name, options in decisions.items():
        if len(options) < 2:
            options = options.union(further.get(name, ()))

        options_of[name] = _sort(options)

    return Choices(options_of, form)


def _form_of(space: Choices, columns: tuple[str, ...]) -> TableForm:
    read = partial(_from_text if columns == (TEXT,) else _from_entries, space)
    return TableForm(space.name, columns, (), read, config=space.config)


def _from_text(space: Choices, text: str) -> Architecture:
    return _from_entries(space, *text)


def _from_entries(space: Choices, *entries: str) -> Architecture:
    if len(entries) != len(space.options):
        raise CodecError(f"it must have {len(space.options)} decisions, got {len(entries)}")

    vector = []
    for options, entry in zip(space.options.values(), entries, strict=True):
        if entry not in options:
            raise CodecError(f"the option {entry!r} is unknown")

        vector.append(options.index(entry))

    return space.built(vector)


def _sort(entries: set[str]) -> list[str]:
    """Return the entries in one order in every process: numbers by size, NaN last, or by text."""
    distinct = sorted(entries)
    try:
        return sorted(distinct, key=lambda entry: (math.isnan(float(entry)), float(entry)))
    except ValueError:
        return distinct


def parse(path: Path, content: bytes, options: Mapping[str, Sequence[str]] = NO_OPTIONS) -> Arrays:
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
    filled = []
    for number, line in enumerate(lines):
        if "".join(line).strip():
            filled.append(number)

    if not filled:
        raise UnusableFileError(f"{path} is no table: it is empty")

    head = lines[filled[0]]
    rows = []
    row_numbers = []
    for number in filled[1:]:
        rows.append(lines[number])
        row_numbers.append(number - filled[0])

    form = _find_form(path, head, rows, row_numbers, options)
    # Loading the precomputed cells takes as long as parsing hundreds of rows.
    known_cells = form.known() if len(rows) >= cache.WORTH else {}
    shared = Shared({}, {})
    cells = []
    for row, number in zip(rows, row_numbers, strict=True):
        cells.append(_cell(path, form, head, row, number, known_cells, shared))

    texts = {}
    for column, name in enumerate(head):
        if name not in (*form.cell, *form.labels):
            texts[name] = [row[column] for row in rows]

    columns, unusable = _columns(texts, row_numbers)
    doubtful = costs.impossible(columns, texts, row_numbers)
    return classes(form.space, cells, columns, unusable, doubtful, config=form.config)


def _find_form(
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
    known_cells: Mapping[tuple[str, ...], Described],
    shared: Shared,
) -> Described:
    try:
        if len(row) != len(head):
            raise CodecError(f"it has {len(row)} entries, the head has {len(head)}")

        texts = tuple(row[head.index(name)] for name in form.cell)
        return known_cells.get(texts) or Described.of(form.read(*texts), shared)
    except (CodecError, InvalidArchitectureError) as error:
        raise UnusableFileError(
            f"row {number} of {path} describes no cell",
            f"row {number} of {path} cannot be read: {error}",
        ) from None


def _columns(
    texts: Mapping[str, Sequence[str]], row_numbers: Sequence[int]
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Return columns of numbers, NaN for empty entries, and reasons why others are unusable."""
    columns: dict[str, list[float]] = {}
    unusable: dict[str, str] = {}
    for name, entries in texts.items():
        try:
            columns[name] = list(map(_number, entries))
        except ValueError:
            unusable[name] = _first_text(entries, row_numbers)

    return columns, unusable


def _number(entry: str) -> float:
    """Return the number of an entry; NaN for an empty one."""
    return decimal(entry) if entry.strip() else np.nan


def _first_text(entries: Iterable[str], row_numbers: Iterable[int]) -> str:
    """Return the place and the text of the first entry that is no number."""
    for entry, number in zip(entries, row_numbers, strict=True):
        try:
            _number(entry)
        except ValueError:
            return f"row {number} has {entry!r}"

    raise ValueError("all entries are numbers")
