"""Layer masses, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import layer_masses, total_mass
from archive.architecture.operations import vocabulary
from archive.spaces.darts.published import PUBLISHED
from tests.support import golden


def test_masses_of_a_small_cnn_by_hand() -> None:
    layers = [
        Layer("ip"),
        Layer("conv3", 16),
        Layer("conv3", 8),
        Layer("res3", 4),
        Layer("max-pool", None, 2),
        Layer("fc", 10),
        Layer("softmax"),
        Layer("op"),
    ]
    edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6), (6, 7)]
    masses = layer_masses(Architecture("cnn", layers, edges))
    # conv 16*1; conv 8*16; res 2*4*16; pool 8+4; fc 0.1*10*12; the ends a tenth of the sum
    inner = [16, 128, 128, 12, 12]
    share = 0.1 * sum(inner)
    assert masses == pytest.approx([share, *inner, share, share])


def test_decision_layers_share_their_mass() -> None:
    layers = [Layer("ip"), Layer("relu", 10), Layer("linear"), Layer("linear"), Layer("op")]
    masses = layer_masses(Architecture("mlp", layers, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)]))
    assert masses == pytest.approx([1, 10, 0.5, 0.5, 1])


def test_a_cell_counts_its_layers() -> None:
    layers = [Layer("ip"), Layer("nor_conv_3x3"), Layer("skip_connect"), Layer("op")]
    network = Architecture("nasbench201", layers, [(0, 1), (1, 2), (2, 3)])
    assert layer_masses(network) == pytest.approx([0.2, 1, 1, 0.2])
    assert total_mass(network) == pytest.approx(2.4)


def test_cells_of_a_genotype_count_their_operations() -> None:
    """Sixteen operations, two of them zero; entries and sums compute nothing."""
    network = PUBLISHED["BANANAS_4"].architecture
    masses = dict(zip(network.layers, layer_masses(network), strict=True))
    assert masses[Layer("normal.sep_conv_5x5")] == masses[Layer("normal.skip_connect")] == 1.0
    assert not any(masses[Layer(op)] for op in ("normal.c_k-1", "reduce.sum", "reduce.none"))
    assert masses[Layer("ip")] == masses[Layer("op")] == pytest.approx(1.4)
    assert total_mass(network) == pytest.approx(14 + 2.8)
    assert total_mass(network.functional) == pytest.approx(14 + 2.8)


def test_masses_of_the_golden_networks() -> None:
    """The golden masses are those of the authors' code: res blocks count once, the ends weigh 100
    at least."""
    for item in golden("otmann.json")["networks"]:
        masses = layer_masses(architecture(item), res_factor=1.0, floor=100.0)
        assert masses == pytest.approx(item["masses"]), item["name"]


def architecture(item: dict[str, Any]) -> Architecture:
    words = vocabulary(item["kind"])
    layers = [
        Layer(
            layer["label"], layer["units"], layer.get("stride") or words[layer["label"]].strides[0]
        )
        for layer in item["layers"]
    ]
    return Architecture(item["kind"], layers, [tuple(edge) for edge in item["edges"]])
