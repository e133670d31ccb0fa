"""torchvision's networks, built without weights: sizes, identity, folding. For the whole matrix."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from archive import spaces
from archive.architecture.aten.blocks import unfold
from archive.architecture.aten.weights import parameters
from archive.architecture.aten.wiring import Input
from archive.trainer.intake.models import ImportedModel, import_model
from tests.support.strategies import relabelled

# Layers, and layers when folded. On the device meta nothing is computed.
#
# What training alone computes counts: a dropout in place is one layer, and stochastic depth of a
# block five (empty, bernoulli, div, mul, by_mode). The share of blocks that it drops grows with the
# depth of the network, so that no two blocks are equal and none folds.
NETWORKS = {
    "vit_b_16": (386, 47, "meta"),
    "mobilenet_v3_small": (159, 133, "cpu"),
    "resnet18": (71, 66, "cpu"),
    "resnet50": (177, 105, "meta"),
    "mobilenet_v2": (155, 118, "cpu"),
    "mobilenet_v3_large": (189, 156, "cpu"),
    "efficientnet_b0": (287, 287, "cpu"),
    "convnext_tiny": (290, 290, "cpu"),
    "swin_t": (1079, 1079, "cpu"),
}
pytestmark = pytest.mark.whole
every_network = pytest.mark.parametrize("name", NETWORKS)


def model_of(name: str) -> torch.nn.Module:
    # Its import loads the compiler of torch, which every worker would pay when it collects this
    # file.
    from torchvision import models

    with torch.device(NETWORKS[name][2]):
        return getattr(models, name)(weights=None)


@cache
def imported(name: str, fold: bool = False) -> ImportedModel:
    return import_model(model_of(name), [Input((3, 224, 224))], fold=fold)


@pytest.mark.lasts(20)
@every_network
def test_a_network_comes_in_whole(name: str) -> None:
    found = imported(name)
    network = found.architecture
    spaces.get("torch").validate(network)
    assert (
        parameters(network) == found.params == sum(p.numel() for p in model_of(name).parameters())
    )
    assert len(network.layers) == NETWORKS[name][0]
    assert relabelled(network, 1).canonical == network.canonical
    assert found.flops


@every_network
def test_its_blocks_fold(name: str) -> None:
    from archive.architecture.aten.blocks import fold

    network = imported(name).architecture
    folded = fold(network)
    assert len(folded.layers) == NETWORKS[name][1]
    assert unfold(folded).key == network.key
