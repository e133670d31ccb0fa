"""Layered layout of a diagram: positions of boxes, lines, frames and panels, in pixels.

Every rank is a horizontal band. Within a band a line is vertical and has a place beside the boxes;
it bends only between bands. A line therefore never crosses a box.

Vertical lines stay straight, the rest lies near its neighbours: horizontal positions follow Brandes
and Köpf: Fast and Simple Horizontal Coordinate Assignment (2001). Vertices of adjacent ranks are
aligned to blocks, each of which has one position. Unlike there, the spine is aligned first, then
the points of trunks, then nodes with the median of their neighbours, so that one alignment is
enough. Alignments never cross, hence blocks have a consistent order from left to right.

| symbol | meaning                                                    |
|--------|------------------------------------------------------------|
| block  | vertices of consecutive ranks, one of each, with equal x   |
| gap    | least distance of the centres of two neighbours of a rank  |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from archive.drawing.diagram import LABEL, Diagram, Frame, Link, Panel, box_size, text_width
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
_PASSES = 8


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

    x = _columns(graph, rows, gap)
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


Gap = Callable[[int, int], float]


def _columns(graph: RankedGraph, rows: list[list[int]], gap: Gap) -> list[float]:
    """Return the x of each vertex's centre.

    Args:
        graph: Vertices and their neighbours.
        rows: Vertices of each rank from left to right.
        gap: Least distance of two neighbours' centres, the left one given first.
    """
    block = _blocks(graph, rows)
    right = _constraints(rows, block, gap)
    left: dict[int, dict[int, float]] = {b: {} for b in right}
    for a, others in right.items():
        for b, least in others.items():
            left[b][a] = least

    order = _left_to_right(left, right)
    x = dict.fromkeys(order, 0.0)
    for b in order:
        x[b] = max((x[a] + least for a, least in left[b].items()), default=0.0)

    neighbours = _neighbours(graph, block)
    for _ in range(_PASSES):
        moved = _move(order[::-1], x, left, right, neighbours) + _move(
            order, x, left, right, neighbours
        )
        if moved < 1:
            break

    return [x[b] for b in block]


def _blocks(graph: RankedGraph, rows: list[list[int]]) -> list[int]:
    """Return the block of each vertex: the top vertex of those that it is aligned with."""
    block = list(range(len(graph.rank)))
    on_spine = set(pairwise(graph.spine))
    for upper, lower in pairwise(rows):
        position = {}
        for row in (upper, lower):
            for index, vertex in enumerate(row):
                position[vertex] = index

        edges = []
        for u in upper:
            edges += [(u, v) for v in graph.below[u]]

        edges.sort(key=lambda edge: _priority(graph, edge, on_spine, position))
        taken: list[tuple[int, int]] = []
        for u, v in edges:
            s = position[u]
            t = position[v]
            # Equal places at either end mean that one vertex would be aligned twice.
            if all(
                (s < other_s and t < other_t) or (s > other_s and t > other_t)
                for other_s, other_t in taken
            ):
                taken.append((s, t))
                block[v] = block[u]

    return block


def _priority(
    graph: RankedGraph,
    edge: tuple[int, int],
    on_spine: set[tuple[int, int]],
    position: dict[int, int],
) -> tuple[float, ...]:
    u, v = edge
    if edge in on_spine:
        return (0, 0, position[u], position[v])

    if u >= graph.nodes and v >= graph.nodes:
        return (1, 0, position[u], position[v])

    return (
        2,
        _off_middle(graph.below[u], v, position) + _off_middle(graph.above[v], u, position),
        position[u],
        position[v],
    )


def _off_middle(neighbours: list[int], vertex: int, position: dict[int, int]) -> float:
    left = sum(position[other] < position[vertex] for other in neighbours)
    return abs(left - (len(neighbours) - 1) / 2)


def _constraints(rows: list[list[int]], block: list[int], gap: Gap) -> dict[int, dict[int, float]]:
    right: dict[int, dict[int, float]] = {b: {} for b in sorted(set(block))}
    for row in rows:
        for u, v in pairwise(row):
            others = right[block[u]]
            others[block[v]] = max(others.get(block[v], 0.0), gap(u, v))

    return right


def _left_to_right(
    left: dict[int, dict[int, float]], right: dict[int, dict[int, float]]
) -> list[int]:
    waiting = {b: len(others) for b, others in left.items()}
    order = [b for b, count in waiting.items() if not count]
    for b in order:
        for other in right[b]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)

    return order


def _neighbours(graph: RankedGraph, block: list[int]) -> dict[int, list[int]]:
    neighbours: dict[int, list[int]] = {b: [] for b in block}
    for u, children in enumerate(graph.below):
        for v in children:
            if block[u] != block[v]:
                neighbours[block[u]].append(block[v])
                neighbours[block[v]].append(block[u])

    return neighbours


def _move(
    order: list[int],
    x: dict[int, float],
    left: dict[int, dict[int, float]],
    right: dict[int, dict[int, float]],
    neighbours: dict[int, list[int]],
) -> float:
    """Move each block toward its neighbours' mean, within its gaps; return the longest move."""
    longest = 0.0
    for b in order:
        if not neighbours[b]:
            continue

        target = sum(x[other] for other in neighbours[b]) / len(neighbours[b])
        low = max((x[a] + least for a, least in left[b].items()), default=-inf)
        high = min((x[a] - least for a, least in right[b].items()), default=inf)
        target = min(max(target, low), high)
        longest = max(longest, abs(target - x[b]))
        x[b] = target

    return longest
