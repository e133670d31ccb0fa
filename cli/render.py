"""Output of the commands: lines, messages, tables and JSON, and the opening of the archive.

Names, reasons and values in an archive can come from anyone: a loaded dump, another team, an agent.
Rich interprets markup (`[red]`) and emoji codes (`:bug:`) in a `str`, and a terminal interprets
control characters. Every text is therefore drawn by `text`, with its style as a separate argument,
and no other module of the command line prints.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from archive.cli.parameters import settings_of
from archive.values import finite_or_null, mapped

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from rich.console import JustifyMethod
    from rich.live import Live
    from rich.progress import Progress

    from archive.api import Archive

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

GAP = 3
"""Cells between two columns."""
LONG_WORD = 8
"""Length of a word up to which it is never folded; words of the first column, which names the rows,
never are."""
_COPIED = re.compile(r"[a-z][a-z0-9+.-]*://|~?/|\.{1,2}/|[0-9a-f]{32}$", re.IGNORECASE)
"""Beginning of an address or a path, or a whole key, which is copied and never folded."""
_SETTING = re.compile(r"[^\s=]+=[^\s=]")
"""Beginning of a name with its value, which is never folded."""

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
    # A pipe has no width: its lines are not folded at the width of some terminal.
    wide = None if file.isatty() else 240
    return _Console(file=file, highlight=False, markup=False, emoji=False, width=wide)


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


def print_line(*parts: Part, wrap: bool = False) -> None:
    """Write one line to stdout, the stream of results.

    Args:
        parts: Texts, each alone or with its style.
        wrap: Whether a long line is folded between words on a terminal; commands to copy are not
            folded.
    """
    _print(console(sys.stdout), parts, wrap)


def print_message(*parts: Part, wrap: bool = False, lines: bool = False) -> None:
    """Write to stderr, the stream of everything but results.

    Args:
        parts: Texts, each alone or with its style.
        wrap: Whether a long line is folded between words on a terminal.
        lines: Whether line breaks stay; otherwise the message is one line.
    """
    _print(console(), parts, wrap, lines)


def print_block(content: str) -> None:
    """Write a text of several lines, such as a part of a log, to stdout."""
    click.echo(printable(content, lines=True), nl=not content.endswith("\n"))


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

    table = _fit_table(to, headings, cells, numeric or [False] * len(headings))
    if table is not None:
        to.print(table)
        return

    for index, row in enumerate(cells):
        if index:
            to.print()

        _print_record(to, headings, row)


def _fit_table(
    to: Console, headings: Sequence[Text], cells: Sequence[Sequence[Text]], numeric: Sequence[bool]
) -> Table | None:
    """Return a table; None where the terminal is too narrow, or records are shorter."""
    texts = []
    for column in zip(headings, *cells, strict=True):
        texts.append([cell.plain for cell in column])

    widths = column_widths(texts, to.width)
    if widths is None:
        return None

    table = _table(headings, cells, widths, numeric)
    folded = sum(widths) < sum(map(whole_width, texts))
    # Records take a line for each field and one between them; the shorter form is chosen.
    if folded and len(to.render_lines(table)) > len(cells) * (len(headings) + 1):
        return None

    return table


def _table(
    headings: Sequence[Text],
    rows: Iterable[Sequence[Text]],
    widths: Sequence[int],
    numeric: Sequence[bool],
) -> Table:
    table = Table(header_style="bold", show_edge=False, pad_edge=False)
    for heading, width, is_number in zip(headings, widths, numeric, strict=True):
        side: JustifyMethod = "right" if is_number else "left"
        table.add_column(heading, justify=side, overflow="fold", width=width)

    for row in rows:
        table.add_row(*row)

    return table


def _print_record(
    to: Console, names: Sequence[Text], values: Sequence[Text], width: int = 1
) -> None:
    """Write one line per value; further lines of a long one begin below its first line.

    A value with a word that is longer than the room beside the names, such as a path, is a line of
    its own, to be copied as a whole.
    """
    width = max([width, *(name.cell_len for name in names)])
    room = to.width - width - 1
    for name, value in zip(names, values, strict=True):
        if longest_word(value.plain) > room:
            to.print(Text(name.plain, style="bold"))
            to.print(value, soft_wrap=True)
            continue

        record = Table.grid(padding=(0, 1))
        record.add_column(style="bold", no_wrap=True, min_width=width)
        record.add_column(overflow="fold")
        record.add_row(name, value)
        to.print(record)


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
    # A word that no line holds, such as a path, would be cut.
    folded = wrap and to.is_terminal and longest_word(content.plain) <= to.width
    to.print(content, soft_wrap=not folded)


def column_widths(columns: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the width of each column in cells; None if the table is too wide.

    Every column gets the width of its longest word; keys, addresses and paths count. The rest is
    shared equally, but no column gets more than it lacks: the columns of the longest texts are
    folded first.

    Args:
        columns: Texts of each column, the heading first.
        width: Width of the terminal.
    """
    room = width - GAP * (len(columns) - 1)
    whole = [whole_width(column) for column in columns]
    if sum(whole) <= room:
        return whole

    least = []
    for index, column in enumerate(columns):
        least.append(min(_least(column, index == 0), whole[index]))

    spare = room - sum(least)
    if spare < 0:
        return None

    widths = list(least)
    by_lack = sorted(range(len(columns)), key=lambda index: whole[index] - least[index])
    for count, index in enumerate(by_lack):
        added = min(whole[index] - least[index], spare // (len(columns) - count))
        widths[index] += added
        spare -= added

    return widths


def whole_width(column: Sequence[str]) -> int:
    """Return the width at which no text of a column is folded."""
    return max(cell_len(line) for line in "\n".join(column).split("\n"))


def longest_word(text: str) -> int:
    """Return the width of the longest word of a text."""
    return max(map(cell_len, text.split()), default=0)


def _least(column: Sequence[str], named: bool) -> int:
    """Return the width of a column's longest word that must not be folded."""
    widths = [1]
    for text in column:
        for word in text.split():
            width = cell_len(word)
            may_fold = not (named or _COPIED.match(word) or _SETTING.match(word))
            if may_fold:
                width = min(width, LONG_WORD)

            widths.append(width)

    return max(widths)
