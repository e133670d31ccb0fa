"""An outline as rows: of a table, where equal blocks are one row, and of stored blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from archive.architecture.aten.blocks import START
from archive.architecture.graph import Architecture
from archive.architecture.outline.blocks import NetworkBlock
from archive.architecture.outline.changes import ranges
from archive.architecture.outline.outline import HEAD, STEM, Outline, Section, outline
from archive.architecture.outline.words import module_text

_ENTRY = ("in_channels", "stride", "shortcut", "downsampling")
"""Properties in which the first block of a stage differs from the others."""

_ENDS = ("ip", "op", "getitem")


@dataclass(frozen=True)
class OutlineRow:
    """Equal blocks in a row, or the modules of the stem or the head.

    Attributes:
        section: `stem`, `stage 1`, …, `head`.
        blocks: Their numbers in the network, as `1-3`; empty in stem and head.
        kind: Number and kind of the blocks, as `3 × bottleneck`; in stem and head their modules.
        channels: Channels of their output; null where they are not known.
        size: Side of the image, or number of tokens, of their output; empty where unknown.
        details: Their other properties: kernel, heads, norm, activation, shortcut, ….
        source: Name of the module in the source that they come from; empty without one.
    """

    section: str
    blocks: str
    kind: str
    channels: int | None
    size: str
    details: str
    source: str = ""


def rows(outline: Outline) -> list[OutlineRow]:
    """Return the rows of an outline, in order."""
    listed: list[OutlineRow] = []
    for section in outline.sections:
        if section.name in (STEM, HEAD):
            shown = [module for module in section.modules if module.kind not in _ENDS]
            kind = module_text(shown)
            source = source_name(outline, section.blocks)
            if kind:
                listed.append(OutlineRow(section.name, "", kind, section.channels, "", "", source))

            continue

        for _, group in groupby(section.blocks, _core):
            listed.append(_row(outline, section, list(group)))

    return listed


def lines(outline: Outline) -> list[str]:
    """Return an outline as lines of text, a row each."""
    texts = []
    for row in rows(outline):
        channels = "" if row.channels is None or not row.blocks else str(row.channels)
        parts = [row.section, row.kind, channels, row.size, row.details]
        texts.append("  ".join(filter(None, parts)))

    return texts


def _core(block: NetworkBlock) -> tuple[object, ...]:
    """Return what blocks of one row have in common."""
    core: list[object] = [block.kind]
    for name, value in sorted(block.properties.items()):
        if name not in _ENTRY:
            core.append((name, value))

    return tuple(core)


def _row(outline: Outline, section: Section, blocks: Sequence[NetworkBlock]) -> OutlineRow:
    first = blocks[0]
    kind = first.kind if len(blocks) == 1 else f"{len(blocks)} × {first.kind}"
    numbers = ranges("block", [block.index + 1 for block in blocks]).partition(" ")[2]
    properties = blocks[-1].properties
    size = ""
    if "resolution" in properties:
        size = f"{properties['resolution']}×{properties['resolution']}"
    elif "tokens" in properties:
        size = f"{properties['tokens']} tokens"

    source = source_name(outline, blocks)
    return OutlineRow(
        section.name, numbers, kind, first.channels, size, ", ".join(_details(first)), source
    )


def _details(block: NetworkBlock) -> list[str]:
    """Return the properties of a block as words."""
    properties = block.properties
    words: list[str] = []
    if "stride" in properties:
        words.append(f"/{properties['stride']}")

    if "kernel" in properties:
        words.append(f"{properties['kernel']}×{properties['kernel']}")

    groups = properties.get("groups")
    if groups is not None:
        words.append(str(groups) if isinstance(groups, str) else f"{groups} groups")

    if "heads" in properties:
        heads = f"{properties['heads']} heads"
        if properties.get("kv_heads") != properties["heads"]:
            heads += f", {properties.get('kv_heads')} kv heads"

        words.append(f"{heads} of {properties['head_size']}")

    for name, text in (
        ("expansion", "expansion {:g}"),
        ("mlp_ratio", "mlp × {:g}"),
        ("squeeze_excitation", "squeeze-excitation {:g}"),
    ):
        if name in properties:
            words.append(text.format(properties[name]))

    for name, text in (
        ("gated", "gated mlp"),
        ("causal", "causal"),
        ("rotary", "rotary"),
        ("qk_norm", "qk norm"),
        ("position_bias", "position bias"),
        ("layer_scale", "layer scale"),
        ("parallel", "parallel"),
    ):
        if properties.get(name):
            words.append(text)

    if "window" in properties:
        words.append(f"windows of {properties['window']}")

    norm_place = properties.get("norm_place")
    if norm_place in ("pre", "post"):
        words.append(f"{norm_place}-norm ({properties['norm']})")
    elif properties.get("norm", "none") != "none":
        words.append(f"{properties['norm']} norm")

    if "activation" in properties:
        words.append(str(properties["activation"]))

    if properties.get("shortcut", "identity") != "identity":
        words.append(f"shortcut {properties['shortcut']}")

    if "rest" in properties:
        words.append(f"with {properties['rest']}")

    return words


def source_name(outline: Outline, blocks: Sequence[NetworkBlock]) -> str:
    """Return the longest name of a source's module that all labelled layers of blocks share."""
    shared: list[str] | None = None
    layers = outline.architecture.layers
    for block in blocks:
        for u in block.layers:
            name = layers[u].name
            if not name:
                continue

            parts = name.split(".")
            if shared is None:
                shared = parts
                continue

            length = 0
            while length < min(len(shared), len(parts)) and shared[length] == parts[length]:
                length += 1

            shared = shared[:length]

    return ".".join(shared or [])


def _blocks(architecture: Architecture) -> list[tuple[str, NetworkBlock]]:
    """Return the blocks of a network with the names of their sections, in order.

    The modules of the stem and of the head are blocks, too.
    """
    blocks: list[tuple[str, NetworkBlock]] = []
    for section in outline(architecture).sections:
        for block in section.blocks:
            blocks.append((section.name, block))

    return blocks


def block_of_layers(architecture: Architecture) -> dict[int, int]:
    """Return the block of each layer; empty for a folded network, whose outline has others."""
    block_of: dict[int, int] = {}
    if not architecture.positions(START):
        for number, (_, block) in enumerate(_blocks(architecture)):
            block_of |= dict.fromkeys(block.layers, number)

    return block_of


def block_rows(architecture: Architecture) -> list[dict[str, Any]]:
    """Return the properties of a network's blocks, as an archive stores them."""
    listed: list[dict[str, Any]] = []
    for index, (section, block) in enumerate(_blocks(architecture)):
        properties: dict[str, Any] = {**block.properties, "index": index, "section": section}
        properties |= {"kind": block.kind, "layers": len(block.layers)}
        properties["modules"] = module_text(block.modules)
        if "groups" in properties:
            # A property has values of one type: a number, or the word depthwise.
            properties["groups"] = str(properties["groups"])

        listed.append(properties)

    return listed
