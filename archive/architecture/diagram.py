"""Pictures of architectures: which boxes, junctions, frames and panels a network has.

`archive.drawing` draws diagrams, which know no architectures;
`archive.architecture.diagram_comparison` makes diagrams of two networks.

- Cells of a genotype are panels side by side. Their nodes, sums of two operations, are circles with
  the node's number, as in the published pictures; the circles, and the output of each cell, are no
  layers.
- In spaces without arguments, layers that are fed by the same several layers are fed through one
  junction.
- In spaces that have dead ends, layers on no way from the input to the output are pale, and say so.
- Repeated parts are drawn once, in a frame with their number.
- Imported models are drawn by modules and blocks (`archive.architecture.outline.picture`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from archive import drawing
from archive.architecture.aten.blocks import END, START, blocks
from archive.architecture.aten.vocabulary import NAME as TORCH
from archive.architecture.diagram_labels import channels, node
from archive.architecture.graph import Architecture
from archive.architecture.layer import Edge
from archive.architecture.operations import INPUT, OUTPUT, vocabulary
from archive.architecture.repeats import Repeat, find_repeats, value_parents
from archive.architecture.traversal import reach
from archive.drawing import Diagram, DiagramNode, Frame, Link, Panel, Sheet, Theme
from archive.drawing.svg import SHEET

NO_OUTPUT = "reaches no output"
NO_INPUT = "gets no input"
"""What the box of a dead layer says."""

_NO_NOTES: Mapping[int, str] = {}


def svg(
    architecture: Architecture,
    *,
    theme: Theme = "auto",
    fold: bool = True,
    notes: Mapping[int, str] | None = None,
    heading: Sequence[str] = (),
    labels: Mapping[int, str] = _NO_NOTES,
    layers: bool = False,
    unfolded: Collection[str] = (),
    sheet: Sheet = SHEET,
) -> str:
    """Return the picture of an architecture as SVG; equal architectures give equal bytes.

    Args:
        architecture: The network.
        theme: Colours (`archive.drawing.svg.svg`).
        fold: Whether repeated parts are drawn once.
        notes: Second line of a layer's box, by the position of the layer.
        heading: Lines of text above the picture.
        labels: First line of a layer's box in place of its operation, by the position of the layer.
        layers: Whether each layer of an imported model is a box.
        unfolded: Names of repeated parts that are drawn in full all the same (`Frame.part`).
        sheet: Space that the picture should fill (`archive.drawing.svg.svg`).
    """
    drawn = diagram(
        architecture,
        fold=fold,
        notes=notes or {},
        heading=heading,
        labels=labels,
        layers=layers,
        unfolded=unfolded,
    )
    return drawing.svg(drawn, theme=theme, sheet=sheet)


def diagram(
    architecture: Architecture,
    *,
    fold: bool = True,
    notes: Mapping[int, str] = _NO_NOTES,
    heading: Sequence[str] = (),
    labels: Mapping[int, str] = _NO_NOTES,
    layers: bool = False,
    unfolded: Collection[str] = (),
) -> Diagram:
    """Return an architecture as a diagram, the same for all of its relabellings.

    Layers are numbered in canonical order, the order of stored networks.

    Args:
        architecture: The network.
        fold: Whether repeated parts are drawn once.
        notes: Second line of a layer's box, by the position of the layer in `architecture`: image
            sizes, parameters.
        heading: Lines of text above the picture.
        labels: First line of a layer's box in place of its operation, by the position of the layer
            in `architecture`; repeated parts are then drawn in full.
        layers: Whether each layer of an imported model is a box. By default its modules are, such
            as a convolution with norm and activation, unless there are notes or labels.
        unfolded: Names of repeated parts that are drawn in full all the same (`Frame.part`).
    """
    if architecture.space == TORCH and not (layers or notes or labels):
        from archive.architecture.outline.outline import outline
        from archive.architecture.outline.picture import modules_diagram

        architecture = architecture.canonical
        drawn_outline = outline(architecture)
        title = _title(architecture)
        return modules_diagram(
            drawn_outline, fold=fold, unfolded=unfolded, title=title, heading=heading
        )

    fold = fold and not labels
    moved_notes = {}
    moved_labels = {}
    for position, u in enumerate(architecture.canonical_order):
        if u in notes:
            moved_notes[position] = notes[u]

        if u in labels:
            moved_labels[position] = labels[u]

    notes = moved_notes
    architecture = architecture.canonical
    if len(vocabulary(architecture.space).parts) > 1:
        drawn = _cells(architecture, notes)
    else:
        drawn = _one_graph(architecture, fold, unfolded, notes)

    for number, box in enumerate(drawn.nodes):
        if box.layer in moved_labels:
            drawn.nodes[number] = replace(box, label=moved_labels[box.layer])

    return Diagram(
        tuple(drawn.nodes),
        tuple(drawn.links),
        tuple(drawn.frames),
        tuple(drawn.panels),
        title=_title(architecture),
        heading=tuple(heading),
    )


@dataclass
class _Parts:
    nodes: list[DiagramNode] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)

    def link(self, tails: Iterable[int], head: int) -> None:
        """Add a line from each of several nodes to another."""
        for tail in tails:
            self.links.append(Link(tail, head))


def _title(architecture: Architecture) -> str:
    return (
        f"{architecture.space} network of {len(architecture.layers)} layers, {architecture.key[:8]}"
    )


def _one_graph(
    architecture: Architecture, fold: bool, unfolded: Collection[str], notes: Mapping[int, str]
) -> _Parts:
    words = vocabulary(architecture.space)
    # Parts of a cell with dead ends are not defined, and a cell has few layers.
    if fold and not words.dead_ends:
        graph = fold_repeats(architecture, unfolded)
    else:
        graph = with_blocks(architecture)

    width = channels(architecture)
    feeds = _with_junctions(graph.edges, not words.arguments)
    items = _in_order(graph.layers, feeds)
    drawn = _Parts()
    node_of: dict[int | tuple[int, ...], int] = {}
    for item in items:
        node_of[item] = len(drawn.nodes)
        if isinstance(item, tuple):
            drawn.nodes.append(DiagramNode("", "join", junction=True))
        else:
            drawn.nodes.append(node(architecture, item, width[item], notes.get(item, "")))

    for tail, head in feeds:
        drawn.link([node_of[tail]], node_of[head])

    if words.dead_ends:
        _mark_dead(architecture, drawn)

    for repeat in graph.repeats:
        members = []
        for item in items:
            if repeat.layers.issuperset(item if isinstance(item, tuple) else [item]):
                members.append(node_of[item])

        drawn.frames.append(
            Frame(f"× {repeat.times}", frozenset(members), repeat.part, repeat.part in unfolded)
        )

    return drawn


def _mark_dead(architecture: Architecture, drawn: _Parts) -> None:
    """Say of each layer, and of each junction, that is on no way from the input to the output."""
    last = {INPUT: 0, OUTPUT: 0}
    for number, box in enumerate(drawn.nodes):
        if box.layer is not None and architecture.layers[box.layer].op in last:
            last[architecture.layers[box.layer].op] = number

    below: dict[int, list[int]] = defaultdict(list)
    above: dict[int, list[int]] = defaultdict(list)
    for link in drawn.links:
        below[link.tail].append(link.head)
        above[link.head].append(link.tail)

    fed = reach(below, last[INPUT])
    used = reach(above, last[OUTPUT])
    for number, box in enumerate(drawn.nodes):
        if number in last.values() or (number in fed and number in used):
            continue

        reason = NO_OUTPUT if number not in used else NO_INPUT
        note = "" if box.junction else ", ".join(filter(None, (box.note, reason)))
        tip = f"{box.tip}: {reason}" if box.tip else reason
        drawn.nodes[number] = replace(box, note=note, tip=tip, dead=True)


Item = int | tuple[int, ...]
"""A layer, or a junction: the layers that feed it."""


def _with_junctions(edges: Sequence[Edge], joins: bool) -> list[tuple[Item, Item]]:
    """Return edges between layers and junctions; layers with the same parents share a junction."""
    parents: dict[int, list[int]] = defaultdict(list)
    for tail, head in sorted(edges):
        parents[head].append(tail)

    times = Counter(map(tuple, parents.values()))
    feeds: list[tuple[Item, Item]] = []
    for feeders in sorted(times):
        if joins and len(feeders) > 1 and times[feeders] > 1:
            feeds += product(feeders, [feeders])

    for head in sorted(parents):
        tails = tuple(parents[head])
        if joins and len(tails) > 1 and times[tails] > 1:
            feeds.append((tails, head))
        else:
            feeds += product(tails, [head])

    return feeds


def _in_order(layers: Sequence[int], feeds: Sequence[tuple[Item, Item]]) -> list[Item]:
    """Return layers and junctions in topological order: a junction behind its last feeder."""
    behind: dict[int, dict[Item, None]] = defaultdict(dict)
    for _, head in feeds:
        if isinstance(head, tuple):
            behind[max(head)][head] = None

    items: list[Item] = []
    for u in layers:
        items += [u, *behind[u]]

    return items


def _cells(architecture: Architecture, notes: Mapping[int, str]) -> _Parts:
    words = vocabulary(architecture.space)
    drawn = _Parts()
    for part in words.parts:
        members = [u for u, layer in enumerate(architecture.layers) if words[layer.op].part == part]
        if members:
            first = len(drawn.nodes)
            _cell(architecture, part, members, notes, drawn)
            drawn.panels.append(Panel(f"{part} cell", frozenset(range(first, len(drawn.nodes)))))

    return drawn


def _cell(
    architecture: Architecture,
    part: str,
    members: list[int],
    notes: Mapping[int, str],
    drawn: _Parts,
) -> None:
    """Add a cell: entries and operations as boxes, sums as circles, the output of the cell."""
    words = vocabulary(architecture.space)
    groups = architecture.groups
    labels = list(words.operations)

    def rank(u: int) -> int:
        # Entries come first, in the order of the vocabulary.
        return labels.index(architecture.layers[u].op) if groups[u] == "entry" else len(labels)

    members = sorted(members, key=rank)
    sums = _sums(architecture, members)
    cell = _CellDrawing(architecture, notes, drawn)
    for u in members:
        if groups[u] != "exit":
            cell.add_layer(u)

        for feeders, layer in sums.items():
            if feeders not in cell.places and cell.at.keys() >= set(feeders):
                cell.add_sum(feeders, layer)

    concatenated = []
    for feeders, layer in sums.items():
        if layer is not None and feeders in cell.places:
            concatenated.append(cell.places[feeders])

    if concatenated:
        drawn.link(sorted(concatenated), len(drawn.nodes))
        drawn.nodes.append(
            DiagramNode("c_k", "ends", tip=f"output of the {part} cell: its nodes, concatenated")
        )


def _sums(architecture: Architecture, members: Sequence[int]) -> dict[tuple[int, ...], int | None]:
    """Return the sums of a cell: the layers that are added, and their exit, None for inner sums."""
    groups = architecture.groups
    sums: dict[tuple[int, ...], int | None] = {}
    for u in members:
        if groups[u] == "exit":
            sums[architecture.parents[u]] = u

    for u in members:
        feeders = architecture.parents[u]
        if groups[u] == "cell" and len(feeders) > 1:
            sums.setdefault(feeders, None)

    return sums


@dataclass
class _CellDrawing:
    """The part of a diagram that shows one cell.

    Attributes:
        architecture: The architecture.
        notes: Second line of a layer's box, by the position of the layer.
        drawn: The diagram, which is extended.
        at: Position of a layer to its node in the diagram.
        places: The layers that are added to the node of their sum.
    """

    architecture: Architecture
    notes: Mapping[int, str]
    drawn: _Parts
    at: dict[int, int] = field(default_factory=dict)
    places: dict[tuple[int, ...], int] = field(default_factory=dict)

    def add_layer(self, u: int) -> None:
        """Add an entry or an operation, fed by a sum or by layers."""
        feeders = self.architecture.parents[u]
        self.at[u] = len(self.drawn.nodes)
        if feeders in self.places:
            tails = [self.places[feeders]]
        else:
            tails = [self.at[p] for p in feeders if p in self.at]

        self.drawn.link(tails, self.at[u])
        self.drawn.nodes.append(node(self.architecture, u, None, self.notes.get(u, "")))

    def add_sum(self, feeders: tuple[int, ...], layer: int | None) -> None:
        """Add the circle of a sum.

        Sums are numbered in this order, like the nodes of published cells.
        """
        number = len(self.places)
        self.places[feeders] = len(self.drawn.nodes)
        self.drawn.link([self.at[p] for p in feeders], self.places[feeders])
        tip = f"node {number}: the sum of its operations"
        self.drawn.nodes.append(
            DiagramNode(str(number), "join", tip=tip, layer=layer, junction=True)
        )


@dataclass(frozen=True)
class DrawnRepeat:
    """A repeated part in a picture.

    Attributes:
        times: Number of copies.
        layers: Layers that are drawn: the first copy's, or all.
        part: Name of the part, if it can be drawn either way.
    """

    times: int
    layers: frozenset[int]
    part: str = ""


@dataclass(frozen=True)
class Folded:
    """The drawn part of a network.

    Attributes:
        layers: Positions of the drawn layers, ascending.
        edges: Edges between them.
        repeats: The repeated parts; an outer one before those within it.
    """

    layers: tuple[int, ...]
    edges: tuple[Edge, ...]
    repeats: tuple[DrawnRepeat, ...] = ()


def fold_repeats(architecture: Architecture, unfolded: Collection[str] = ()) -> Folded:
    """Return a network with its repeated parts drawn once.

    Args:
        architecture: The network.
        unfolded: Names of parts that are drawn in full, with all parts within them.
    """
    whole = with_blocks(architecture)
    if whole.repeats:
        return whole

    repeated_parts = find_repeats(architecture)
    if not repeated_parts:
        return whole

    hidden: set[int] = set()
    instead: dict[int, int] = {}
    repeats: list[DrawnRepeat] = []
    for repeat in repeated_parts:
        _hide(repeat, unfolded, hidden, instead, repeats)

    edges: set[Edge] = set()
    for tail, head in whole.edges:
        while tail in instead:
            tail = instead[tail]

        if hidden.isdisjoint((tail, head)):
            edges.add((tail, head))

    layers = sorted(set(whole.layers) - hidden)
    return Folded(tuple(layers), tuple(sorted(edges)), tuple(repeats))


def _hide(
    repeat: Repeat,
    unfolded: Collection[str],
    hidden: set[int],
    instead: dict[int, int],
    repeats: list[DrawnRepeat],
) -> None:
    """Hide the further copies of a repeat; what the last copy feeds is fed by the first one."""
    part = f"{repeat.begin}-{repeat.end}"
    if part in unfolded:
        layers = frozenset((*repeat.first, *repeat.copies))
        repeats.append(DrawnRepeat(repeat.times, layers, part))
        return

    hidden.update(repeat.copies)
    instead[repeat.end] = repeat.first_end
    repeats.append(DrawnRepeat(repeat.times, frozenset(repeat.first) - hidden, part))
    for inner in repeat.inside:
        _hide(inner, unfolded, hidden, instead, repeats)


def with_blocks(architecture: Architecture) -> Folded:
    """Return the network without the ends of its blocks, and without edges that carry no value."""
    ends = set(architecture.positions(START, END))
    source: dict[int, int] = {}
    edges: list[Edge] = []
    for head in range(len(architecture.layers)):
        for tail in value_parents(architecture, head):
            tail = source.get(tail, tail)
            if head in ends:
                source[head] = tail
            else:
                edges.append((tail, head))

    drawn = tuple(u for u in range(len(architecture.layers)) if u not in ends)
    if not ends:
        return Folded(drawn, tuple(edges))

    repeats = []
    for start, _, inside in reversed(blocks(architecture)):
        if inside - ends:
            times = int(str(architecture.layers[start].attributes.get("times", 0)))
            repeats.append(DrawnRepeat(times, inside - ends))

    repeats.sort(key=lambda repeat: -len(repeat.layers))
    return Folded(drawn, tuple(sorted(edges)), tuple(repeats))
