"""What the commands share of showing things: consoles, tables, JSON, and opening the archive."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click
from rich.console import Console
from rich.table import Table

from archive.cli.main import settings_of

if TYPE_CHECKING:
    from archive.archive import Archive

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}

json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of a table.")


def open_archive(ctx: click.Context, **overrides: Any) -> Archive:
    """Connect with the settings given before the command's name; the caller closes it."""
    from archive.archive import connect

    return connect(**settings_of(ctx), **overrides)


def out() -> Console:
    """Return a console on stdout, made when it is used so that tests and pipes are seen."""
    return _console(sys.stdout)


def messages() -> Console:
    """Return a console on stderr, where everything goes that is not a result."""
    return _console(sys.stderr)


def _console(file: TextIO) -> Console:
    # A pipe has no width: what reads it is spared lines that are folded at some number of columns.
    wide = None if file.isatty() else 240
    return Console(file=file, highlight=False, width=wide)


def print_json(value: Any) -> None:
    """Write one JSON document to stdout; NaN and infinities become null, as JSON has none."""
    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False, default=str))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """Write a table to stdout."""
    table = Table(title=title, title_justify="left", header_style="bold", show_edge=False, pad_edge=False)
    rows = [list(row) for row in rows]
    for place, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[place], int | float | None) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(show(value) for value in row))
    out().print(table)


def show(value: Any) -> str:
    """Return a value as a cell of a table."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else str(value)
    if isinstance(value, Mapping | list | tuple):
        value = json.dumps(_plain(value), ensure_ascii=False, default=str)
    return printable(str(value)).replace("[", r"\[")


def printable(text: str) -> str:
    """Return a text without control characters, which would command the terminal: archived texts come from anywhere."""
    return text.translate(_CONTROL)


def span(seconds: float | None) -> str | None:
    """Return a span of time in the two largest units that it fills."""
    if seconds is None:
        return None
    whole = round(seconds)
    for unit, size, next_unit, next_size in (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // next_size} {next_unit}"
    return f"{whole} s"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
