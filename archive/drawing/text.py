"""Diagrams as text: a line for each node, and rails from outputs to inputs, as in git log.

    ◆      ip              a node without inputs
    ●─╮    conv3 64        a fork: the output is used here and further below
    ●─│─╮  conv3 64        a crossing
    ●─┤ │  add             a join; the rail continues
    ●─╯ │  add             a join at the end of a rail

A rail carries the output of one node, until the last node that it feeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from archive.drawing.diagram import Diagram, Frame, Link, Status, shorten
from archive.drawing.palette import SIGNS

_UP = 1
_DOWN = 2
_LEFT = 4
_RIGHT = 8
_LINES = {
    0: " ",
    _UP: "│",
    _DOWN: "│",
    _UP | _DOWN: "│",
    _LEFT: "─",
    _RIGHT: "─",
    _LEFT | _RIGHT: "─",
    _UP | _LEFT: "╯",
    _UP | _RIGHT: "╰",
    _DOWN | _LEFT: "╮",
    _DOWN | _RIGHT: "╭",
    _UP | _DOWN | _LEFT: "┤",
    _UP | _DOWN | _RIGHT: "├",
    _UP | _LEFT | _RIGHT: "┴",
    _DOWN | _LEFT | _RIGHT: "┬",
    _UP | _DOWN | _LEFT | _RIGHT: "┼",
}


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a diagram as text.

    Attributes:
        rails: Lines between nodes, and the mark of the node.
        words: Label of the node, or of a panel or a frame.
        detail: Words after the label.
        kind: Kind of the node's operation; empty for another line than a node's.
        status: Result of a comparison.
    """

    rails: str
    words: str
    detail: str = ""
    kind: str = ""
    status: Status = ""

    def __str__(self) -> str:
        """Return the line without trailing spaces."""
        return " ".join(filter(None, (self.rails, self.words, self.detail))).rstrip()


def text(diagram: Diagram) -> list[TextLine]:
    """Return a diagram as lines of text, panels one after another."""
    lines = []
    for line in diagram.heading:
        lines.append(TextLine("", line))

    for panel, part, _ in diagram.parts():
        if panel.title:
            if lines:
                lines.append(TextLine("", ""))

            lines.append(TextLine("", panel.title))

        lines += _lines(_in_reading_order(part))

    return lines


def _in_reading_order(diagram: Diagram) -> Diagram:
    """Return a diagram in reading order: each node right before the node it feeds, if possible."""
    parents: dict[int, set[int]] = defaultdict(set)
    depth = [0] * len(diagram.nodes)
    ends = set(range(len(diagram.nodes)))
    for link in sorted(diagram.links, key=lambda link: link.head):
        parents[link.head].add(link.tail)
        ends.discard(link.tail)
        depth[link.head] = max(depth[link.head], depth[link.tail] + 1)

    order: dict[int, int] = {}
    stack = sorted(ends, reverse=True)
    while stack:
        waiting = parents[stack[-1]] - order.keys()
        if waiting:
            # The longest branch first, so that a node without inputs stands right before its use.
            stack.append(max(waiting, key=lambda p: (depth[p], -p)))
        else:
            order.setdefault(stack.pop(), len(order))

    links = []
    for link in diagram.links:
        links.append(Link(order[link.tail], order[link.head], link.status))

    frames = []
    for frame in diagram.frames:
        frames.append(replace(frame, nodes=frozenset(order[u] for u in frame.nodes)))

    return Diagram(tuple(diagram.nodes[u] for u in order), tuple(links), tuple(frames))


def _lines(diagram: Diagram) -> list[TextLine]:
    rows = list(_Rails(diagram).rows())
    width = max(map(len, rows), default=0)
    signs = any(node.status for node in diagram.nodes)
    blank = "  " if signs else ""
    lines = []
    for u, (node, row) in enumerate(zip(diagram.nodes, rows, strict=True)):
        inside = [frame for frame in diagram.frames if u in frame.nodes]
        for depth, frame in enumerate(inside):
            if u == min(frame.nodes):
                lines.append(
                    TextLine(_through(row, width), f"{blank}{'│ ' * depth}┌ {shorten(frame.label)}")
                )

        sign = f"{SIGNS[node.status] if node.status else ' '} " if signs else ""
        words = f"{sign}{'│ ' * len(inside)}{shorten(node.label)}"
        detail = "  ".join(filter(None, (shorten(node.detail), shorten(node.note))))
        kind = "dead" if node.dead else node.kind
        lines.append(TextLine(row.ljust(width), words, detail, kind, node.status))
        lines += _ends(u, row, width, inside, blank)

    return lines


def _ends(u: int, row: str, width: int, inside: Sequence[Frame], blank: str) -> Iterator[TextLine]:
    for depth in reversed(range(len(inside))):
        if u == max(inside[depth].nodes):
            yield TextLine(_below(row, width), f"{blank}{'│ ' * depth}└")


def _through(row: str, width: int) -> str:
    """Return the rails above a row."""
    return _straight(row, "│┼┤├┴╯╰●○").ljust(width)


def _below(row: str, width: int) -> str:
    """Return the rails below a row."""
    return _straight(row, "│┼┤├┬╮╭●○◆").ljust(width)


def _straight(row: str, letters: str) -> str:
    """Return the rails that continue these letters of a row."""
    rails = ""
    for letter in row:
        rails += "│" if letter in letters else " "

    return rails


@dataclass
class _Rail:
    """The output of a node on its way down: the nodes that still use it."""

    tail: int
    heads: set[int]


class _Rails:
    """Places the rails in columns, two characters each."""

    def __init__(self, diagram: Diagram) -> None:
        self.diagram = diagram
        self.heads: dict[int, set[int]] = defaultdict(set)
        for link in diagram.links:
            self.heads[link.tail].add(link.head)

        self.columns: list[_Rail | None] = []
        # Column of a node of the last row that feeds nothing: a mark right below it would look like
        # its head.
        self.ended: list[int] = []

    def rows(self) -> Iterator[str]:
        """Yield the rails of each node's line."""
        fed = set[int]().union(*self.heads.values())
        for u, node in enumerate(self.diagram.nodes):
            # A node without inputs may stand below the end of another rail.
            yield self._row(u, "◆" if u not in fed else "○" if node.junction else "●")

    def _row(self, u: int, mark: str) -> str:
        arriving = [index for index, rail in enumerate(self.columns) if rail and u in rail.heads]
        above = [rail is not None for rail in self.columns]
        ended = []
        for arrived in arriving:
            rail = self.columns[arrived]
            assert rail is not None
            rail.heads.discard(u)
            if not rail.heads:
                self.columns[arrived] = None
                ended.append(arrived)

        track = ended[0] if ended else self._free(self.ended)
        self.ended = [] if self.heads[u] else [track]
        joined = {track, *arriving, *self._leave(u, track, arriving)}
        while self.columns and self.columns[-1] is None and len(self.columns) > max(joined) + 1:
            self.columns.pop()

        return self._draw_row(track, joined, above, mark)

    def _leave(self, u: int, track: int, arriving: Sequence[int]) -> list[int]:
        """Put a node's output on rails: its own column for the next node, another one below it."""
        heads = sorted(self.heads[u])
        self.columns[track] = _Rail(u, set(heads[:1])) if heads else None
        if len(heads) < 2:
            return []

        # In the column of a rail that ends here, the new one would look like its continuation.
        aside = self._free(arriving)
        self.columns[aside] = _Rail(u, set(heads[1:]))
        return [aside]

    def _free(self, taken: Sequence[int]) -> int:
        for index, rail in enumerate(self.columns):
            if rail is None and index not in taken:
                return index

        self.columns.append(None)
        return len(self.columns) - 1

    def _draw_row(self, track: int, joined: set[int], above: list[bool], mark: str) -> str:
        first = min(joined)
        last = max(joined)
        letters = []
        for index in range(max(len(self.columns), len(above))):
            bits = (index < len(above) and above[index]) * _UP
            bits |= (index < len(self.columns) and self.columns[index] is not None) * _DOWN
            if index in joined or (not bits and first < index < last):
                bits |= (index > first) * _LEFT | (index < last) * _RIGHT

            letters.append(mark if index == track else _LINES[bits])
            letters.append("─" if first <= index < last else " ")

        return "".join(letters).rstrip()
