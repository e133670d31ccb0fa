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

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
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

    def moved(self, right: float, down: float) -> Route:
        """Return it at another place."""
        stations = [(x + right, top + down, bottom + down) for x, top, bottom in self.stations]
        return Route(self.link, tuple(stations))


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

    def move(self, right: float, down: float) -> None:
        """Move boxes, lines and frames."""
        self.boxes = [box.moved(right, down) for box in self.boxes]
        self.routes = [route.moved(right, down) for route in self.routes]
        self.frames = [(frame, box.moved(right, down)) for frame, box in self.frames]


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
        inner.move(right, down)
        for u, box in zip(nodes, inner.boxes, strict=True):
            whole.boxes[u] = box

        for route in inner.routes:
            link = Link(nodes[route.link.tail], nodes[route.link.head], route.link.status)
            whole.routes.append(replace(route, link=link))

        height = inner.height + TITLE + 2 * PANEL_PADDING
        whole.frames += inner.frames
        whole.panels.append((panel, Box(left, 0, width, height)))
        whole.height = max(whole.height, height)
        left += width + PANEL_GAP

    whole.width = left - PANEL_GAP
    return whole


def _place_layers(diagram: Diagram) -> Placed:
    if not diagram.nodes:
        return Placed()

    graph = rank_nodes(len(diagram.nodes), diagram.links)
    rows = order_rows(graph)
    sizes = list(map(box_size, diagram.nodes))
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

    inner = [frozenset[int]()] * graph.nodes
    for number, frame in enumerate(frames):
        for u in frame.nodes:
            inner[u] |= {number}

    for vertex in range(graph.nodes, len(graph.rank)):
        inner.append(frozenset.intersection(*map(inner.__getitem__, graph.heads[vertex])))

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
        height = 0.0
        aside = 0.0
        for u in row:
            if u < graph.nodes:
                height = max(height, sizes[u][1])

            for v in graph.below[u]:
                aside = max(aside, abs(x[u] - x[v]))

        bands.append((top, top + height))
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
    routes = [Route(link, ()) for link in links]
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

    return routes


def _borders(
    graph: RankedGraph,
    frames: Sequence[Frame],
    x: list[float],
    boxes: list[Box],
    frames_of: list[frozenset[int]],
) -> list[tuple[Frame, Box]]:
    """Return the places of frames, around their nodes, inner lines and inner frames."""
    places: list[tuple[Frame, Box]] = []
    for number in reversed(range(len(frames))):
        frame = frames[number]
        inside = [boxes[u] for u in frame.nodes]
        for other, box in places:
            if other.nodes <= frame.nodes:
                inside.append(box)

        points = []
        for vertex in range(graph.nodes, len(x)):
            if number in frames_of[vertex]:
                points.append(x[vertex])

        left, top, right, bottom = _edges(inside, points)
        left -= FRAME_PADDING
        top -= FRAME_TOP
        places.append(
            (frame, Box(left, top, right + FRAME_PADDING - left, bottom + FRAME_PADDING - top))
        )

    return places[::-1]


def _edges(boxes: Iterable[Box], points: Iterable[float]) -> tuple[float, float, float, float]:
    """Return the left, upper, right and lower edge of boxes, and of lines at these x."""
    left = top = inf
    right = bottom = -inf
    for box in boxes:
        left = min(left, box.left)
        top = min(top, box.top)
        right = max(right, box.right)
        bottom = max(bottom, box.bottom)

    return min([left, *points]), top, max([right, *points]), bottom


def _at_origin(done: Placed, x: list[float]) -> Placed:
    """Return everything moved so that the picture begins at 0."""
    around = list(done.boxes)
    for _, box in done.frames:
        around.append(box)

    left, top, right, bottom = _edges(around, x)
    done.width = right - left
    done.height = bottom - top
    done.move(-left, -top)
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
    left, right = _constraints(rows, block, gap)
    order = _left_to_right(left, right)
    x = dict.fromkeys(order, 0.0)
    for b in order:
        x[b] = _lowest(x, left[b], 0.0)

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
        position = dict(zip(upper, count())) | dict(zip(lower, count()))
        edges = []
        for u in upper:
            for v in graph.below[u]:
                edges.append((u, v))

        edges.sort(key=lambda edge: _priority(graph, edge, on_spine, position))
        taken: list[tuple[int, int]] = []
        for u, v in edges:
            s = position[u]
            t = position[v]
            # Equal places at either end mean that one vertex would be aligned twice.
            if all((s - other_s) * (t - other_t) > 0 for other_s, other_t in taken):
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


Gaps = dict[int, dict[int, float]]
"""Block to its neighbours on one side, each with the gap to it."""


def _constraints(rows: list[list[int]], block: list[int], gap: Gap) -> tuple[Gaps, Gaps]:
    """Return the gaps of each block to blocks on its left, and on its right."""
    left: Gaps = {}
    right: Gaps = {}
    for b in sorted(set(block)):
        left[b] = {}
        right[b] = {}

    for row in rows:
        for u, v in pairwise(row):
            a = block[u]
            b = block[v]
            right[a][b] = left[b][a] = max(right[a].get(b, 0.0), gap(u, v))

    return left, right


def _left_to_right(left: Gaps, right: Gaps) -> list[int]:
    waiting: dict[int, int] = {}
    order: list[int] = []
    for b, others in left.items():
        waiting[b] = len(others)
        if not others:
            order.append(b)

    for b in order:
        for other in right[b]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)

    return order


def _neighbours(graph: RankedGraph, block: list[int]) -> dict[int, list[int]]:
    neighbours: dict[int, list[int]] = defaultdict(list)
    for u, children in enumerate(graph.below):
        for v in children:
            if block[u] != block[v]:
                neighbours[block[u]].append(block[v])
                neighbours[block[v]].append(block[u])

    return neighbours


def _move(
    order: list[int],
    x: dict[int, float],
    left: Gaps,
    right: Gaps,
    neighbours: dict[int, list[int]],
) -> float:
    """Move each block toward its neighbours' mean, within its gaps; return the longest move."""
    longest = 0.0
    for b in order:
        if not neighbours[b]:
            continue

        target = sum(x[other] for other in neighbours[b]) / len(neighbours[b])
        target = max(target, _lowest(x, left[b], -inf))
        for other, gap in right[b].items():
            target = min(target, x[other] - gap)

        longest = max(longest, abs(target - x[b]))
        x[b] = target

    return longest


def _lowest(x: dict[int, float], left: dict[int, float], low: float) -> float:
    """Return the least x, at least `low`, that the gaps to blocks on the left allow."""
    for other, gap in left.items():
        low = max(low, x[other] + gap)

    return low
