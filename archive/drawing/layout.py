"""Positions of a diagram: panels side by side or one below the other, and flows between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from archive.drawing.columns import Sheet
from archive.drawing.diagram import LABEL, Diagram, Flow, Link, Panel, text_width
from archive.drawing.geometry import Box, FlowRoute, Placed, Point
from archive.drawing.layers import place_layers

MARGIN = 16
PANEL_GAP = 36
FLOW_GAP = 84
PANEL_PADDING = 14
TITLE = 26

_BESIDE_BAND = 7.0
"""Distance of a flow from the band that it passes by."""


def arrange(diagram: Diagram, sheet: Sheet | None = None) -> Placed:
    """Return the positions of a diagram.

    Args:
        diagram: The diagram to place.
        sheet: The space that it should fill, with panels side by side or, where they are too wide
            and no flow joins them, one below the other. None for one column, and panels side by
            side.
    """
    if not diagram.panels:
        return place_layers(diagram, sheet)

    # Flows lead from panel to panel, past no further column.
    inner_sheet = None
    if sheet is not None and not diagram.flows:
        inner_sheet = Sheet(sheet.width / len(diagram.panels), sheet.height)

    parts = []
    for panel, part, nodes in diagram.parts():
        parts.append((panel, nodes, place_layers(part, inner_sheet)))

    whole = Placed(boxes=[Box(0, 0, 0, 0)] * len(diagram.nodes))
    gap = FLOW_GAP if diagram.flows else PANEL_GAP
    widths = [_panel_width(panel, inner) for panel, _, inner in parts]
    beside = sum(widths) + gap * (len(widths) - 1)
    below = inner_sheet is not None and sheet is not None and beside > sheet.width
    left = 0.0
    top = 0.0
    for (panel, nodes, inner), width in zip(parts, widths, strict=True):
        box = Box(left, top, width, inner.height + TITLE + 2 * PANEL_PADDING)
        _put(whole, nodes, inner, box)
        whole.panels.append((panel, box))
        whole.width = max(whole.width, box.right)
        whole.height = max(whole.height, box.bottom)
        if below:
            top = box.bottom + PANEL_GAP / 2
        else:
            left = box.right + gap

    whole.flows = [_flow_route(flow, diagram, whole) for flow in diagram.flows]
    return whole


def _panel_width(panel: Panel, inner: Placed) -> float:
    return max(inner.width, text_width(panel.title, LABEL)) + 2 * PANEL_PADDING


def _put(whole: Placed, nodes: Sequence[int], inner: Placed, panel: Box) -> None:
    """Put a panel's part into the middle of its place."""
    inner.move(panel.left + (panel.width - inner.width) / 2, panel.top + TITLE + PANEL_PADDING)
    for u, box in zip(nodes, inner.boxes, strict=True):
        whole.boxes[u] = box

    for route in inner.routes:
        link = Link(nodes[route.link.tail], nodes[route.link.head], route.link.status)
        whole.routes.append(replace(route, link=link))

    whole.frames += inner.frames


def _flow_route(flow: Flow, diagram: Diagram, whole: Placed) -> FlowRoute:
    """Return the way of a flow, past the boxes of both panels."""
    ends = []
    for u in (flow.tail, flow.head):
        for panel, box in whole.panels:
            if u in panel.nodes:
                boxes = [whole.boxes[v] for v in panel.nodes]
                ends.append((box, whole.boxes[u], boxes))

    ends.sort(key=lambda end: end[0].left)
    (box, tail, tails), (other_place, head, heads) = ends
    left = _way_out(tail, tails, box.right, rightwards=True)
    right = _way_out(head, heads, other_place.left, rightwards=False)
    return FlowRoute(flow, left, right[::-1])


def _way_out(
    box: Box, others: Iterable[Box], edge: float, *, rightwards: bool
) -> tuple[Point, ...]:
    """Return corners from a box to the edge of its panel: below its band if a box is in the way."""
    y = box.top + box.height / 2
    bottom = box.bottom
    free = True
    for other in others:
        if other.top < box.bottom and other.bottom > box.top:
            bottom = max(bottom, other.bottom)
            free = free and not (other.left > box.left if rightwards else other.left < box.left)

    if free:
        return (box.right if rightwards else box.left, y), (edge, y)

    x = box.left + box.width * (0.75 if rightwards else 0.25)
    y = bottom + _BESIDE_BAND
    return (x, box.bottom), (x, y), (edge, y)
