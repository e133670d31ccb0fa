"""The space `cnn`: convolutional networks with NASBOT's initial pool (appendix B.1, figure 16)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from archive.architecture.graph import Architecture, Layer
from archive.spaces.layerwise import CnnChain, LayerwiseSpace, chain


@final
class Cnn(LayerwiseSpace):
    """Convolutional networks: plain and residual convolutions, pools, fully connected layers."""

    name = "cnn"

    def decisions(self) -> CnnChain:
        """Return the decisions that make chains."""
        return CnnChain(self)

    def designs(self) -> Iterator[Architecture]:
        """Yield VGG nets of 13, 16 and 19 weighted layers, seven blocked ones, then small ones."""
        for repeats in (2, 3, 4):
            yield vgg(repeats)

        for size in (1, 2, 3, 4, 5):
            yield make_blocks(3, size)

        yield make_blocks(4, 4)
        yield make_blocks(3, 2, kind="res3")
        yield from _small_designs()


def vgg(repeats: int) -> Architecture:
    """Return a network in the manner of Simonyan and Zisserman.

    Five groups of conv3, each followed by a max-pool: two layers of 64 channels, two of 128, then
    `repeats` of 128, of 256 and of 512; then fc layers of 128, 256 and 512 neurons. `repeats` 2, 3,
    4 give VGG-13, -16 and -19.
    """
    groups = [(64, 2), (128, 2), (128, repeats), (256, repeats), (512, repeats)]
    layers: list[Layer] = []
    for units, count in groups:
        layers += [*[Layer("conv3", units)] * count, _pool("max-pool")]

    for units in (128, 256, 512):
        layers.append(Layer("fc", units))

    return chain("cnn", [*layers, Layer("softmax")])


def make_blocks(
    blocks: int, size: int, *, kind: str = "conv3", stem: int = 7, first_units: int = 64
) -> Architecture:
    """Return a blocked feed-forward network in the manner of He et al.

    A convolution of `first_units` channels and a max-pool, then blocks of `size` layers, then an
    average pool and an fc layer of 512 neurons. The first layer of each block has stride 2; each
    block has twice as many channels as the one before, up to 512.

    Args:
        blocks: Number of blocks.
        size: Layers in a block.
        kind: Operation of the layers in the blocks.
        stem: Window of the first convolution.
        first_units: Channels of the first convolution and of the first block.
    """
    layers = [Layer(f"conv{stem}", first_units), _pool("max-pool")]
    for block in range(blocks):
        units = min(first_units * 2**block, 512)
        layers += [Layer(kind, units, 2), *[Layer(kind, units)] * (size - 1)]

    return chain("cnn", [*layers, _pool("avg-pool"), Layer("fc", 512), Layer("softmax")])


def _small_designs() -> Iterator[Architecture]:
    """Yield ever smaller networks, for limits that some of the paper's ten exceed."""
    yield vgg(1)
    for kind in ("conv3", "res3", "conv5", "res5"):
        yield make_blocks(2, 2, kind=kind)
        yield make_blocks(2, 1, kind=kind)

    for kind in ("conv3", "res3", "conv5", "res5", "conv7", "res7"):
        yield make_blocks(1, 1, kind=kind)

    for op in ("conv3", "conv5", "conv7", "res3", "res5", "res7"):
        yield chain("cnn", [Layer(op, 64), _pool("max-pool"), Layer("softmax")])
        yield chain("cnn", [Layer(op, 64), Layer("softmax")])

    yield chain("cnn", [_pool("avg-pool"), Layer("softmax")])


def _pool(op: str) -> Layer:
    return Layer(op, None, 2)
