"""Modifications of a decoder's design, by name.

| name                        | effect                                                       |
|-----------------------------|--------------------------------------------------------------|
| `swap_mixer`                | another kind of mixer in a block, or none                    |
| `heads`, `kv_heads`         | other heads of a mixer                                       |
| `window`, `state`           | another window, another size of the state                    |
| `swap_feed_forward`         | another kind of feed-forward part in a block, or none        |
| `widen`, `narrow`           | the next number of hidden neurons                            |
| `experts`, `active`         | other experts, or more or fewer for each token               |
| `norm`                      | norms before the parts, or before and behind them            |
| `parallel`                  | both parts read the same input, or one after the other       |
| `insert_block`              | a copy of a block beside it                                  |
| `remove_block`              | one block less                                               |
| `swap_blocks`               | two neighbouring blocks change places                        |
| `widen_stream`, `narrow_stream` | the next width of the residual stream                    |
| `tie`                       | the head shares the embedding's matrix, or no longer         |
| `rotary_base`               | another base in all attention layers                         |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from archive.architecture.decoders.design import Block, Design
from archive.architecture.decoders.parts import Attention, DecoderPart, FeedForward, Mixer
from archive.spaces.decoder.settings import DecoderSettings

Edit = tuple[str, Design]

_NAMES = {
    "heads": "heads",
    "head_size": "heads",
    "kv_heads": "kv_heads",
    "window": "window",
    "state": "state",
    "experts": "experts",
    "active": "active",
}
"""Setting of a part to the name of its modification; a size follows from the heads."""


def edits(design: Design, settings: DecoderSettings) -> Iterator[Edit]:
    """Yield every design that is one modification away, and its name.

    A design may come twice, or not be in its normal form.

    Args:
        design: A member's design in its normal form.
        settings: Settings of the space.
    """
    for index, block in enumerate(design.blocks):
        for name, changed in _block_edits(design, block, settings):
            yield name, _with_blocks(design, _put(design.blocks, index, [changed]))

    yield from _order_edits(design, settings)
    yield from _stream_edits(design, settings)


def rotary_base_of(design: Design) -> float | None:
    """Return the base of the attention layers; None without any."""
    for block in design.blocks:
        if isinstance(block.mixer, Attention):
            return block.mixer.rotary_base

    return None


def rescaled(design: Design, width: int, settings: DecoderSettings) -> Design:
    """Return the design at another width, with the same options."""
    base = rotary_base_of(design) or settings.rotary_bases[0]
    mixers = settings.mixer_options(design.width, base)
    feed_forwards = settings.feed_forward_options(design.width)
    blocks = []
    for block in design.blocks:
        mixer = settings.mixer_options(width, base)[mixers.index(block.mixer)]
        position = feed_forwards.index(block.feed_forward)
        feed_forward = settings.feed_forward_options(width)[position]
        blocks.append(replace(block, mixer=mixer, feed_forward=feed_forward))

    return replace(design, width=width, blocks=tuple(blocks))


def rebased(design: Design, base: float) -> Design:
    """Return the design with another rotary base."""
    blocks = []
    for block in design.blocks:
        if isinstance(block.mixer, Attention):
            block = replace(block, mixer=replace(block.mixer, rotary_base=base))

        blocks.append(block)

    return _with_blocks(design, blocks)


def _block_edits(
    design: Design, block: Block, settings: DecoderSettings
) -> Iterator[tuple[str, Block]]:
    base = rotary_base_of(design) or settings.rotary_bases[0]
    for mixer in settings.mixer_options(design.width, base):
        name = _mixer_edit(block.mixer, mixer)
        if name:
            yield name, replace(block, mixer=mixer)

    for feed_forward in settings.feed_forward_options(design.width):
        name = _feed_forward_edit(block.feed_forward, feed_forward)
        if name:
            yield name, replace(block, feed_forward=feed_forward)

    for norm in settings.norms:
        if norm != block.norm:
            yield "norm", replace(block, norm=norm)

    for parallel in settings.parallel:
        if parallel != block.parallel and len(block.parts) == 2:
            yield "parallel", replace(block, parallel=parallel)


def _mixer_edit(old: Mixer | None, new: Mixer | None) -> str:
    """Return the name of the modification from one mixer to another; empty where it is none."""
    if old is None or new is None or old.op != new.op:
        same_heads = old is None or new is None or _heads(old) == _heads(new)
        return "swap_mixer" if old != new and same_heads else ""

    changed = {_NAMES[name] for name in _differences(old, new)}
    if changed == {"heads", "kv_heads"} and _all_heads(old) and _all_heads(new):
        # Each head keeps its own keys and values.
        return "heads"

    return changed.pop() if len(changed) == 1 else ""


def _heads(mixer: Mixer) -> Any:
    return mixer.settings().get("heads")


def _all_heads(mixer: Mixer) -> bool:
    return isinstance(mixer, Attention) and mixer.heads == mixer.kv_heads


def _feed_forward_edit(old: FeedForward | None, new: FeedForward | None) -> str:
    if old is None or new is None or old.op != new.op:
        return "swap_feed_forward" if old != new else ""

    changed = _differences(old, new)
    if changed == ["hidden"]:
        return "widen" if new.units > old.units else "narrow"

    return _NAMES[changed[0]] if len(changed) == 1 else ""


def _differences(old: DecoderPart, new: DecoderPart) -> list[str]:
    names = []
    for field in fields(old):  # type: ignore[arg-type]
        if getattr(old, field.name) != getattr(new, field.name):
            names.append(field.name)

    return names


def _order_edits(design: Design, settings: DecoderSettings) -> Iterator[Edit]:
    blocks = design.blocks
    for index, block in enumerate(blocks):
        if len(blocks) < settings.max_blocks:
            yield "insert_block", _with_blocks(design, _put(blocks, index, [block, block]))

        if len(blocks) > 1:
            yield "remove_block", _with_blocks(design, _put(blocks, index, []))

        if index and block != blocks[index - 1]:
            swapped = [*blocks[: index - 1], block, blocks[index - 1], *blocks[index + 1 :]]
            yield "swap_blocks", _with_blocks(design, swapped)


def _stream_edits(design: Design, settings: DecoderSettings) -> Iterator[Edit]:
    position = settings.widths.index(design.width)
    for neighbour, name in ((position + 1, "widen_stream"), (position - 1, "narrow_stream")):
        if 0 <= neighbour < len(settings.widths):
            yield name, rescaled(design, settings.widths[neighbour], settings)

    for tied in settings.tied:
        if tied != design.tied:
            yield "tie", replace(design, tied=tied)

    base = rotary_base_of(design)
    for other in settings.rotary_bases:
        if base is not None and other != base:
            yield "rotary_base", rebased(design, other)


def _put(blocks: Sequence[Block], index: int, changed: Sequence[Block]) -> list[Block]:
    return [*blocks[:index], *changed, *blocks[index + 1 :]]


def _with_blocks(design: Design, blocks: Sequence[Block]) -> Design:
    return replace(design, blocks=tuple(blocks))
