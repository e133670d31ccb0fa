"""Layered layout of a graph.

Every rank is a horizontal band. Within a band a line is vertical and has a place beside the boxes;
it bends only between bands. A line therefore never crosses a box. Columns
(`archive.drawing.columns`) keep a tall layout legible; lines lead from one to the next around both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf

from archive.drawing.columns import (
    LANE,
    LANE_PADDING,
    LEGIBLE,
    RankExtent,
    Sheet,
    column_ranges,
    fold_ranks,
    gutter,
)
from archive.drawing.coordinates import horizontal_positions
from archive.drawing.diagram import LABEL, Diagram, Frame, box_size, text_width
from archive.drawing.geometry import Box, Placed, Route, Station, edges_of
from archive.drawing.ranks import RankedGraph, order_rows, rank_nodes

FRAME_TOP = 26
FRAME_PADDING = 12

_BETWEEN_BOXES = 22.0
_BETWEEN_LINES = 14.0
_BETWEEN_RANKS = 18.0
_MOST_BEND = 36.0


def place_layers(diagram: Diagram, sheet: Sheet | None) -> Placed:
    """Return the positions of a diagram without panels.

    Args:
        diagram: The diagram to place.
        sheet: The space that it should fill, in columns; None for one column. Boxes are as wide as
            their words alone if the picture is not legible there otherwise.
    """
    if not diagram.nodes:
        return Placed()

    graph = rank_nodes(len(diagram.nodes), diagram.links)
    rows = order_rows(graph)
    placed = _place(diagram, graph, rows, sheet)
    if sheet is None or placed.width * LEGIBLE <= sheet.width:
        return placed

    narrow = replace(diagram, nodes=tuple(replace(node, channels=None) for node in diagram.nodes))
    return _place(narrow, graph, rows, sheet)


def _place(
    diagram: Diagram, graph: RankedGraph, rows: list[list[int]], sheet: Sheet | None
) -> Placed:
    sizes = list(map(box_size, diagram.nodes))
    frames_of = _frames_of(graph, diagram.frames)

    def gap(left: int, right: int) -> float:
        plain = _BETWEEN_BOXES if left < graph.nodes and right < graph.nodes else _BETWEEN_LINES
        borders = len(frames_of[left] ^ frames_of[right]) * FRAME_PADDING
        return plain + borders + (_width(sizes, left) + _width(sizes, right)) / 2

    x = horizontal_positions(graph, rows, gap)
    layers = _Layers(graph, rows, sizes, x, diagram, frames_of)
    return layers.place(sheet)


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


@dataclass
class _Layers:
    """Ranks with horizontal positions, which are placed in columns.

    Attributes:
        graph: Vertices and their ranks.
        rows: Vertices of each rank from left to right.
        sizes: Width and height of each node.
        x: Centre of each vertex.
        diagram: The diagram that is placed.
        frames_of: Numbers of the frames around each vertex.
        column: Column of each rank.
        bands: Upper and lower edge of each rank, from the top of its column.
        lanes: Lane of each vertex whose lines lead to the next column, from the left.
        floors: Lower edge of each column, from its top.
    """

    graph: RankedGraph
    rows: list[list[int]]
    sizes: Sequence[tuple[float, float]]
    x: list[float]
    diagram: Diagram
    frames_of: list[frozenset[int]]
    column: list[int] = field(default_factory=list)
    bands: list[tuple[float, float]] = field(default_factory=list)
    lanes: dict[int, int] = field(default_factory=dict)
    floors: list[float] = field(default_factory=list)

    def place(self, sheet: Sheet | None) -> Placed:
        """Return the positions, in columns if one would be too high for the sheet."""
        self.column = [0] * len(self.rows)
        self._set_bands()
        if sheet is not None:
            self.column = fold_ranks(self._extents(), sheet)
            if self.column[-1]:
                self._set_bands()

        for _, end in column_ranges(self.column):
            if end < len(self.rows):
                for lane, vertex in enumerate(self._leaving(end - 1)):
                    self.lanes[vertex] = lane

        placed = Placed(self._boxes())
        pieces = self._frame_pieces(placed.boxes)
        above = 0.0
        if self.lanes:
            above = max(self.lanes.values()) * LANE + LANE_PADDING

        edges = self._columns(placed.boxes, pieces)
        shift = [left for left, _ in edges]
        for u, box in enumerate(placed.boxes):
            placed.boxes[u] = box.moved(shift[self._column_of(u)], above)

        for frame, number, box in pieces:
            placed.frames.append((frame, box.moved(shift[number], above)))

        self.x = [x + shift[self._column_of(vertex)] for vertex, x in enumerate(self.x)]
        self.bands = [(top + above, bottom + above) for top, bottom in self.bands]
        self.floors = [floor + above for floor in self.floors]
        placed.routes = self._routes(placed.boxes, [right for _, right in edges])
        return self._at_origin(placed)

    def _column_of(self, vertex: int) -> int:
        return self.column[self.graph.rank[vertex]]

    def _leaving(self, rank: int) -> list[int]:
        """Return the vertices of a rank that have lines to the next rank."""
        return [vertex for vertex in self.rows[rank] if self.graph.below[vertex]]

    def _frame_ranks(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last rank of each frame."""
        for frame in self.diagram.frames:
            ranks = [self.graph.rank[u] for u in frame.nodes]
            yield min(ranks), max(ranks)

    def _set_bands(self) -> None:
        """Set the bands, and the lower edges of the columns.

        Lines that go far to the side need space to bend, borders of frames above and below bands.
        """
        begins = [0] * len(self.rows)
        ends = [0] * len(self.rows)
        ranges = list(column_ranges(self.column))
        for first, last in self._frame_ranks():
            for start, end in ranges:
                if first < end and last >= start:
                    begins[max(first, start)] += 1
                    ends[min(last, end - 1)] += 1

        self.bands = []
        self.floors = []
        for start, end in ranges:
            top = 0.0
            for rank in range(start, end):
                top += begins[rank] * FRAME_TOP
                height = 0.0
                aside = 0.0
                for u in self.rows[rank]:
                    if u < self.graph.nodes:
                        height = max(height, self.sizes[u][1])

                    for v in self.graph.below[u]:
                        aside = max(aside, abs(self.x[u] - self.x[v]))

                self.bands.append((top, top + height))
                top += height + ends[rank] * FRAME_PADDING
                if rank + 1 < end:
                    top += _BETWEEN_RANKS + min(aside / 10, _MOST_BEND)

            self.floors.append(top)

    def _extents(self) -> list[RankExtent]:
        """Return what decides where the ranks are folded."""
        split = [0] * len(self.rows)
        right = [-inf] * len(self.rows)
        left = [inf] * len(self.rows)
        for rank, row in enumerate(self.rows):
            for vertex in row:
                half = _width(self.sizes, vertex) / 2 + FRAME_PADDING * len(self.frames_of[vertex])
                left[rank] = min(left[rank], self.x[vertex] - half)
                right[rank] = max(right[rank], self.x[vertex] + half)

        for frame, (first, last) in zip(self.diagram.frames, self._frame_ranks(), strict=True):
            right[first] = max(right[first], left[first] + _label_width(frame))
            for rank in range(first, last):
                split[rank] += 1

        extents = []
        for rank, (top, bottom) in enumerate(self.bands):
            lanes = len(self._leaving(rank))
            extents.append(RankExtent(top, bottom, left[rank], right[rank], lanes, split[rank]))

        return extents

    def _boxes(self) -> list[Box]:
        boxes = []
        for u, (width, height) in enumerate(self.sizes):
            top, bottom = self.bands[self.graph.rank[u]]
            boxes.append(Box(self.x[u] - width / 2, (top + bottom - height) / 2, width, height))

        return boxes

    def _frame_pieces(self, boxes: Sequence[Box]) -> list[tuple[Frame, int, Box]]:
        """Return each frame with its columns and its places there, outer ones first.

        A frame is around its nodes, inner lines, inner frames and its label.
        """
        pieces: list[tuple[Frame, int, Box]] = []
        for number in reversed(range(len(self.diagram.frames))):
            frame = self.diagram.frames[number]
            columns = sorted({self._column_of(u) for u in frame.nodes}, reverse=True)
            for column in columns:
                inside = [boxes[u] for u in frame.nodes if self._column_of(u) == column]
                for other, other_column, box in pieces:
                    if other_column == column and other.nodes <= frame.nodes:
                        inside.append(box)

                points = []
                for vertex in range(self.graph.nodes, len(self.x)):
                    if number in self.frames_of[vertex] and self._column_of(vertex) == column:
                        points.append(self.x[vertex])

                piece = frame
                if column != columns[-1]:
                    piece = replace(frame, label=f"{frame.label} …")

                left, top, right, bottom = edges_of(inside, points)
                left -= FRAME_PADDING
                top -= FRAME_TOP
                right = max(right + FRAME_PADDING, left + _label_width(piece))
                place = Box(left, top, right - left, bottom + FRAME_PADDING - top)
                pieces.append((piece, column, place))

        return pieces[::-1]

    def _columns(
        self, boxes: Sequence[Box], pieces: Iterable[tuple[Frame, int, Box]]
    ) -> list[tuple[float, float]]:
        """Return how far each column moves to the right, and its right edge afterwards."""
        inside: list[list[Box]] = [[] for _ in self.floors]
        points: list[list[float]] = [[] for _ in self.floors]
        for u, box in enumerate(boxes):
            inside[self._column_of(u)].append(box)

        for _, column, box in pieces:
            inside[column].append(box)

        for vertex, x in enumerate(self.x):
            points[self._column_of(vertex)].append(x)

        edges = []
        begin = 0.0
        for column, (_, end) in enumerate(column_ranges(self.column)):
            left, _, right, _ = edges_of(inside[column], points[column])
            edges.append((begin - left, begin + right - left))
            begin += right - left + gutter(len(self._leaving(end - 1)))

        return edges

    def _routes(self, boxes: list[Box], right: Sequence[float]) -> list[Route]:
        """Return the lines; a piece of a trunk is drawn by one of its links only."""
        drawn: set[tuple[int, int]] = set()
        links = self.diagram.links
        routes = [Route(link, ()) for link in links]
        of_link = self.graph.routes
        for index in sorted(range(len(links)), key=lambda link: (-len(of_link[link]), link)):
            vertices = of_link[index]
            first = 0
            while first + 2 < len(vertices) and (vertices[first], vertices[first + 1]) in drawn:
                first += 1

            drawn.update(pairwise(vertices))
            stations: list[Station] = []
            for row, vertex in enumerate(vertices[first:], first):
                top, bottom = self.bands[self.graph.rank[vertex]]
                if vertex == links[index].tail:
                    top = boxes[vertex].bottom
                elif vertex == links[index].head:
                    bottom = boxes[vertex].top
                elif row == first:
                    top = bottom

                if row > first and self._column_of(vertex) != self._column_of(vertices[row - 1]):
                    stations.append(self._gutter_station(vertices[row - 1], right))

                stations.append((self.x[vertex], top, bottom))

            routes[index] = Route(links[index], tuple(stations))

        return routes

    def _gutter_station(self, vertex: int, right: Sequence[float]) -> Station:
        """Return the way up beside the column of a vertex; lanes of one gutter do not cross."""
        column = self._column_of(vertex)
        row = self._leaving(self.graph.rank[vertex])
        aside = (len(row) - 1 - self.lanes[vertex]) * LANE
        return (
            right[column] + LANE_PADDING + aside,
            self.floors[column] + LANE_PADDING + aside,
            aside,
        )

    def _at_origin(self, placed: Placed) -> Placed:
        """Return everything moved so that the picture begins at 0."""
        around = list(placed.boxes)
        for _, box in placed.frames:
            around.append(box)

        left, top, right, bottom = edges_of(around, self.x)
        if self.lanes:
            top = 0.0
            for route in placed.routes:
                for _, begin, _ in route.stations:
                    bottom = max(bottom, begin)

        placed.width = right - left
        placed.height = bottom - top
        placed.move(-left, -top)
        return placed


def _label_width(frame: Frame) -> float:
    return text_width(frame.label, LABEL) * 1.08 + 16
