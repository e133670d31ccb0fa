"""Places of a diagram's parts in a picture, in pixels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from archive.drawing.diagram import Flow, Frame, Link, Panel


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


Point = tuple[float, float]
Station = tuple[float, float, float]
"""A vertical piece of a line: x, where it begins, where it ends. It leads down, but up in a gutter
between columns."""


def leads_up(station: Station) -> bool:
    """Return whether a piece leads up in a gutter; sums of positions may differ by a rounding."""
    _, begin, end = station
    return begin > end + 1


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


@dataclass(frozen=True, slots=True)
class FlowRoute:
    """A line from a panel to the next one: straight within panels, with a bend between them.

    Attributes:
        flow: The flow that it draws.
        left: Its corners in the left panel, from the box to the panel's edge.
        right: Its corners in the right panel, from the panel's edge to the box.
    """

    flow: Flow
    left: tuple[Point, ...]
    right: tuple[Point, ...]


@dataclass
class Placed:
    """A diagram with positions.

    Attributes:
        boxes: Place of each node.
        routes: Place of each link.
        frames: Each frame with its place, the outer ones first. A frame that is split between
            columns has a place in each.
        panels: Each panel with its place; none if there are no panels.
        flows: Place of each flow.
        width: Width of the picture without margins.
        height: Its height.
    """

    boxes: list[Box] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    frames: list[tuple[Frame, Box]] = field(default_factory=list)
    panels: list[tuple[Panel, Box]] = field(default_factory=list)
    flows: list[FlowRoute] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def move(self, right: float, down: float) -> None:
        """Move boxes, lines and frames."""
        self.boxes = [box.moved(right, down) for box in self.boxes]
        self.routes = [route.moved(right, down) for route in self.routes]
        self.frames = [(frame, box.moved(right, down)) for frame, box in self.frames]


def edges_of(boxes: Iterable[Box], points: Iterable[float]) -> tuple[float, float, float, float]:
    """Return the left, upper, right and lower edge of boxes, and of lines at these x."""
    left = top = inf
    right = bottom = -inf
    for box in boxes:
        left = min(left, box.left)
        top = min(top, box.top)
        right = max(right, box.right)
        bottom = max(bottom, box.bottom)

    return min([left, *points]), top, max([right, *points]), bottom
