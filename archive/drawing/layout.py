"""Layered layout of a diagram: positions of boxes, lines, frames and panels, in pixels.

Every rank is a horizontal band. Within a band a line is vertical and has a place beside the boxes;
it bends only between bands. A line therefore never crosses a box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from archive.drawing.columns import columns
from archive.drawing.diagram import Diagram, DiagramNode, Frame, Link, Panel
from archive.drawing.ranks import RankedGraph, order_rows, rank_nodes

MARGIN = 16
PANEL_GAP = 36
PANEL_PADDING = 14
TITLE = 26
FRAME_TOP = 22
FRAME_PADDING = 12

_BETWEEN_BOXES = 22.0
_BETWEEN_LINES = 14.0
_BETWEEN_RANKS = 18.0
_MOST_BEND = 46.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle: its left upper corner and its size."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height

    def moved(self, right: float, down: float) -> Box:
        """Return it at another place."""
        return Box(self.left + right, self.top + down, self.width, self.height)


Station = tuple[float, float, float]
"""A vertical piece of a line: x, upper end, lower end."""


@dataclass(frozen=True, slots=True)
class Route:
    """A line from top to bottom: vertical pieces, with a bend between each and the next.

    Attributes:
        link: The link that it draws.
        stations: Its vertical pieces. A line that branches off another one begins at a piece of
            that.
    """

    link: Link
    stations: tuple[Station, ...]


@dataclass
class Placed:
    """A diagram with positions.

    Attributes:
        boxes: Place of each node.
        routes: Place of each link.
        frames: Each frame with its place, the outer ones first.
        panels: Each panel with its place; none if there are no panels.
        width: Width of the picture without margins.
        height: Its height.
    """

    boxes: list[Box] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    frames: list[tuple[Frame, Box]] = field(default_factory=list)
    panels: list[tuple[Panel, Box]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def arrange(diagram: Diagram) -> Placed:
    """Return the positions of a diagram, panels from left to right."""
    if not diagram.panels:
        return _place_layers(diagram)

    whole = Placed(boxes=[Box(0, 0, 0, 0)] * len(diagram.nodes))
    left = 0.0
    for panel, part, nodes in diagram.parts():
        inner = _place_layers(part)
        right = left + PANEL_PADDING
        down = TITLE + PANEL_PADDING
        width = max(inner.width, text_width(panel.title, LABEL)) + 2 * PANEL_PADDING
        right += (width - 2 * PANEL_PADDING - inner.width) / 2
        for u, box in zip(nodes, inner.boxes, strict=True):
            whole.boxes[u] = box.moved(right, down)

        for route in inner.routes:
            link = Link(nodes[route.link.tail], nodes[route.link.head], route.link.status)
            stations = [(x + right, top + down, bottom + down) for x, top, bottom in route.stations]
            whole.routes.append(Route(link, tuple(stations)))

        whole.frames += [(frame, box.moved(right, down)) for frame, box in inner.frames]
        whole.panels.append((panel, Box(left, 0, width, inner.height + TITLE + 2 * PANEL_PADDING)))
        left += width + PANEL_GAP

    whole.width = left - PANEL_GAP
    whole.height = max(box.height for _, box in whole.panels)
    return whole


def _place_layers(diagram: Diagram) -> Placed:
    if not diagram.nodes:
        return Placed()

    graph = rank_nodes(len(diagram.nodes), diagram.links)
    rows = order_rows(graph)
    sizes = [box_size(node) for node in diagram.nodes]
    frames_of = _frames_of(graph, diagram.frames)

    def gap(left: int, right: int) -> float:
        plain = _BETWEEN_BOXES if left < graph.nodes and right < graph.nodes else _BETWEEN_LINES
        borders = len(frames_of[left] ^ frames_of[right]) * FRAME_PADDING
        return plain + borders + (_width(sizes, left) + _width(sizes, right)) / 2

    x = columns(graph, rows, gap)
    bands = _bands(graph, rows, sizes, x, diagram.frames)
    boxes = []
    for u, (width, height) in enumerate(sizes):
        top, bottom = bands[graph.rank[u]]
        boxes.append(Box(x[u] - width / 2, (top + bottom - height) / 2, width, height))

    done = Placed(boxes, _routes(graph, diagram.links, x, bands, boxes))
    done.frames = _borders(graph, diagram.frames, x, boxes, frames_of)
    return _at_origin(done, x)


def _width(sizes: Sequence[tuple[float, float]], vertex: int) -> float:
    return sizes[vertex][0] if vertex < len(sizes) else 0.0


def _frames_of(graph: RankedGraph, frames: Sequence[Frame]) -> list[frozenset[int]]:
    """Return the numbers of the frames around each vertex; a line is in the frames of its nodes."""
    if not frames:
        return [frozenset()] * len(graph.rank)

    inner = []
    for u in range(graph.nodes):
        inner.append(frozenset(index for index, frame in enumerate(frames) if u in frame.nodes))

    for vertex in range(graph.nodes, len(graph.rank)):
        inner.append(frozenset.intersection(*(inner[head] for head in graph.heads[vertex])))

    return inner


def _bands(
    graph: RankedGraph,
    rows: list[list[int]],
    sizes: Sequence[tuple[float, float]],
    x: list[float],
    frames: Sequence[Frame],
) -> list[tuple[float, float]]:
    """Return the upper and the lower edge of each rank's band.

    Lines that go far to the side need room to bend.
    """
    begins = [0] * len(rows)
    ends = [0] * len(rows)
    for frame in frames:
        ranks = [graph.rank[u] for u in frame.nodes]
        begins[min(ranks)] += 1
        ends[max(ranks)] += 1

    bands: list[tuple[float, float]] = []
    top = 0.0
    for rank, row in enumerate(rows):
        top += begins[rank] * FRAME_TOP
        height = max((sizes[u][1] for u in row if u < graph.nodes), default=0.0)
        bands.append((top, top + height))
        aside = 0.0
        for u in row:
            for v in graph.below[u]:
                aside = max(aside, abs(x[u] - x[v]))

        top += height + _BETWEEN_RANKS + min(aside / 8, _MOST_BEND) + ends[rank] * FRAME_PADDING

    return bands


def _routes(
    graph: RankedGraph,
    links: Sequence[Link],
    x: list[float],
    bands: list[tuple[float, float]],
    boxes: list[Box],
) -> list[Route]:
    """Return the lines; a piece of a trunk is drawn by one of its links only."""
    drawn: set[tuple[int, int]] = set()
    routes: list[Route | None] = [None] * len(links)
    for index in sorted(range(len(links)), key=lambda link: (-len(graph.routes[link]), link)):
        vertices = graph.routes[index]
        first = 0
        while first + 2 < len(vertices) and (vertices[first], vertices[first + 1]) in drawn:
            first += 1

        drawn.update(pairwise(vertices))
        stations = []
        for vertex in vertices[first:]:
            top, bottom = bands[graph.rank[vertex]]
            if vertex == links[index].tail:
                top = boxes[vertex].bottom
            elif vertex == links[index].head:
                bottom = boxes[vertex].top
            elif vertex == vertices[first]:
                top = bottom

            stations.append((x[vertex], top, bottom))

        routes[index] = Route(links[index], tuple(stations))

    return [route for route in routes if route is not None]


def _borders(
    graph: RankedGraph,
    frames: Sequence[Frame],
    x: list[float],
    boxes: list[Box],
    frames_of: list[frozenset[int]],
) -> list[tuple[Frame, Box]]:
    """Return the places of frames, around their nodes, inner lines and inner frames."""
    places: dict[int, Box] = {}
    for number in reversed(range(len(frames))):
        inside = [boxes[u] for u in sorted(frames[number].nodes)]
        for other, position in places.items():
            if frames[other].nodes <= frames[number].nodes:
                inside.append(position)

        points = [x[vertex] for vertex in range(graph.nodes, len(x)) if number in frames_of[vertex]]
        left = min([box.left for box in inside] + points) - FRAME_PADDING
        right = max([box.right for box in inside] + points) + FRAME_PADDING
        top = min(box.top for box in inside) - FRAME_TOP
        bottom = max(box.bottom for box in inside) + FRAME_PADDING
        places[number] = Box(left, top, right - left, bottom - top)

    return [(frame, places[index]) for index, frame in enumerate(frames)]


def _at_origin(done: Placed, x: list[float]) -> Placed:
    """Return everything moved so that the picture begins at 0."""
    around = [*done.boxes, *(box for _, box in done.frames)]
    left = min([box.left for box in around] + x)
    top = min(box.top for box in around)
    done.width = max([box.right for box in around] + x) - left
    done.height = max(box.bottom for box in around) - top
    done.boxes = [box.moved(-left, -top) for box in done.boxes]
    done.frames = [(frame, box.moved(-left, -top)) for frame, box in done.frames]
    routes = []
    for route in done.routes:
        stations = ((x - left, upper - top, lower - top) for x, upper, lower in route.stations)
        routes.append(Route(route.link, tuple(stations)))

    done.routes = routes
    return done


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
