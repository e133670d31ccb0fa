"""Diagrams of networks by modules: a convolution with its norm and activation is one box.

Blocks are frames with their kind, and equal blocks in a row are drawn once, with their number. A
block of many modules is one box.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from archive.architecture.diagram_labels import value_text
from archive.architecture.outline.blocks import NetworkBlock
from archive.architecture.outline.modules import NetworkModule
from archive.architecture.outline.outline import HEAD, STEM, Outline, Section
from archive.architecture.outline.words import module_text
from archive.drawing.diagram import Diagram, DiagramNode, Frame, Link

_KINDS = {
    "ip": "ends",
    "op": "ends",
    "conv": "conv",
    "linear": "dense",
    "mlp": "dense",
    "attention": "attention",
    "squeeze-excitation": "attention",
    "gate": "attention",
    "norm": "norm",
    "activation": "activation",
    "pool": "pool",
    "mean": "pool",
    "add": "join",
    "cat": "join",
    "embedding": "embedding",
}
_NAMES = {"ip": "input", "op": "output"}

LARGE = 20
"""Most modules of a block that is drawn in full without being asked for."""


def modules_diagram(
    outline: Outline,
    *,
    fold: bool = True,
    unfolded: Collection[str] = (),
    title: str = "",
    heading: Sequence[str] = (),
) -> Diagram:
    """Return a network as a diagram of modules.

    Args:
        outline: The outline of the network.
        fold: Whether equal blocks in a row are drawn once.
        unfolded: Names of blocks that are drawn in full all the same (`Frame.part`).
        title: Description for screen readers.
        heading: Lines of text above the picture.
    """
    number_of = {module.end: number for number, module in enumerate(outline.modules)}
    hidden: set[int] = set()
    instead: dict[int, int] = {}
    whole: dict[int, tuple[DiagramNode, frozenset[int]]] = {}
    frames: list[Frame] = []
    for section in outline.sections:
        if section.name in (STEM, HEAD):
            continue

        blocks: list[Frame] = []
        members: set[int] = set()
        for _, group in groupby(section.blocks, _drawn_properties):
            copies = list(group)
            first = _numbers(copies[0], number_of)
            large = len(first) > LARGE
            part = str(copies[0].modules[-1].end) if fold and (large or len(copies) > 1) else ""
            if not part or part in unfolded:
                blocks += _copies(copies, number_of, part)
                continue

            others = frozenset[int]().union(*(_numbers(copy, number_of) for copy in copies)) - first
            label = f"{len(copies)} × {copies[0].kind}" if len(copies) > 1 else copies[0].kind
            last = max(first)
            hidden |= others
            if large:
                # One box stands for all of their modules.
                whole[last] = (_block_node(copies, label, part), first)
                hidden |= first - {last}
                instead |= dict.fromkeys(first | others, last)
                members.add(last)
            else:
                blocks.append(Frame(label, first, part))
                for copy in copies[1:]:
                    instead[max(_numbers(copy, number_of))] = last

        members.update(*(frame.nodes for frame in blocks))
        frames += [Frame(_section_label(section), frozenset(members)), *blocks]

    drawn = [number for number in range(len(outline.modules)) if number not in hidden]
    positions = {number: index for index, number in enumerate(drawn)}
    links: dict[tuple[int, int], Link] = {}
    boxes: list[DiagramNode] = []
    for number in drawn:
        box, inside = whole.get(number, (None, frozenset([number])))
        boxes.append(box or _node(outline, outline.modules[number]))
        for parent in sorted(parent for member in inside for parent in outline.parents[member]):
            tail = instead.get(parent, parent)
            if tail in positions and positions[tail] < positions[number]:
                links[positions[tail], positions[number]] = Link(positions[tail], positions[number])

    framed = []
    for frame in frames:
        nodes = frozenset(positions[number] for number in frame.nodes)
        framed.append(replace(frame, nodes=nodes))

    return Diagram(
        tuple(boxes), tuple(links.values()), tuple(framed), title=title, heading=tuple(heading)
    )


def _copies(
    copies: Sequence[NetworkBlock], number_of: dict[int, int], part: str
) -> Iterator[Frame]:
    """Yield a frame around each of several equal blocks."""
    for place, copy in enumerate(copies, 1):
        label = f"{copy.kind} {place} of {len(copies)}" if len(copies) > 1 and part else copy.kind
        yield Frame(label, _numbers(copy, number_of), part, unfolded=True)


def _block_node(copies: Sequence[NetworkBlock], label: str, part: str) -> DiagramNode:
    """Return a box that stands for equal blocks of many modules."""
    modules = copies[0].modules
    kinds = Counter(module.kind for module in modules)
    counts = [f"{count} {kind}" for kind, count in kinds.most_common()]
    channels = modules[-1].properties.get("channels")
    return DiagramNode(
        label=label,
        detail=f"{len(modules)} modules",
        tip=f"{label}\n{', '.join(counts)}",
        channels=channels if isinstance(channels, int) else None,
        layer=modules[-1].end,
        layers=tuple(layer for module in modules for layer in module.layers),
        part=part,
    )


def _drawn_properties(block: NetworkBlock) -> tuple[object, ...]:
    """Return the kinds and properties of a block; blocks are drawn as one where these are equal."""
    kinds = tuple(module.kind for module in block.modules)
    return (block.kind, kinds, tuple(sorted(block.properties.items(), key=str)))


def _numbers(block: NetworkBlock, number_of: dict[int, int]) -> frozenset[int]:
    return frozenset(number_of[module.end] for module in block.modules)


def _section_label(section: Section) -> str:
    parts = [section.name]
    if section.channels:
        parts.append(f"{section.channels} channels")

    if section.resolution:
        parts.append(f"{section.resolution}×{section.resolution}")

    return ", ".join(parts)


def _node(outline: Outline, module: NetworkModule) -> DiagramNode:
    """Return a module as a box."""
    properties = module.properties
    words = _NAMES.get(module.kind) or module_text([module]) or module.kind
    label, detail = words, ""
    channels = properties.get("channels")
    if module.kind == "ip":
        detail = str(outline.architecture.layers[0].attributes.get("input", ""))
    elif channels and f" {channels}" in words:
        label, _, rest = words.partition(f" {channels}")
        detail = f"{channels}{rest}"

    if module.kind == "attention" and "heads" in properties:
        detail += f" {properties['heads']} heads"

    if module.kind == "mlp" and "ratio" in properties:
        detail += f" × {properties['ratio']:g}"

    tip = [f"{name}: {value_text(value)}" for name, value in properties.items()]
    operations = [outline.architecture.layers[u].op for u in module.layers]
    tip.insert(0, f"layers {module.layers[0]} to {module.layers[-1]}: {', '.join(operations[:12])}")
    names = [outline.architecture.layers[u].name for u in module.layers]
    if any(names):
        tip.insert(0, next(filter(None, names)))

    return DiagramNode(
        label=label,
        kind=_KINDS.get(module.kind, "other"),
        detail=detail.strip(),
        tip="\n".join(tip),
        channels=channels if isinstance(channels, int) else None,
        layer=module.end,
        layers=module.layers if len(module.layers) > 1 else (),
    )
