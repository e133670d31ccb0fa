"""Widths of the columns of a table that folds its cells between words."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

GAP = 3
"""Cells between two columns."""
LONG_WORD = 8
"""Length of a word up to which it is never folded; words of the first column, which names the rows, never are."""


def column_widths(columns: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the width of each column, in cells of a terminal; None where the table is too wide for it.

    Every column gets the width of its longest word. The rest is shared equally, but no column gets more than it lacks:
    the columns of the longest texts are folded first.

    Args:
        columns: Texts of each column, the heading first.
        width: Width of the terminal.
    """
    room = width - GAP * (len(columns) - 1)
    whole = [whole_width(column) for column in columns]
    if sum(whole) <= room:
        return whole
    least = [min(_least(column, place == 0), whole[place]) for place, column in enumerate(columns)]
    spare = room - sum(least)
    if spare < 0:
        return None
    widths = list(least)
    by_lack = sorted(range(len(columns)), key=lambda place: whole[place] - least[place])
    for count, place in enumerate(by_lack):
        added = min(whole[place] - least[place], spare // (len(columns) - count))
        widths[place] += added
        spare -= added
    return widths


def whole_width(column: Sequence[str]) -> int:
    """Return the width at which no text of a column is folded."""
    return max(cell_len(line) for text in column for line in text.split("\n"))


def _least(column: Sequence[str], named: bool) -> int:
    """Return the width of a column's longest word that must not be folded."""
    words = [cell_len(word) for text in column for word in text.split()]
    return max([1, *(word if named else min(word, LONG_WORD) for word in words)])
