"""Sizes of boxes, in pixels, from their words and channels.

The width of a text is estimated: a picture is drawn by programs with different fonts. The estimate
is that of a wide font (DejaVu Sans), so that words stay within their box in all of them.
"""

from __future__ import annotations

import math

from archive.drawing.diagram import DiagramNode

LABEL = 12
DETAIL = 11
"""Sizes of the fonts."""
LINE = 24
NOTE_LINE = 15
"""Height of a box with one line, and of each further line."""
JUNCTION = 15

_NARROW = frozenset("ijlIf.,:;|'!()[]{}/ t-r·")
_WIDE = frozenset("mwMW@%—…")
_PADDING = 20
_LONGEST = 60


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text of at most so many characters; an ellipsis stands for the rest."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def text_width(text: str, size: float) -> float:
    """Return the estimated width of a text."""
    units = 0.0
    for letter in text:
        if letter in _NARROW:
            units += 0.38
        elif letter in _WIDE or ord(letter) > 0x2E80:
            units += 1.0
        else:
            units += 0.68 if letter.isupper() else 0.62

    return units * size


def box_size(node: DiagramNode) -> tuple[float, float]:
    """Return the width and the height of a node; widths are even, so that halves are whole."""
    if node.junction:
        return JUNCTION, JUNCTION

    line = text_width(shortened(node.label), LABEL)
    if node.detail:
        line += text_width(" " + shortened(node.detail), DETAIL)

    if node.status and node.status != "matched":
        line += 14

    words = max(line, text_width(shortened(node.note), DETAIL)) + _PADDING
    width = 2 * math.ceil(max(words, _channel_width(node.channels), 52) / 2)
    return width, LINE + NOTE_LINE * bool(node.note)


def _channel_width(channels: int | None) -> float:
    """Return a width that grows by the same amount with each doubling of the channels."""
    return 0.0 if channels is None else min(40 + 20 * math.log2(max(channels, 1)), 360)
