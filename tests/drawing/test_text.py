"""Diagrams as text: the rails tell the links, and nothing else."""

from __future__ import annotations

from hypothesis import given

from archive.drawing import Diagram, DiagramNode, Frame, Link, Panel, text
from tests.drawing.test_layout import graphs
from tests.support import examples

UP = "│┤├┼╯╰┴"
DOWN = "│┤├┼╮╭┬"
JOINS = "┤├┼╯╰┴"


def read(lines: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """The links of a drawing, read from its rails as a reader follows them."""
    links: set[tuple[str, str]] = set()
    rails: dict[int, str] = {}
    for row, name in lines:
        below: dict[int, str] = {}
        own = next(at for at, letter in enumerate(row) if letter in "●○◆")
        if own in rails:
            links.add((rails[own], name))

        for at, letter in enumerate(row):
            if at % 2:
                continue

            if letter in JOINS:
                links.add((rails[at], name))

            if letter in UP and letter in DOWN:
                below[at] = rails[at]
            elif letter in DOWN:
                below[at] = name

        rails = {**below, own: name}

    return links


@given(graphs())
@examples(2)
def test_the_rails_tell_the_links(diagram: Diagram) -> None:
    lines = text(diagram)
    assert sorted(line.words for line in lines) == sorted(node.label for node in diagram.nodes)
    names = [node.label for node in diagram.nodes]
    assert read([(line.rails, line.words) for line in lines]) == {
        (names[link.tail], names[link.head]) for link in diagram.links
    }


def test_frames_panels_and_statuses_are_in_the_lines() -> None:
    nodes = tuple(
        DiagramNode(label, detail=detail, status=status)
        for label, detail, status in (
            ("input", "", "matched"),
            ("conv3", "64 → 128", "changed"),
            ("pool", "", "removed"),
            ("fc", "", "inserted"),
        )
    )
    links = (Link(0, 1), Link(1, 2), Link(0, 2))
    frame = Frame("× 2", frozenset({1}))
    panels = (Panel("one", frozenset({0, 1, 2})), Panel("other", frozenset({3})))
    assert [
        str(line) for line in text(Diagram(nodes, links, (frame,), panels, heading=("distance 1",)))
    ] == [
        "distance 1",
        "",
        "one",
        "◆─╮   input",
        "│ │   ┌ × 2",
        "● │ ~ │ conv3 64 → 128",
        "│ │   └",
        "●─╯ − pool",
        "",
        "other",
        "◆ + fc",
    ]
