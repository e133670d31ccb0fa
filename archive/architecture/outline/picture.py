"""Diagrams of networks by modules: a convolution with its norm and activation is one box.

Blocks are frames with their kind, and equal blocks in a row are drawn once, with their number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    frames: list[Frame] = []
    for section in outline.sections:
        if section.name in (STEM, HEAD):
            continue

        blocks: list[Frame] = []
        for _, group in groupby(section.blocks, _drawn_properties):
            copies = list(group)
            first = _numbers(copies[0], number_of)
            part = str(copies[0].modules[-1].end) if fold and len(copies) > 1 else ""
            if not part or part in unfolded:
                for place, copy in enumerate(copies, 1):
                    label = f"{copy.kind} {place} of {len(copies)}" if part else copy.kind
                    blocks.append(Frame(label, _numbers(copy, number_of), part, unfolded=True))
            else:
                blocks.append(Frame(f"{len(copies)} × {copies[0].kind}", first, part))
                for copy in copies[1:]:
                    numbers = _numbers(copy, number_of)
                    hidden |= numbers
                    instead[max(numbers)] = max(first)

        members = frozenset[int]().union(*(frame.nodes for frame in blocks))
        frames += [Frame(_section_label(section), members), *blocks]

    drawn = [number for number in range(len(outline.modules)) if number not in hidden]
    positions = {number: index for index, number in enumerate(drawn)}
    links: dict[tuple[int, int], Link] = {}
    for number in drawn:
        for parent in outline.parents[number]:
            tail = instead.get(parent, parent)
            if tail in positions and positions[tail] < positions[number]:
                links[positions[tail], positions[number]] = Link(positions[tail], positions[number])

    framed = []
    for frame in frames:
        nodes = frozenset(positions[number] for number in frame.nodes)
        framed.append(replace(frame, nodes=nodes))

    boxes = tuple(_node(outline, outline.modules[number]) for number in drawn)
    return Diagram(boxes, tuple(links.values()), tuple(framed), title=title, heading=tuple(heading))


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
