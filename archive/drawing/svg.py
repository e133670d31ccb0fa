"""SVG of a diagram: a text that needs no other file. Equal diagrams have equal texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Literal

from archive.drawing.columns import Sheet
from archive.drawing.diagram import (
    DETAIL,
    LABEL,
    Diagram,
    DiagramNode,
    Status,
    Theme,
    box_size,
    shorten,
    text_width,
)
from archive.drawing.geometry import Box, FlowRoute, Placed, Point, Route, Station, leads_up
from archive.drawing.layers import FRAME_TOP
from archive.drawing.layout import MARGIN, arrange
from archive.drawing.palette import FONT, KINDS, SIGNS, css
from archive.errors import SettingsError

HEADING_LINE = 18
_ARROW = 3.5
_CORNER = 6.0
_LEGEND = 30

# Characters that XML does not have; marks that change the direction of writing would change what a
# name looks like.
_FOREIGN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


SHEET = Sheet()
"""Space that a picture fills without another wish: a page, or a screen."""


def svg(diagram: Diagram, *, theme: Theme = "auto", sheet: Sheet = SHEET) -> str:
    """Return a diagram as SVG.

    Names in the diagram may come from anywhere: they are escaped, and shortened where they are
    long.

    Args:
        diagram: The diagram.
        theme: `auto` follows the reader's system, and an attribute `data-theme` of an element
            around the picture. `light` and `dark` are fixed. `page` is `auto` without its style
            sheet, for pages that have `stylesheet()`.
        sheet: Space that the picture should fill: a deep network stands in as many columns as are
            legible there.
    """
    layout = arrange(diagram, sheet)
    legend = _legend(diagram) if diagram.legend else []
    width = max(layout.width, _legend_width(legend))
    heading = []
    for line in diagram.heading:
        heading.append(shorten(line, 240))
        width = max(width, text_width(heading[-1], DETAIL))

    width += 2 * MARGIN
    down = MARGIN + HEADING_LINE * len(heading) + (6 if heading else 0)
    right = (width - layout.width) / 2
    height = down + layout.height + MARGIN + (_LEGEND if legend else 0)
    body = [
        f'<rect class="aa-ground" width="{_n(width)}" height="{_n(height)}" rx="6"/>',
        *_heading(heading),
        f'<g transform="translate({_n(right)} {_n(down)})">',
        *_panels(layout),
        *_frames(layout),
    ]
    for route in layout.routes:
        tail = diagram.nodes[route.link.tail]
        head = diagram.nodes[route.link.head]
        body.append(_edge(route, "dead" if tail.dead or head.dead else route.link.status))

    body += map(_flow, layout.flows)
    body += map(_node, diagram.nodes, layout.boxes)
    body += _frame_labels(layout)
    body += ["</g>", *_legend_row(legend, MARGIN, down + layout.height + 14)]
    title = escape(diagram.title or "diagram")
    size = f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}"'
    style = "" if theme == "page" else f"<style>{css(theme, _names(diagram))}</style>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="aa aa-{theme}" {size} role="img" '
        f'aria-label="{title}">'
        f"<title>{title}</title>{style}{''.join(body)}</svg>"
    )


def stylesheet() -> str:
    """Return the style sheet for a page that shows pictures of the theme `page`."""
    return css("auto")


def escape(text: str) -> str:
    """Return a text for XML contents and attributes; other characters are replaced."""
    return _FOREIGN.sub("\ufffd", text).translate(_ENTITIES)


def _heading(lines: Iterable[str]) -> Iterator[str]:
    for number, words in enumerate(lines):
        style = ' class="aa-faint"' if number else ' font-weight="bold"'
        down = _n(MARGIN + 11 + HEADING_LINE * number)
        yield f'<text{style} x="{MARGIN}" y="{down}" font-size="{DETAIL}">{escape(words)}</text>'


def _names(diagram: Diagram) -> set[str]:
    """Return the kinds and statuses that the style sheet must have."""
    names = set(map(_class_of, diagram.nodes))
    for link in diagram.links:
        names.add(link.status)

    for flow in diagram.flows:
        names.add(flow.status or "matched")

    return names - {""}


def _class_of(node: DiagramNode) -> str:
    if node.dead:
        return "dead"

    return node.status or (node.kind if node.kind in KINDS else "other")


def _panels(layout: Placed) -> Iterator[str]:
    for panel, box in layout.panels:
        yield f'<rect class="aa-panel" {_place(box)} rx="8"/>'
        yield (
            f'<text x="{_n(box.left + box.width / 2)}" y="{_n(box.top + 20)}" font-size="{LABEL}" '
            f'text-anchor="middle" font-weight="bold">{escape(shorten(panel.title, 80))}</text>'
        )


def _frames(layout: Placed) -> Iterator[str]:
    for _, box in layout.frames:
        yield f'<rect class="aa-frame" {_place(box)} rx="8"/>'


def _frame_labels(layout: Placed) -> Iterator[str]:
    """Yield the labels of frames, over the lines that pass below them."""
    for frame, box in layout.frames:
        label = (
            f'<text class="aa-label" x="{_n(box.left + 8)}" y="{_n(box.top + 15)}" '
            f'font-size="{LABEL}">{escape(shorten(frame.label, 40))}</text>'
        )
        if frame.part:
            state = "open" if frame.unfolded else "folded"
            width = text_width(frame.label, LABEL) + 16
            # Wider and higher than its words, to be met by a finger.
            target = _place(Box(box.left, box.top, width, FRAME_TOP))
            yield (
                f'<g class="aa-part" data-part="{escape(frame.part)}" data-state="{state}">'
                f'<rect fill="none" pointer-events="all" {target}/>{label}</g>'
            )
        else:
            yield label


def _edge(route: Route, name: str) -> str:
    style = f" aa-{name}" if name else ""
    x, _, y = route.stations[-1]
    # The tip of the arrow touches the box.
    back = _n(y - 2 * _ARROW)
    tip = f"M{_n(x - _ARROW)} {back}H{_n(x + _ARROW)}L{_n(x)} {_n(y)}Z"
    return (
        f'<path class="aa-edge{style}" d="{_curve(route.stations)}"/>'
        f'<path class="aa-tip{style}" d="{tip}"/>'
    )


def _curve(stations: Sequence[Station]) -> str:
    """Return the path of a line: one vertical stroke where it does not move aside."""
    x, drawn, y = stations[0]
    parts = [f"M{_n(x)} {_n(drawn)}"]
    corners: list[Point] = []
    for station, top, bottom in stations[1:]:
        if leads_up((station, top, bottom)):
            # Up beside a column: from below it to above the next one.
            corners = [(x, drawn), (x, top), (station, top), (station, bottom)]
            x = station
            continue

        if corners:
            corners += [(station, corners[-1][1]), (station, top)]
            parts.append(_rounded(corners))
            corners = []
            drawn = top
        elif abs(station - x) >= 0.05:
            if y > drawn:
                parts.append(f"V{_n(y)}")

            middle = (y + top) / 2
            parts.append(
                f"C{_n(x)} {_n(middle)} {_n(station)} {_n(middle)} {_n(station)} {_n(top)}"
            )
            drawn = top

        x = station
        y = bottom

    if y > drawn:
        parts.append(f"V{_n(y)}")

    return "".join(parts)


def _rounded(corners: Sequence[Point]) -> str:
    """Return the path through corners, which are rounded, without its first point."""
    path = ""
    for (x, y), (corner_x, corner_y), (next_x, next_y) in zip(
        corners, corners[1:], corners[2:], strict=False
    ):
        before = max(abs(corner_x - x), abs(corner_y - y))
        behind = max(abs(next_x - corner_x), abs(next_y - corner_y))
        radius = min(_CORNER, before / 2, behind / 2)
        start_x = corner_x - _towards(x, corner_x, radius)
        start_y = corner_y - _towards(y, corner_y, radius)
        end_x = corner_x + _towards(corner_x, next_x, radius)
        end_y = corner_y + _towards(corner_y, next_y, radius)
        path += (
            f"L{_n(start_x)} {_n(start_y)}Q{_n(corner_x)} {_n(corner_y)} {_n(end_x)} {_n(end_y)}"
        )

    x, y = corners[-1]
    return f"{path}L{_n(x)} {_n(y)}"


def _towards(start: float, end: float, length: float) -> float:
    return 0.0 if start == end else length if end > start else -length


def _node(node: DiagramNode, box: Box) -> str:
    layer = "" if node.layer is None else f' data-layer="{node.layer}"'
    if node.layers:
        layer += f' data-layers="{" ".join(map(str, node.layers))}"'

    tip = f"<title>{escape(node.tip)}</title>" if node.tip else ""
    middle = box.left + box.width / 2
    style = f"aa-node aa-{_class_of(node)}"
    if node.part:
        style += " aa-part"
        layer += f' data-part="{escape(node.part)}" data-state="folded"'

    start = f'<g class="{style}"{layer}>{tip}'
    if node.junction:
        centre = box.top + box.height / 2
        circle = (
            f'<circle class="aa-box" cx="{_n(middle)}" cy="{_n(centre)}" r="{_n(box.width / 2)}"/>'
        )
        sign = _text(node.label[:2], middle, centre + 4, LABEL) if node.label else ""
        return f"{start}{circle}{sign}</g>"

    words = escape(shorten(node.label))
    if node.detail:
        detail = escape(shorten(node.detail))
        words += f'<tspan class="aa-faint" font-size="{DETAIL}" dx="5">{detail}</tspan>'

    parts = [
        f'<rect class="aa-box" {_place(box)} rx="5"/>',
        _text(words, middle, box.top + 16, LABEL, raw=True),
    ]
    if node.note:
        parts.append(_text(shorten(node.note), middle, box.top + 31, DETAIL, "aa-faint"))

    if node.status and node.status != "matched":
        parts.append(_text(SIGNS[node.status], box.left + 9, box.top + 16, LABEL + 1, "aa-sign"))

    return start + "".join(parts) + "</g>"


def _text(words: str, x: float, y: float, size: int, style: str = "", *, raw: bool = False) -> str:
    named = f' class="{style}"' if style else ""
    shown = words if raw else escape(words)
    position = f'x="{_n(x)}" y="{_n(y)}"'
    return f'<text{named} {position} font-size="{size}" text-anchor="middle">{shown}</text>'


def _flow(route: FlowRoute) -> str:
    flow = route.flow
    x, y = route.left[-1]
    to_x, to_y = route.right[0]
    middle = _n((x + to_x) / 2)
    start_x, start_y = route.left[0]
    path = (
        f"M{_n(start_x)} {_n(start_y)}{_rounded(route.left)}"
        f"C{middle} {_n(y)} {middle} {_n(to_y)} {_n(to_x)} {_n(to_y)}{_rounded(route.right)}"
    )
    tip = f"<title>{escape(flow.tip)}</title>" if flow.tip else ""
    style = f'class="aa-flow aa-{flow.status or "matched"}"'
    return f'<path {style} stroke-width="{_n(1 + 5 * flow.share)}" d="{path}">{tip}</path>'


def _legend(diagram: Diagram) -> list[DiagramNode]:
    statuses: set[Status] = set(map(attrgetter("status"), (*diagram.nodes, *diagram.links)))
    return [DiagramNode(status, status=status) for status in SIGNS if status in statuses]


def _legend_width(nodes: list[DiagramNode]) -> float:
    return sum(box_size(node)[0] + 10 for node in nodes)


def _legend_row(nodes: list[DiagramNode], left: float, top: float) -> Iterator[str]:
    for node in nodes:
        width, height = box_size(node)
        yield _node(node, Box(left, top, width, height))
        left += width + 10


def _place(box: Box) -> str:
    return f'x="{_n(box.left)}" y="{_n(box.top)}" width="{_n(box.width)}" height="{_n(box.height)}"'


def _n(value: float) -> str:
    """Return a number with at most one decimal."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


MOST_PIXELS = 16_000


def png(
    diagram: Diagram,
    *,
    theme: Literal["light", "dark"] = "light",
    scale: float = 2.0,
    sheet: Sheet = SHEET,
) -> bytes:
    """Return a diagram as PNG.

    Args:
        diagram: The diagram to draw.
        theme: Colours.
        scale: Pixels for each unit of the SVG; fewer where a side would have more than 16,000.
        sheet: Space that the picture should fill, in units of the SVG.

    Raises:
        SettingsError: The extra is not installed, or the machine has no font.
    """
    try:
        import resvg_py
    except ImportError:
        raise SettingsError("a PNG needs resvg: pip install 'nas-archive[png]'") from None

    if not _draws_letters(resvg_py.svg_to_bytes):
        raise SettingsError(
            "a PNG needs a font, and this machine has none: install one, such as fonts-dejavu-core"
        )

    drawn = svg(diagram, theme=theme, sheet=sheet)
    return bytes(resvg_py.svg_to_bytes(svg_string=drawn, zoom=_zoom(drawn, scale)))


def _draws_letters(render: Callable[..., bytes]) -> bool:
    """Return whether there is a font: without one, resvg leaves all words out and says nothing."""
    start = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">'
    start += f'<text y="18" font-family="{FONT}">'
    empty = render(svg_string=f"{start}</text></svg>")
    word = render(svg_string=f"{start}M</text></svg>")
    return bytes(empty) != bytes(word)


def _zoom(drawn: str, scale: float) -> float:
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', drawn)
    longest = max(float(size[1]), float(size[2]), 1.0) if size else 1.0
    return min(scale, MOST_PIXELS / longest)
