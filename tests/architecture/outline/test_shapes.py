"""Shapes that are computed without PyTorch are those of PyTorch."""

from __future__ import annotations

import pytest

from archive.architecture.graph import Architecture
from archive.architecture.outline.shapes import BATCH
from archive.architecture.outline.shapes import output_shapes as plain_shapes
from tests.support.networks.block_nets import language_net, mobile_net, residual_net
from tests.support.networks.torch_nets import classifiers

NETS = [
    residual_net(pooled=True, gated=True),
    mobile_net(),
    language_net(kv_heads=2),
    language_net(products=True),
]


@pytest.mark.parametrize("net", [*NETS, *classifiers()[:3]])
def test_shapes_of_known_networks_are_those_of_pytorch(net: Architecture):
    compare(net)


def compare(net: Architecture) -> None:
    from archive.trainer.nn.aten.network import output_shapes

    # The network of PyTorch has the layers in canonical order.
    net = net.canonical
    plain = plain_shapes(net)
    for u, shape in enumerate(output_shapes(net)):
        computed = plain[u]
        if u < len(net.layers) - 1 and computed and shape and computed[0] == BATCH:
            assert computed[1:] == tuple(shape), (u, net.layers[u])
