"""Output of the commands: lines, messages, tables and JSON, and the opening of the archive.

Names, reasons and values in an archive can come from anyone: a loaded dump, another team, an agent.
Rich interprets markup (`[red]`) and emoji codes (`:bug:`) in a `str`, and a terminal interprets
control characters. Every text is therefore drawn by `text`, with its style as a separate argument,
and no other module of the command line prints.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click
from rich.console import Console
from rich.text import Text

from archive.cli.parameters import settings_of
from archive.cli.render.layout import (
    column_widths,
    fold_words,
    longest_word,
    table_lines,
    whole_width,
)
from archive.values import finite_or_null, mapped

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from rich.live import Live
    from rich.progress import Progress

    from archive.api import Archive

PLAIN = "ARCHIVE_PLAIN"
"""Variable that asks for plain lines, as the option `--plain` does."""
UNBROKEN = 100_000
"""Width of plain lines: they are read aloud, or folded by the terminal."""

SCHEMA_VERSION = 1
"""Version of the JSON output: it rises when a key changes its meaning or goes; a new key leaves it
as it is."""

Part = str | tuple[str, str]
"""A text, alone or with its style."""

# Control characters, marks that change the direction of writing, and surrogates, which no stream
# can encode.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_NAMED = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Write JSON to stdout instead of text."
)


def open_archive(ctx: click.Context, **overrides: Any) -> Archive:
    """Connect with the settings before the command's name; the caller closes the archive."""
    from archive.api import connect

    return connect(**settings_of(ctx), **overrides)


def console(file: TextIO | None = None) -> Console:
    """Return a console, made at each use because streams can be redirected.

    It is for rich's animations (`Live`, `Progress`), which take only `Text`; the functions below
    print everything else.
    """
    file = sys.stderr if file is None else file
    plain = is_plain()
    # A pipe has no width: its lines are not folded at the width of some terminal.
    wide = UNBROKEN if plain else None if file.isatty() else 240
    return _Console(
        file=file,
        highlight=False,
        markup=False,
        emoji=False,
        width=wide,
        force_terminal=False if plain else None,
    )


def is_plain() -> bool:
    """Return whether output is plain lines: no colours, no drawn tables, no animations.

    Screen readers need them, and terminals that move no cursor.
    """
    dumb = os.environ.get("TERM") == "dumb" and sys.stdout.isatty()
    return dumb or bool(os.environ.get(PLAIN))


@contextmanager
def paged() -> Iterator[None]:
    """Show what the block writes to stdout in a pager, where it is higher than the terminal.

    The pager is `PAGER`, or less. Without a terminal, and in plain lines, nothing changes.
    """
    terminal = sys.stdout
    if is_plain() or not terminal.isatty():
        yield
        return

    pages = _Pages()
    sys.stdout = pages
    try:
        yield
    finally:
        sys.stdout = terminal

    content = pages.getvalue()
    if content.count("\n") < console(terminal).height:
        terminal.write(content)
    else:
        click.echo_via_pager(content)


class _Pages(io.StringIO):
    """Text for a terminal that a pager shows later."""

    def isatty(self) -> bool:
        return True


_animations: list[Console] = []
"""Consoles of the animations that run now, the latest last."""


@contextmanager
def animation(shown: Live | Progress, to: Console) -> Iterator[None]:
    """Run an animation of rich; lines that are printed meanwhile stand above it.

    Printed past the animation they would move it, and its upper lines would stay behind on the
    terminal.

    Args:
        shown: The animation.
        to: Its console.
    """
    with shown:
        _animations.append(to)
        try:
            yield
        finally:
            _animations.remove(to)


class _Console(Console):
    """A console that survives the early end of its reader, as in `archive … | head`."""

    def on_broken_pipe(self) -> None:
        """Raise the error that `archive.cli.main` handles."""
        raise BrokenPipeError


def text(*parts: Part, lines: bool = False) -> Text:
    r"""Join texts into one that rich draws literally.

    Args:
        parts: Texts, each alone or with its style.
        lines: Whether line breaks and tabs stay, instead of being spelled `\n` and `\t`.
    """
    text = Text()
    for part in parts:
        content, style = (part, "") if isinstance(part, str) else part
        text.append(printable(content, lines=lines), style)

    return text


def printable(text: str, *, lines: bool = False) -> str:
    """Return a text with its control characters spelled out, so that a terminal cannot obey them.

    Args:
        text: Any text.
        lines: Whether line breaks and tabs stay.
    """

    def spell(match: re.Match[str]) -> str:
        character = match[0]
        if lines and character in "\n\t":
            return character

        code = ord(character)
        return _NAMED.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")

    return _UNPRINTABLE.sub(spell, text)


def print_line(*parts: Part, wrap: bool = True) -> None:
    """Write one line to stdout, the stream of results.

    Args:
        parts: Texts, each alone or with its style.
        wrap: Whether a long line is folded between words on a terminal, with an address that is
            longer than a line on a line of its own; commands to copy are not folded.
    """
    _print(console(sys.stdout), parts, wrap)


def print_message(*parts: Part, lines: bool = False) -> None:
    """Write to stderr, the stream of everything but results; folded between words on a terminal.

    Args:
        parts: Texts, each alone or with its style.
        lines: Whether line breaks stay; otherwise the message is one line.
    """
    _print(console(), parts, True, lines)


def print_block(content: str) -> None:
    """Write a text of several lines, such as a part of a log, to stdout."""
    click.echo(printable(content, lines=True), nl=not content.endswith("\n"))


def print_texts(texts: Iterable[Text]) -> None:
    """Write drawn lines to stdout, each as long as it is."""
    console(sys.stdout).print(Text("\n").join(texts), soft_wrap=True)


def print_data(content: str) -> None:
    """Write a text of several lines to stdout for a program: unchanged, except on a terminal."""
    # Without `color`, click.echo would remove escape sequences.
    if sys.stdout.isatty():
        content = printable(content, lines=True)

    click.echo(content, nl=False, color=True)


def print_json(document: DataclassInstance) -> None:
    """Write one JSON document to stdout; NaN and infinities become null, as JSON has none.

    Args:
        document: A dataclass; its fields are the keys (`archive.cli.json_reference`).
    """
    click.echo(json_document(document, indent=2))


def print_json_line(document: DataclassInstance) -> None:
    """Write one JSON document to stdout as one line of many."""
    click.echo(json_document(document))


def json_document(document: DataclassInstance, indent: int | None = None) -> str:
    """Return a document with its schema version as JSON."""
    keys = mapped(document, finite_or_null)
    return json_text({"schema_version": SCHEMA_VERSION, **keys}, indent=indent)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON that is safe on a terminal: all control characters are escaped."""
    plain = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False, default=str)
    # Outside of strings, the only control characters of JSON are the line breaks of the
    # indentation.
    return _UNPRINTABLE.sub(
        lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", plain
    )


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str | None = None,
    styles: Mapping[str, str] | None = None,
) -> None:
    """Write a table to stdout; a block of lines per row where the terminal is too narrow.

    Args:
        columns: Names of the columns.
        rows: Rows with a value for each column.
        title: Title above the table.
        styles: Styles by the value of the first column.
    """
    rows = [list(row) for row in rows]
    cells = []
    for values in rows:
        row = [text(show(value), lines=True) for value in values]
        if row:
            row[0].stylize((styles or {}).get(row[0].plain, ""))

        cells.append(row)

    to = console(sys.stdout)
    headings = [text(column) for column in columns]
    if title is not None:
        to.print(text((title, "italic")), soft_wrap=True)

    numeric = []
    for column in zip(*rows, strict=True):
        numeric.append(all(isinstance(value, int | float | None) for value in column))

    lines = None if is_plain() else _fit_lines(to, headings, cells, numeric)
    if lines is not None:
        # One text is written many times faster than a text for each line.
        to.print(Text("\n").join(lines), soft_wrap=True)
        return

    for index, row in enumerate(cells):
        if index:
            to.print()

        _print_record(to, headings, row)


def _fit_lines(
    to: Console, headings: Sequence[Text], cells: Sequence[Sequence[Text]], numeric: Sequence[bool]
) -> list[Text] | None:
    """Return the lines of a table; None where the terminal is too narrow, or records are shorter."""
    texts = []
    for column in zip(headings, *cells, strict=True):
        texts.append([cell.plain for cell in column])

    widths = column_widths(texts, to.width)
    if widths is None:
        return None

    lines = list(table_lines(headings, cells, widths, numeric or [False] * len(headings)))
    folded = sum(widths) < sum(map(whole_width, texts))
    # Records take a line for each field and one between them; the shorter form is chosen.
    return None if folded and len(lines) > len(cells) * (len(headings) + 1) else lines


def _print_record(
    to: Console, names: Sequence[Text], values: Sequence[Text], width: int = 1
) -> None:
    """Write one line per value; further lines of a long one begin below its first line.

    A value with a word that is longer than the room beside the names, such as a path, begins on a
    line of its own, and the word is a line, to be copied as a whole.
    """
    width = max([width, *(name.cell_len for name in names)])
    for name, value in zip(names, values, strict=True):
        heading = Text(name.plain, style="bold")
        indent = width + 1
        if longest_word(value.plain) > to.width - indent:
            lines = [heading, *fold_words(value, to.width)]
            indent = 0
        else:
            first, *others = fold_words(value, to.width - indent)
            heading.pad_right(indent - name.cell_len)
            lines = [heading + first, *others]

        for number, line in enumerate(lines):
            to.print(Text(" " * indent) + line if number else line, soft_wrap=True)


def print_fields(fields: Mapping[str, Any], width: int) -> None:
    """Write one line per field: the name in bold, then the value, lists with commas."""
    shown = {name: _list_values(value) for name, value in fields.items()}
    to = console(sys.stdout)
    if to.is_terminal:
        _print_record(
            to, [text(name) for name in shown], [text(value) for value in shown.values()], width
        )
        return

    for name, value in shown.items():
        print_line((f"{name:<{width}}", "bold"), f" {value}")


def _list_values(value: Any) -> str:
    """Return a value as one line: parts with commas, or JSON for nested lists and mappings."""
    if isinstance(value, Mapping):
        parts = [(f"{name}=", part) for name, part in value.items()]
    elif isinstance(value, list | tuple):
        parts = [("", part) for part in value]
    else:
        return show(value)

    texts = []
    for prefix, part in parts:
        if isinstance(part, Mapping | list | tuple):
            return show(value)

        texts.append(prefix + show(part))

    return ", ".join(texts) or show(None)


def show(value: Any) -> str:
    """Return a value as the text of a table cell; `text` makes it printable."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"

    if isinstance(value, bool):
        return "yes" if value else "no"

    if isinstance(value, float):
        return f"{value:.4g}"

    if isinstance(value, Mapping | list | tuple):
        return json.dumps(mapped(value, finite_or_null), ensure_ascii=False, default=str)

    return str(value)


def span(seconds: float | None) -> str | None:
    """Return a duration in its two largest units."""
    if seconds is None:
        return None

    whole = round(seconds)
    for unit, size, next_unit, next_size in (
        ("d", 86_400, "h", 3600),
        ("h", 3600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // next_size} {next_unit}"

    return f"{whole} s"


def _print(to: Console, parts: Sequence[Part], wrap: bool, lines: bool = False) -> None:
    if _animations and to.is_terminal:
        to = _animations[-1]

    content = text(*parts, lines=lines)
    folded = fold_words(content, to.width) if wrap and to.is_terminal else [content]
    for line in folded:
        to.print(line, soft_wrap=True)
