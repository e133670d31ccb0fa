"""Layout of text on terminals: lines that break between words, widths and lines of tables.

Everything here is computed from texts and a width; nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.text import Span, Text

GAP = 3
"""Cells between two columns."""
LONG_WORD = 8
"""Length of a word up to which it is never folded; words of the first column, which names the rows,
never are."""
MORE = " …"
"""End of a text that is cut between two words."""
_COPIED = re.compile(r"[a-z][a-z0-9+.-]*://|~?/|\.{1,2}/|[0-9a-f]{32}$", re.IGNORECASE)
"""Beginning of an address or a path, or a whole key, which is copied and never folded."""
_SETTING = re.compile(r"[^\s=]+=[^\s=]")
"""Beginning of a name with its value, which is never folded."""
_WORD = re.compile(r"\S+")


def longest_word(text: str) -> int:
    """Return the width of the longest word of a text."""
    return max(map(cell_len, text.split()), default=0)


def fold_words(content: Text, width: int) -> list[Text]:
    """Return a text as lines that break between words only.

    A word that is wider than a line, such as an address of a file, is a line of its own, to be
    copied whole.

    Args:
        content: The text; its own line breaks stay.
        width: Cells of a line.
    """
    lines = []
    for paragraph in content.split("\n", allow_blank=True):
        plain = paragraph.plain
        begin = 0
        end = 0
        for word in _WORD.finditer(plain):
            if end > begin and cell_len(plain[begin : word.end()]) > width:
                lines.append(paragraph[begin:end])
                begin = word.start()

            end = word.end()

        lines.append(paragraph[begin:end])

    return lines


def fit_words(content: Text, width: int) -> Text:
    """Return the first words of a text that fit into one line, and an ellipsis for the others.

    Args:
        content: The text, without line breaks.
        width: Cells of the line.
    """
    if cell_len(content.plain) <= width:
        return content

    first = fold_words(content, width - len(MORE))[0]
    return first + Text(MORE) if cell_len(first.plain) <= width - len(MORE) else Text("…")


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


def table_lines(
    headings: Sequence[Text],
    rows: Iterable[Sequence[Text]],
    widths: Sequence[int],
    numeric: Sequence[bool],
    *,
    fold: bool = True,
) -> Iterator[Text]:
    """Yield the lines of a table: headings, a rule, and the lines of each row.

    Args:
        headings: Names of the columns.
        rows: Cells of each row. A row may have fewer cells than the table has columns.
        widths: Cells of each column.
        numeric: Whether the texts of a column end at its right side.
        fold: Whether a cell that is wider than its column is folded; otherwise it covers the next
            columns.
    """
    names = []
    for heading in headings:
        name = heading.copy()
        name.stylize("bold")
        names.append(name)

    yield _join(names, widths, numeric, " ┃ ")
    yield Text("━╇━".join("━" * width for width in widths))
    for row in rows:
        for line in _cell_lines(row, widths) if fold else [row]:
            yield _join(line, widths, numeric, " │ ")


def _cell_lines(row: Sequence[Text], widths: Sequence[int]) -> Iterator[list[Text]]:
    """Yield the lines of a row, each with a part of every cell."""
    folded = []
    for cell, width in zip(row, widths, strict=True):
        fits = "\n" not in cell.plain and cell_len(cell.plain) <= width
        folded.append([cell] if fits else _fold(cell, width))

    for number in range(max(map(len, folded), default=0)):
        yield [parts[number] if number < len(parts) else Text() for parts in folded]


def _join(
    cells: Sequence[Text], widths: Sequence[int], numeric: Sequence[bool], separator: str
) -> Text:
    """Return the cells of a line with their separators; blanks fill all columns but the last."""
    parts: list[str] = []
    spans: list[Span] = []
    length = 0
    for index, cell in enumerate(cells):
        covers = index == len(cells) - 1 < len(widths) - 1
        blank = " " * max(0, widths[index] - cell_len(cell.plain))
        before = separator if index else ""
        if numeric[index] and not covers:
            before += blank
            blank = ""

        begin = length + len(before)
        spans += [span.move(begin) for span in cell.spans]
        parts += [before, cell.plain, blank]
        length = begin + len(cell.plain) + len(blank)

    return Text("".join(parts).rstrip(), spans=spans)


def _fold(cell: Text, width: int) -> list[Text]:
    """Return the lines of a cell; a word that is wider than the column is cut into pieces."""
    lines: list[Text] = []
    for line in fold_words(cell, width):
        while cell_len(line.plain) > width:
            size = _prefix(line.plain, width)
            lines.append(line[:size])
            line = line[size:]

        lines.append(line)

    return lines


def _prefix(plain: str, width: int) -> int:
    """Return the number of characters that fit into a width; at least one."""
    cells = 0
    for index, character in enumerate(plain):
        cells += cell_len(character)
        if cells > width:
            return max(index, 1)

    return len(plain)
