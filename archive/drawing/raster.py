"""PNG of a diagram, by resvg: the extra `png`."""

from __future__ import annotations

import re
from typing import Literal

from archive.drawing.diagram import Diagram
from archive.drawing.svg import svg
from archive.errors import SettingsError

MOST_PIXELS = 16_000


def png(diagram: Diagram, *, theme: Literal["light", "dark"] = "light", scale: float = 2.0) -> bytes:
    """Return a diagram as PNG.

    Args:
        diagram: What is drawn.
        theme: Colours.
        scale: Pixels for each unit of the SVG; fewer where a side would have more than 16,000.

    Raises:
        SettingsError: The extra is not installed.
    """
    try:
        import resvg_py
    except ImportError:
        raise SettingsError("a PNG needs resvg: pip install 'nas-archive[png]'") from None
    drawn = svg(diagram, theme=theme)
    return bytes(resvg_py.svg_to_bytes(svg_string=drawn, zoom=_zoom(drawn, scale)))


def _zoom(drawn: str, scale: float) -> float:
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', drawn)
    longest = max(float(size[1]), float(size[2]), 1.0) if size else 1.0
    return min(scale, MOST_PIXELS / longest)
