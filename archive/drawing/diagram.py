"""Diagrams: nodes, links, frames and panels, without positions; the sizes of boxes and texts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

Theme = Literal["auto", "light", "dark", "page"]
"""Colours of a picture: as the reader's system prefers, light, dark, or as the page around it."""

Status = Literal["", "matched", "changed", "inserted", "removed"]
"""What a comparison found about a node or a link; empty outside of comparisons."""

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


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A box, or a junction where lines meet.

    Attributes:
        label: First words on the box.
        kind: Kind of operation (`archive.drawing.palette.KINDS`), which decides the colour.
        detail: Words after the label, in a lighter colour.
        note: Second line, empty for none.
        tip: Text that a browser shows under the pointer.
        channels: Number that decides the width of the box; None for the width of its words.
        status: Result of a comparison.
        layer: Number that the box carries as `data-layer`; None for none.
        layers: Numbers of all layers that it stands for, as `data-layers`, if these are several.
        junction: Whether it is a small circle; its label is one sign or empty.
        dead: Whether it has no part in what the network computes: it is drawn pale.
        part: Name of the part that it stands for, which a page can draw in full; empty for none.
    """

    label: str
    kind: str = "other"
    detail: str = ""
    note: str = ""
    tip: str = ""
    channels: int | None = None
    status: Status = ""
    layer: int | None = None
    layers: tuple[int, ...] = ()
    junction: bool = False
    dead: bool = False
    part: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A directed line between two nodes.

    Attributes:
        tail: Position of the node that it begins at.
        head: Position of the node that it ends at.
        status: Result of a comparison.
    """

    tail: int
    head: int
    status: Status = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A border with a label around some nodes, such as a part that is repeated.

    Attributes:
        label: Text at its upper edge.
        nodes: Positions of the nodes inside, also inside of frames within it.
        part: Name of the repeated part, which a page can draw once or in full; empty for none.
        unfolded: Whether that part is drawn in full.
    """

    label: str
    nodes: frozenset[int]
    part: str = ""
    unfolded: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the diagram with a separate layout, beside the other panels.

    Attributes:
        title: Text above it.
        nodes: Positions of its nodes.
    """

    title: str
    nodes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Flow:
    """A line from a node of one panel to a node of another.

    Attributes:
        tail: Position of the node that it begins at.
        head: Position of the node that it ends at.
        share: Its strength in [0, 1].
        status: Result of a comparison.
        tip: Text that a browser shows under the pointer.
    """

    tail: int
    head: int
    share: float = 1.0
    status: Status = ""
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Diagram:
    """A directed acyclic graph to draw.

    Attributes:
        nodes: Nodes in topological order, the first one on top.
        links: Lines between nodes; with panels, between nodes of one panel.
        frames: Borders, an outer one before those within it.
        panels: Parts side by side; empty, or all nodes are in one of them each.
        flows: Lines between panels.
        title: Description for screen readers.
        heading: Lines of text above the picture.
        legend: Whether the statuses are explained below the picture.
    """

    nodes: tuple[DiagramNode, ...]
    links: tuple[Link, ...]
    frames: tuple[Frame, ...] = ()
    panels: tuple[Panel, ...] = ()
    flows: tuple[Flow, ...] = ()
    title: str = ""
    heading: tuple[str, ...] = ()
    legend: bool = False

    def parts(self) -> Iterator[tuple[Panel, Diagram, tuple[int, ...]]]:
        """Yield each panel, its nodes as a diagram, and their positions."""
        for panel in self.panels or (Panel("", frozenset(range(len(self.nodes)))),):
            nodes = tuple(sorted(panel.nodes))
            index_of = dict(zip(nodes, count()))
            links = []
            for link in self.links:
                if link.tail in index_of and link.head in index_of:
                    links.append(Link(index_of[link.tail], index_of[link.head], link.status))

            frames = []
            for frame in self.frames:
                if inside := frame.nodes & panel.nodes:
                    frames.append(replace(frame, nodes=frozenset(index_of[u] for u in inside)))

            inner = tuple(self.nodes[u] for u in nodes)
            yield panel, Diagram(inner, tuple(links), tuple(frames)), nodes


def shorten(text: str, longest: int = _LONGEST) -> str:
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

    line = text_width(shorten(node.label), LABEL)
    if node.detail:
        line += text_width(" " + shorten(node.detail), DETAIL)

    if node.status and node.status != "matched":
        line += 14

    words = max(line, text_width(shorten(node.note), DETAIL)) + _PADDING
    width = 2 * math.ceil(max(words, _channel_width(node.channels), 52) / 2)
    return width, LINE + NOTE_LINE * bool(node.note)


def _channel_width(channels: int | None) -> float:
    """Return a width that grows by the same amount with each doubling of the channels."""
    return 0.0 if channels is None else min(40 + 20 * math.log2(max(channels, 1)), 360)
