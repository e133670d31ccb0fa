"""Blocks with a new part, whose other weights are the parent's.

| new part                                 | begins with                                          |
|------------------------------------------|------------------------------------------------------|
| attention with as many heads             | the parent's matrices; fewer key/value heads are the |
|                                          | means of groups (GQA), more are copies; drawn where  |
|                                          | no number of heads divides the other                 |
| a feed-forward part of the kind, narrower | the hidden neurons of the largest weights           |
| the same, wider                          | the parent's neurons, and new ones that add nothing  |
| any other                                | weights drawn from the seed                          |

Ainslie et al.: GQA (2023), section 2.1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from archive.architecture.decoders.design import Block, Design
from archive.architecture.decoders.parts import Attention, Gelu, SwiGlu
from archive.trainer.blocks.replacements import PartReplacement
from archive.trainer.nn.decoders.mixing import Cache
from archive.trainer.nn.decoders.network import DecoderBlock, DecoderNetwork

_NAMES = {"mixer": "mixer", "feed-forward": "feed_forward"}


class NoBlock(nn.Module):
    """A block without parts."""

    def forward(self, x: Tensor, start: int, cache: Cache | None) -> Tensor:
        """Return the stream as it is."""
        del start, cache
        return x


def make_student(
    parent: DecoderBlock, replacement: PartReplacement, seed: int, base_width: int | None = None
) -> tuple[nn.Module, list[nn.Parameter]]:
    """Return a block with the new part, and the parameters to train: the part's and its norms'.

    A norm that two parts share keeps its weights.

    Args:
        parent: The parent's block.
        replacement: The replacement.
        seed: Seed of new weights.
        base_width: Width of the stream that scales the network; None without.
    """
    new = replacement.new
    if not new.parts:
        return NoBlock(), []

    student = _draw(new, replacement.width, seed, base_width)
    name = _NAMES[replacement.part]
    other = "feed_forward" if name == "mixer" else "mixer"
    _copy_module(getattr(parent, other), getattr(student, other))
    for norm in ("mixer_norm", "feed_forward_norm"):
        # The only norm of parallel parts is the mixer's.
        source = getattr(parent, norm) or parent.mixer_norm
        _copy_module(source, getattr(student, norm))
        _copy_module(getattr(parent, f"{norm}_behind"), getattr(student, f"{norm}_behind"))

    part = getattr(student, name)
    student.requires_grad_(False)
    if part is None:
        return student, []

    _warm_start(getattr(parent, name), part, replacement)
    trained = [part, getattr(student, f"{name}_norm_behind")]
    if not new.parallel:
        trained.append(getattr(student, f"{name}_norm"))

    parameters: list[nn.Parameter] = []
    for module in trained:
        if module is not None:
            parameters += module.requires_grad_(True).parameters()

    return student, parameters


def _draw(block: Block, width: int, seed: int, base_width: int | None) -> DecoderBlock:
    with torch.random.fork_rng(devices=()):
        torch.default_generator.manual_seed(seed)
        # A network of this block alone draws its weights.
        network = DecoderNetwork(Design(2, width, (block,)), base_width=base_width)

    student = network.blocks[0]
    assert isinstance(student, DecoderBlock)
    return student


def _copy_module(source: nn.Module | None, target: nn.Module | None) -> None:
    if source is not None and target is not None:
        target.load_state_dict(source.state_dict())


@torch.no_grad()
def _warm_start(source: nn.Module | None, target: nn.Module, replacement: PartReplacement) -> None:
    """Give a new part the weights of the old one, as far as they fit."""
    if replacement.part == "mixer":
        old = replacement.old.mixer
        new = replacement.new.mixer
        if source is None or not isinstance(old, Attention) or not isinstance(new, Attention):
            return

        if old.heads == new.heads:
            _copy_attention(source, target, old, new)

        return

    before = replacement.old.feed_forward
    after = replacement.new.feed_forward
    dense = isinstance(before, Gelu | SwiGlu) and type(before) is type(after)
    if source is not None and dense:
        _copy_neurons(source, target)


def _copy_attention(source: nn.Module, target: nn.Module, old: Attention, new: Attention) -> None:
    for name in ("query", "output"):
        _copy_module(getattr(source, name), getattr(target, name))

    if max(old.kv_heads, new.kv_heads) % min(old.kv_heads, new.kv_heads):
        return

    for name in ("key", "value"):
        matrix = getattr(source, name).weight
        heads = matrix.reshape(old.kv_heads, old.head_size, -1)
        if new.kv_heads <= old.kv_heads:
            groups = heads.reshape(new.kv_heads, -1, old.head_size, heads.shape[-1])
            heads = groups.mean(dim=1)
        else:
            heads = heads.repeat_interleave(new.kv_heads // old.kv_heads, dim=0)

        getattr(target, name).weight.copy_(heads.reshape(new.kv_units, -1))


def _copy_neurons(source: nn.Module, target: nn.Module) -> None:
    weights = source.state_dict()
    copied = target.state_dict()
    down = weights["down.weight"]
    sizes = down.norm(dim=0) * weights["up.weight"].norm(dim=1)
    count = min(len(sizes), len(copied["up.weight"]))
    units = sizes.topk(count).indices.sort().values
    for name in ("gate.weight", "up.weight"):
        if name in weights:
            copied[name][:count] = weights[name][units]

    copied["down.weight"].zero_()
    copied["down.weight"][:, :count] = down[:, units]
    target.load_state_dict(copied)
