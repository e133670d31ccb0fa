"""Widths of the columns of a table that folds its cells between words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

GAP = 3
"""Cells between two columns."""
LONG_WORD = 8
"""Length of a word up to which it is never folded; words of the first column, which names the rows,
never are."""
_PLACE = re.compile(r"[a-z][a-z0-9+.-]*://|~?/|\.{1,2}/", re.IGNORECASE)
"""Beginning of an address or a path, which is copied as a whole and never folded."""


def column_widths(columns: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the width of each column, in cells of a terminal; None where the table is too wide for
    it.

    Every column gets the width of its longest word, addresses and paths included. The rest is
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


def longest_word(text: str) -> int:
    """Return the width of the longest word of a text."""
    return max(map(cell_len, text.split()), default=0)


def _least(column: Sequence[str], named: bool) -> int:
    """Return the width of a column's longest word that must not be folded."""
    widths = [1]
    for text in column:
        for word in text.split():
            whole = named or _PLACE.match(word)
            widths.append(cell_len(word) if whole else min(cell_len(word), LONG_WORD))

    return max(widths)
