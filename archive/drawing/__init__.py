"""Pictures of labelled graphs: layered layout, SVG, PNG and text. Knows no architectures.

`Diagram` describes a picture: boxes with a kind and a width, links, frames around repeated parts,
panels side by side. `archive.architecture.diagram` makes one of an architecture. Equal diagrams
give equal bytes. Imports errors only.
"""

from archive.drawing.columns import Sheet
from archive.drawing.diagram import Diagram, DiagramNode, Flow, Frame, Link, Panel, Theme
from archive.drawing.svg import png, stylesheet, svg
from archive.drawing.text import TextLine, text

__all__ = [
    "Diagram",
    "DiagramNode",
    "Flow",
    "Frame",
    "Link",
    "Panel",
    "Sheet",
    "TextLine",
    "Theme",
    "png",
    "stylesheet",
    "svg",
    "text",
]
