"""A decoder as a few rows, equal blocks once, and the changes between two decoders.

rows(design)               # stem, each kind of block with its number, head
changes(first, second)     # [heads 32 -> 16 in blocks 1-16, depth 16 -> 28]
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise, zip_longest
from typing import Any

from archive.architecture.decoders.costs import count_layer
from archive.architecture.decoders.design import Block, Design
from archive.architecture.decoders.labels import text_of, value_text
from archive.architecture.decoders.parts import DecoderPart
from archive.architecture.decoders.vocabulary import EPSILON
from archive.architecture.layer import Attributes
from archive.architecture.outline.changes import NETWORK, Change, ranges
from archive.architecture.outline.outline import HEAD, STEM
from archive.architecture.outline.summary import OutlineRow

_BLOCKS = "blocks"


def rows(design: Design) -> list[OutlineRow]:
    """Return the rows of a decoder: equal blocks are one row, with their numbers."""
    width = design.width
    listed = [OutlineRow(STEM, "", _stem_text(design), width, "", "")]
    for block, numbers in _kinds(design).items():
        parts = " + ".join(part.op for part in block.parts)
        kind = parts if len(numbers) == 1 else f"{len(numbers)} × {parts}"
        details = ", ".join([*_part_texts(block, width), *_order_words(block)])
        listed.append(OutlineRow(_BLOCKS, _numbers(numbers), kind, width, "", details))

    listed.append(OutlineRow(HEAD, "", _head_text(design), design.vocabulary, "", ""))
    return listed


def lines(design: Design) -> list[str]:
    """Return a decoder as lines of text: equal blocks once, with their number, a part a line."""
    total = sum(map(count_layer, design.graph().layers))
    texts = [f"  {total:,} parameters, width {design.width}", f"  {_stem_text(design)}"]
    for block, numbers in _kinds(design).items():
        words = ", ".join([f"{len(numbers)} × block {_numbers(numbers)}", *_order_words(block)])
        texts.append(f"  {words}")
        for text in _part_texts(block, design.width):
            texts.append(f"    {text}")

    return [*texts, f"  {_head_text(design)}"]


def changes(first: Design, second: Design) -> list[Change]:
    """Return the changes from one decoder to another; blocks are paired in their order."""
    listed: list[Change] = []
    for name in ("vocabulary", "width", "tied"):
        before = getattr(first, name)
        after = getattr(second, name)
        if before != after:
            listed.append(Change(name, NETWORK, before, after))

    for name in ("embedding", "norm", "residual", "head"):
        listed += _setting_changes(name, getattr(first.stream, name), getattr(second.stream, name))

    if len(first.blocks) != len(second.blocks):
        listed.append(Change("depth", NETWORK, len(first.blocks), len(second.blocks)))

    numbers: dict[tuple[str, Any, Any], list[int]] = {}
    for number, (one, other) in enumerate(zip_longest(first.blocks, second.blocks), 1):
        if one is None or other is None:
            break

        for change in _block_changes(one, other):
            numbers.setdefault(change, []).append(number)

    for (name, before, after), places in numbers.items():
        listed.append(Change(name, ranges("block", places), before, after))

    return listed


def _kinds(design: Design) -> dict[Block, list[int]]:
    """Return the different blocks with the numbers of equal ones."""
    kinds: dict[Block, list[int]] = {}
    for number, block in enumerate(design.blocks, 1):
        kinds.setdefault(block, []).append(number)

    return kinds


def _numbers(numbers: list[int]) -> str:
    """Return numbers as a short text: `1-16`, `6, 12, …, 60`."""
    steps = {later - number for number, later in pairwise(numbers)}
    if len(numbers) > 3 and len(steps) == 1 and steps != {1}:
        return f"{numbers[0]}, {numbers[1]}, …, {numbers[-1]}"

    return ranges("block", numbers).partition(" ")[2]


def _stem_text(design: Design) -> str:
    words = [f"embedding of {design.vocabulary}", *_settings_words(design.stream.embedding)]
    if design.stream.norm:
        words.append(f"norms: {', '.join(_settings_words(design.stream.norm))}")

    if design.stream.residual:
        words.append(f"sums: {', '.join(_settings_words(design.stream.residual))}")

    return ", ".join(words)


def _head_text(design: Design) -> str:
    tied = "tied head" if design.tied else "head"
    return ", ".join([f"{tied} of {design.vocabulary}", *_settings_words(design.stream.head)])


def _part_texts(block: Block, width: int) -> list[str]:
    texts = []
    for part in block.parts:
        texts.append(text_of(part, width, whole=True))

    return texts


def _order_words(block: Block) -> list[str]:
    words = [] if block.norm == "pre" else [f"{block.norm} norms"]
    return [*words, "parallel"] if block.parallel else words


def _settings_words(settings: Attributes) -> list[str]:
    words = []
    for name, value in settings.items():
        words.append(name if value is True else f"{name} {value_text(value)}")

    return words


def _setting_changes(where: str, before: Attributes, after: Attributes) -> list[Change]:
    """Return the changes of the settings around the parts."""
    listed = []
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            # A norm without this setting has a fixed number, and is no other norm.
            default = EPSILON if name == "epsilon" else None
            value = before.get(name, default)
            other = after.get(name, default)
            listed.append(Change(f"{where} {name}", NETWORK, _plain(value), _plain(other)))

    return listed


def _block_changes(first: Block, second: Block) -> list[tuple[str, Any, Any]]:
    listed: list[tuple[str, Any, Any]] = []
    for name, before, after in (
        ("mixer", first.mixer, second.mixer),
        ("feed-forward", first.feed_forward, second.feed_forward),
    ):
        listed += _part_changes(name, before, after)

    if first.norm != second.norm:
        listed.append(("norm place", first.norm, second.norm))

    if first.parallel != second.parallel:
        listed.append(("parallel", first.parallel, second.parallel))

    return listed


def _part_changes(
    name: str, first: DecoderPart | None, second: DecoderPart | None
) -> list[tuple[str, Any, Any]]:
    if first is None or second is None or first.op != second.op:
        before = None if first is None else first.op
        after = None if second is None else second.op
        return [] if before == after else [(name, before, after)]

    values = _values(first)
    others = _values(second)
    listed = []
    for setting in dict.fromkeys([*values, *others]):
        if values.get(setting) != others.get(setting):
            text = f"{first.op} {setting.replace('_', ' ')}"
            listed.append((text, _plain(values.get(setting)), _plain(others.get(setting))))

    return listed


def _values(part: DecoderPart) -> Mapping[str, Any]:
    """Return the settings of a part, with its units, and the size of a head where it has heads."""
    settings = {**part.settings(), **part.extras}
    heads = settings.get("heads")
    size = {"units": part.units}
    if heads:
        size = {"head_size": part.units // heads}

    return {**size, **settings}


def _plain(value: Any) -> Any:
    """Return a value as a reader sees it; None for none."""
    return value if value is None or isinstance(value, bool | int) else value_text(value)
