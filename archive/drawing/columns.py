"""Columns of a tall layout: where it is folded, so that it fills a sheet and stays legible.

The ranks of a column follow the ranks of the column on its left. Lines that lead from one to the next
run below the column, up the gutter beside it, and down from above the next one, each in a lane.

A fold is good where few lines pass, and where it splits no frame: at the end of a stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LANE = 8.0
"""Distance of two lines beside each other in a gutter."""
LANE_PADDING = 14.0
"""Distance of the lanes from what stands beside them."""
LEGIBLE = 0.9
"""Least scale of a picture: its smallest text then has 10 pixels."""

_MOST_COLUMNS = 10
_MOST_LANES = 4
_SLACKS = (1.0, 1.15, 1.35)
"""Heights of a column to try, as multiples of the mean height."""
_LEAST_PART = 0.5
"""Part of that height from which on a column may end."""
_PER_COLUMN = 0.83
_PER_SPLIT = 0.97
"""Factors by which a layout is worth less for a further column, and for a split frame."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The space that a picture should fill.

    Attributes:
        width: Its width in pixels.
        height: Its height in pixels.
    """

    width: float = 1080.0
    height: float = 720.0


@dataclass(frozen=True, slots=True)
class RankExtent:
    """What decides whether a layout is folded behind a rank.

    Attributes:
        top: Upper edge in the layout of one column.
        bottom: Lower edge.
        left: Left edge of its boxes with the frames around them.
        right: Right edge.
        lanes: Number of lanes that its lines need if the next rank is in another column.
        split: Number of frames that are around this rank and the next one.
    """

    top: float
    bottom: float
    left: float
    right: float
    lanes: int
    split: int


def fold_ranks(ranks: Sequence[RankExtent], sheet: Sheet) -> list[int]:
    """Return the column of each rank."""
    best = [0] * len(ranks)
    if len(ranks) < 2:
        return best

    total = ranks[-1].bottom - ranks[0].top
    if total <= sheet.height:
        return best

    highest = _worth(ranks, best, sheet)
    for number in range(2, _MOST_COLUMNS + 1):
        for slack in _SLACKS:
            column = _fill(ranks, total / number * slack)
            worth = _worth(ranks, column, sheet)
            if worth > highest:
                highest = worth
                best = column

    return best


def _fill(ranks: Sequence[RankExtent], height: float) -> list[int]:
    """Return the columns if each has about a height."""
    column: list[int] = []
    while len(column) < len(ranks):
        start = len(column)
        end = _end(ranks, start, height)
        column += [column[-1] + 1 if column else 0] * (end - start)

    return column


def _end(ranks: Sequence[RankExtent], start: int, height: float) -> int:
    """Return the rank behind the last one of the column that begins with a rank."""
    if ranks[-1].bottom - ranks[start].top <= height:
        return len(ranks)

    good = None
    for rank in range(start, len(ranks) - 1):
        extent = ranks[rank]
        part = (extent.bottom - ranks[start].top) / height
        if extent.lanes > _MOST_LANES:
            continue

        if part > 1 and good is not None:
            break

        badness = (extent.split, extent.lanes, -rank)
        if part > 1 or (part >= _LEAST_PART and (good is None or badness < good)):
            good = badness

    return len(ranks) if good is None else 1 - good[2]


def _worth(ranks: Sequence[RankExtent], column: Sequence[int], sheet: Sheet) -> float:
    """Return a number that is larger for a better layout; 0 where text would be too small."""
    width = 0.0
    height = 0.0
    worth = 1.0
    for start, end in column_ranges(column):
        part = ranks[start:end]
        width += max(extent.right for extent in part) - min(extent.left for extent in part)
        height = max(height, part[-1].bottom - part[0].top)
        if end < len(ranks):
            width += gutter(part[-1].lanes)
            worth *= _PER_COLUMN * _PER_SPLIT ** part[-1].split

    if width * LEGIBLE > sheet.width and column[-1]:
        return 0.0

    return worth * min(1.0, sheet.height / height)


def column_ranges(column: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first rank of each column, and the rank behind its last one."""
    start = 0
    for rank in range(1, len(column) + 1):
        if rank == len(column) or column[rank] != column[start]:
            yield start, rank
            start = rank


def gutter(lanes: int) -> float:
    """Return the distance of two columns with lanes between them."""
    return 2 * LANE_PADDING + max(lanes - 1, 0) * LANE
