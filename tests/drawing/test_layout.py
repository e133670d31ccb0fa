"""The layout of any graph: boxes apart, lines beside boxes, frames around what is theirs."""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.architecture import codec
from archive.architecture.diagram import diagram
from archive.drawing import Diagram, DiagramNode, Flow, Frame, Link, Panel, svg
from archive.drawing.columns import LEGIBLE, Sheet
from archive.drawing.geometry import Box, Placed, Point, Route, leads_up
from archive.drawing.layout import arrange
from archive.drawing.ranks import _crossings, order_rows, rank_nodes
from tests.support import examples

ROUNDING = 1e-6
# Architectures of timm 1.0, as its importer writes them.
NETWORKS = json.loads(gzip.decompress((Path(__file__).parent / "published.json.gz").read_bytes()))


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
    """Whether two rectangles share no more than an edge; positions are rounded sums."""
    return (
        one.right <= other.left + ROUNDING
        or other.right <= one.left + ROUNDING
        or one.bottom <= other.top + ROUNDING
        or other.bottom <= one.top + ROUNDING
    )


def around(*points: Point) -> Box:
    """Return the smallest rectangle around points."""
    left = min(x for x, _ in points)
    top = min(y for _, y in points)
    return Box(left, top, max(x for x, _ in points) - left, max(y for _, y in points) - top)


def pieces(route: Route) -> Iterator[Box]:
    """Yield rectangles that the pieces of a line stay in: strokes, bends, ways between columns."""
    x, begin, y = route.stations[0]
    yield around((x, begin), (x, y))
    for station, top, bottom in route.stations[1:]:
        if leads_up((station, top, bottom)):
            yield around((x, y), (x, top))
            yield around((x, top), (station, top))
        else:
            # The control points of a bend have the x of its ends, and a y between theirs.
            yield around((x, y), (station, top))

        yield around((station, top), (station, bottom))
        x = station
        y = bottom


def check_lines(placed: Placed) -> None:
    """Assert that no line crosses a box which is not one of its ends."""
    boxes = list(enumerate(placed.boxes))
    for route in placed.routes:
        ends = {route.link.tail, route.link.head}
        for piece in pieces(route):
            crossed = [u for u, box in boxes if u not in ends and not apart(piece, box)]
            assert not crossed, (route, crossed)

    for flow_route in placed.flows:
        ends = {flow_route.flow.tail, flow_route.flow.head}
        corners = (*flow_route.left, *flow_route.right)
        for first, second in pairwise(corners):
            piece = around(first, second)
            crossed = [u for u, box in boxes if u not in ends and not apart(piece, box)]
            assert not crossed, (flow_route, crossed)


@given(graphs(), st.sampled_from([None, Sheet(), Sheet(3000, 90)]))
@examples(2)
def test_boxes_lie_apart_and_lines_pass_beside_them(diagram: Diagram, sheet: Sheet | None) -> None:
    at = arrange(diagram, sheet)
    assert all(apart(one, other) for one, other in combinations(at.boxes, 2))
    assert len(at.routes) == len(diagram.links)
    check_lines(at)
    drawn = svg(diagram, sheet=sheet or Sheet())
    assert len(re.findall(r'class="aa-edge[^"]*" d="M[^"]*[VCL]', drawn)) == len(diagram.links)
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


@given(graphs(), graphs())
def test_flows_pass_beside_the_boxes_of_both_panels(first: Diagram, second: Diagram) -> None:
    n = len(first.nodes)
    panels = (Panel("one", frozenset(range(n))), Panel("other", frozenset(range(n, 2 * n))))
    links = (*first.links, *(Link(n + link.tail, n + link.head) for link in first.links))
    flows = tuple(Flow(u, n + v) for u in range(n) for v in range(n) if (u + v) % 3)
    nodes = (*first.nodes, *first.nodes)
    check_lines(arrange(Diagram(nodes, links, panels=panels, flows=flows)))


@pytest.mark.parametrize("space", [name for name in spaces.names() if spaces.get(name).searchable])
def test_no_line_of_a_member_of_a_space_crosses_a_box(space: str) -> None:
    rng = np.random.default_rng(0)
    known = spaces.get(space)
    for _ in range(6):
        drawn = diagram(known.sample(rng))
        check_lines(arrange(drawn, Sheet()))
        check_lines(arrange(drawn, Sheet(3000, 200)))


@pytest.mark.parametrize("name", NETWORKS)
def test_no_line_of_a_published_network_crosses_a_box(name: str) -> None:
    network = codec.from_dict(NETWORKS[name])
    for fold in (True, False):
        placed = arrange(diagram(network, fold=fold), Sheet())
        check_lines(placed)
        assert not fold or placed.width * LEGIBLE <= Sheet().width


def test_a_deep_network_becomes_columns_that_end_where_stages_do() -> None:
    nodes = tuple(DiagramNode(f"layer {u}") for u in range(60))
    chain = tuple(Link(u, u + 1) for u in range(59))
    stages = tuple(Frame(f"stage {u}", frozenset(range(15 * u, 15 * u + 15))) for u in range(4))
    at = arrange(Diagram(nodes, chain, stages), Sheet())
    assert len({box.left + box.width / 2 for box in at.boxes}) == 4 == len(at.frames)
    assert at.height < 800
    assert arrange(Diagram(nodes, chain, stages), Sheet(width=150)).height > 2400


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
