"""The layout of any graph: boxes apart, lines beside boxes, frames around what is theirs."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from archive.drawing import Diagram, DiagramNode, Frame, Link, Panel, svg
from archive.drawing.layout import Box, arrange
from archive.drawing.ranks import _crossings, order_rows, rank_nodes
from tests.support import examples


@st.composite
def graphs(draw: st.DrawFn) -> Diagram:
    n = draw(st.integers(1, 14))
    pairs = list(combinations(range(n), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=3 * n)) if pairs else []
    channels = draw(st.lists(st.none() | st.integers(1, 4096), min_size=n, max_size=n))
    nodes = [
        DiagramNode(f"node {u}", channels=units, junction=units == 7)
        for u, units in enumerate(channels)
    ]
    return Diagram(tuple(nodes), tuple(Link(tail, head) for tail, head in chosen))


def apart(one: Box, other: Box) -> bool:
    return (
        one.right <= other.left
        or other.right <= one.left
        or one.bottom <= other.top
        or other.bottom <= one.top
    )


@given(graphs())
@examples(2)
def test_boxes_lie_apart_and_lines_pass_beside_them(diagram: Diagram) -> None:
    at = arrange(diagram)
    assert all(apart(one, other) for one, other in combinations(at.boxes, 2))
    assert len(at.routes) == len(diagram.links)
    for route in at.routes:
        (x, top, _), (end, _, bottom) = route.stations[0], route.stations[-1]
        head = at.boxes[route.link.head]
        assert (end, bottom) == (head.left + head.width / 2, head.top)
        # A line begins at its tail, or at a line of the same tail.
        tail = at.boxes[route.link.tail]
        assert (x, top) == (tail.left + tail.width / 2, tail.bottom) or any(
            other.link.tail == route.link.tail and (place, low) == (x, top)
            for other in at.routes
            for place, _, low in other.stations
            if other is not route
        )
        ends = {route.link.tail, route.link.head}
        for x, top, bottom in route.stations:
            stroke = Box(x, top, 0, bottom - top)
            assert all(apart(stroke, box) for u, box in enumerate(at.boxes) if u not in ends)

        for (_, _, upper), (_, lower, _) in pairwise(route.stations):
            # Between two pieces, a line bends where no box is.
            assert upper < lower
            assert not any(box.top < lower and box.bottom > upper for box in at.boxes)


@given(graphs())
def test_crossings_are_counted_as_by_hand(diagram: Diagram) -> None:
    graph = rank_nodes(len(diagram.nodes), diagram.links)
    rows = order_rows(graph)
    assert sorted(vertex for row in rows for vertex in row) == list(range(len(graph.rank)))
    by_hand = 0
    for upper, lower in pairwise(rows):
        edges = [(upper.index(u), lower.index(v)) for u in upper for v in graph.below[u]]
        by_hand += sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(edges, 2))

    assert _crossings(graph, rows) == by_hand


def test_two_branches_that_need_not_cross_do_not() -> None:
    links = [Link(0, 1), Link(0, 2), Link(1, 4), Link(2, 3), Link(3, 5), Link(4, 5)]
    graph = rank_nodes(6, links)
    assert _crossings(graph, order_rows(graph)) == 0


def test_a_chain_with_a_skip_is_straight_and_the_skip_passes_at_its_side() -> None:
    nodes = tuple(DiagramNode("layer", channels=units) for units in (8, 512, 64, 8))
    at = arrange(Diagram(nodes, (Link(0, 1), Link(1, 2), Link(2, 3), Link(0, 3))))
    assert len({box.left + box.width / 2 for box in at.boxes}) == 1
    assert at.boxes[1].width > at.boxes[2].width > at.boxes[0].width
    skip = at.routes[3].stations
    assert min(x for x, _, _ in skip[1:-1]) > max(box.right for box in at.boxes)


def test_frames_contain_their_nodes_and_panels_stand_side_by_side() -> None:
    nodes = tuple(DiagramNode(f"n{u}") for u in range(8))
    links = (Link(0, 1), Link(1, 2), Link(2, 3), Link(1, 3), Link(4, 5), Link(5, 6), Link(6, 7))
    inner = Frame("× 3", frozenset({1, 2}))
    outer = Frame("× 2", frozenset({1, 2, 3}))
    panels = (Panel("one", frozenset(range(4))), Panel("other", frozenset(range(4, 8))))
    at = arrange(Diagram(nodes, links, (outer, inner), panels))
    (_, around), (_, within) = at.frames
    for place, inside in ((around, {1, 2, 3}), (within, {1, 2})):
        for u, box in enumerate(at.boxes):
            contained = (
                place.left < box.left
                and box.right < place.right
                and place.top < box.top < place.bottom
            )
            assert contained == (u in inside)

    assert around.left < within.left and around.top < within.top and within.bottom < around.bottom
    (_, left), (_, right) = at.panels
    assert left.right < right.left
    assert all(left.left < box.left and box.right < left.right for box in at.boxes[:4])


def test_names_never_become_markup() -> None:
    hostile = '<script>alert(1)</script>" onload="x" \x00\u202e' + "&" * 500
    node = DiagramNode(
        hostile, detail=hostile, note=hostile, tip=hostile, kind='conv"><b>', status="changed"
    )
    diagram = Diagram(
        (node, node),
        (Link(0, 1),),
        (Frame(hostile, frozenset({1})),),
        (Panel(hostile, frozenset({0, 1})),),
        title=hostile,
        heading=(hostile,),
    )
    drawn = svg(diagram)
    names = {element.tag.rpartition("}")[2] for element in ET.fromstring(drawn).iter()}
    assert names <= {"svg", "title", "style", "rect", "g", "path", "text", "tspan", "circle"}
    attributes = {name for element in ET.fromstring(drawn).iter() for name in element.attrib}
    assert not any(name.startswith("on") for name in attributes)
    assert "\x00" not in drawn and "\u202e" not in drawn
    assert len(drawn) < 20_000
