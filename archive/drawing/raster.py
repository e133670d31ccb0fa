"""PNG of a diagram, by resvg: the extra `png`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from archive.drawing.diagram import Diagram
from archive.drawing.palette import FONT
from archive.drawing.svg import svg
from archive.errors import SettingsError

MOST_PIXELS = 16_000


def png(
    diagram: Diagram, *, theme: Literal["light", "dark"] = "light", scale: float = 2.0
) -> bytes:
    """Return a diagram as PNG.

    Args:
        diagram: The diagram to draw.
        theme: Colours.
        scale: Pixels for each unit of the SVG; fewer where a side would have more than 16,000.

    Raises:
        SettingsError: The extra is not installed, or the machine has no font.
    """
    try:
        import resvg_py
    except ImportError:
        raise SettingsError("a PNG needs resvg: pip install 'nas-archive[png]'") from None

    if not _draws_letters(resvg_py.svg_to_bytes):
        raise SettingsError(
            "a PNG needs a font, and this machine has none: install one, such as fonts-dejavu-core"
        )

    drawn = svg(diagram, theme=theme)
    return bytes(resvg_py.svg_to_bytes(svg_string=drawn, zoom=_zoom(drawn, scale)))


def _draws_letters(render: Callable[..., bytes]) -> bool:
    """Return whether there is a font: without one, resvg leaves all words out and says nothing."""
    start = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    empty, word = (
        f'{start}<text y="18" font-family="{FONT}">{letters}</text></svg>' for letters in ("", "M")
    )
    return bytes(render(svg_string=empty)) != bytes(render(svg_string=word))


def _zoom(drawn: str, scale: float) -> float:
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', drawn)
    longest = max(float(size[1]), float(size[2]), 1.0) if size else 1.0
    return min(scale, MOST_PIXELS / longest)
