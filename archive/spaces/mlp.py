"""The space `mlp`: multi-layer perceptrons with NASBOT's pool (appendix B.1, figure 17)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from archive.architecture.graph import Architecture, Layer
from archive.spaces.layerwise import LayerwiseSpace, MlpChain, chain

# "Blocked structures […] with the layer labels decided arbitrarily": here the labels take turns.
_LABELS = ("relu", "logistic", "crelu", "tanh", "leaky-relu", "softplus", "elu")
_WIDTHS = (128, 256, 512, 64)

# (blocks, layers in a block) of the ten networks.
_POOL = ((3, 2), (4, 2), (5, 2), (3, 4), (6, 2), (8, 2), (6, 3), (10, 2), (4, 6), (8, 3))


@final
class Mlp(LayerwiseSpace):
    """Fully connected networks of rectifiers and sigmoids, for regression and classification."""

    name = "mlp"

    def decisions(self) -> MlpChain:
        """Return the decisions that make chains."""
        return MlpChain(self)

    def designs(self) -> Iterator[Architecture]:
        """Yield the ten blocked networks, then ever smaller ones for limits that exclude some."""
        for number, (blocks, size) in enumerate(_POOL):
            yield make_blocks(blocks, size, first=number)

        for blocks, size in ((2, 2), (2, 1), (1, 1)):
            for first in range(len(_LABELS)):
                yield make_blocks(blocks, size, first=first)


def make_blocks(blocks: int, size: int, *, first: int = 0) -> Architecture:
    """Return a blocked feed-forward network.

    Args:
        blocks: Number of blocks. The layers of a block have one label and one width; labels and
            widths take turns.
        size: Layers in a block.
        first: Which label, and which width, the first block has.
    """
    layers = []
    for block in range(first, first + blocks):
        layers += [Layer(_LABELS[block % len(_LABELS)], _WIDTHS[block % len(_WIDTHS)])] * size

    return chain("mlp", [*layers, Layer("linear")])
