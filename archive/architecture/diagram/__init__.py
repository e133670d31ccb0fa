"""Pictures of architectures: `diagram` and `svg`; `merge` and `beside` compare two networks.

`archive.drawing` draws diagrams, which know no architectures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from archive.architecture.diagram.assembly import diagram
from archive.architecture.diagram.comparison import beside, merge
from archive.drawing import svg as drawn

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.drawing import Theme

__all__ = ["beside", "diagram", "merge", "svg"]


def svg(
    architecture: Architecture,
    *,
    theme: Theme = "auto",
    fold: bool = True,
    notes: Mapping[int, str] | None = None,
    heading: Sequence[str] = (),
) -> str:
    """Return the picture of an architecture as SVG; equal architectures give equal bytes.

    Args:
        architecture: The network.
        theme: Colours (`archive.drawing.svg.svg`).
        fold: Whether repeated parts are drawn once.
        notes: Second line of a layer's box, by the position of the layer.
        heading: Lines of text above the picture.
    """
    return drawn(diagram(architecture, fold=fold, notes=notes or {}, heading=heading), theme=theme)
