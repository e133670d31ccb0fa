"""Small networks, written down."""

from __future__ import annotations

from archive.architecture.graph import Architecture, Layer


def layer(text: str) -> Layer:
    """`conv3/16s2` is a conv3 of 16 units and stride 2; pools are at stride 2 always."""
    op, _, rest = text.partition("/")
    units, _, stride = rest.partition("s")
    return Layer(op, int(units) if units else None, 2 if stride or op.endswith("pool") else 1)


def net(space: str, layers: str, edges: list[tuple[int, int]] | None = None) -> Architecture:
    """A network of layers as `layer` reads them; a chain, unless edges are given.

    Input and output are added.
    """
    chain = [Layer("ip"), *map(layer, layers.split()), Layer("op")]
    return Architecture(space, chain, edges or [(u, u + 1) for u in range(len(chain) - 1)])


TINY_CNN = net("cnn", "conv3/8 max-pool fc/16 softmax")
TINY_MLP = net("mlp", "relu/16 tanh/8 linear")
