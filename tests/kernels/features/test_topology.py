"""Topology features against a list of every path."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.codec import from_nasbench201
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import vocabulary
from archive.kernels.features.topology import TopologyFeatures
from tests.support import kernel_oracle
from tests.support.networks.torch_nets import mobile
from tests.support.strategies import cells, members, relabelled

networks = st.sampled_from(
    [cells(), *map(members, ("cnn", "darts", "mlp", "nasbench201"))]
).flatmap(lambda one: one)


def listed(architecture):
    """All paths from input to output that pass no zero, as lists of operations."""
    words = vocabulary(architecture.space)
    last = len(architecture.layers) - 1

    def onward(u):
        if u == last:
            return [[]]

        if words[architecture.layers[u].op].zero:
            return []

        here = [] if u == 0 else [words[architecture.layers[u].op]]
        return [[*here, *rest] for child in architecture.children[u] for rest in onward(child)]

    return onward(0)


@given(networks)
def test_numbers_are_those_of_all_paths(architecture):
    paths = listed(architecture)
    features, size = TopologyFeatures().features(architecture)
    if not paths:
        assert (features, size) == ({}, {})
        return

    expected = {"paths": math.log2(len(paths))}
    families = {
        "trained": lambda one: one.has_units or (one.kernel > 0 and "pool" not in one.name),
        "windows": lambda one: one.kernel > 1,
    }
    families["trained-windows"] = lambda one: families["trained"](one) and families["windows"](one)
    for name, of_family in families.items():
        counts = [sum(map(of_family, path)) for path in paths]
        expected |= {
            f"{name}:longest": max(counts),
            f"{name}:shortest": min(counts),
            f"{name}:mean": np.mean(counts),
        }

    idle = [
        not any(families["trained"](one) or families["windows"](one) for one in path)
        for path in paths
    ]
    expected["identity"] = float(any(idle))
    assert features == pytest.approx(expected)


@given(networks, st.integers(0, 99))
def test_relabelling_changes_nothing(architecture, seed):
    one = TopologyFeatures().features(architecture)
    other = TopologyFeatures().features(relabelled(architecture, seed))
    assert [*map(dict, one)] == [pytest.approx(dict(part)) for part in other]


def test_sizes():
    def size(architecture):
        return TopologyFeatures().features(architecture)[1]["size"]

    cell = from_nasbench201(
        "|nor_conv_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|none~0|avg_pool_3x3~1|none~2|"
    )
    # The convolution of 1 x 1 leads nowhere.
    assert size(cell) == pytest.approx(math.log2(1 + 9))
    chain = kernel_oracle.chain("cnn", ("conv3", 8), ("max-pool", None), ("conv5", 16), ("fc", 32))
    assert size(chain) == pytest.approx(math.log2(1 + 9 * 8 + 25 * 8 * 16 + 16 * 32))


def test_windows_and_sizes_of_imported_networks():
    paths, size = TopologyFeatures().features(mobile())
    assert paths["trained-windows:longest"] == 2
    assert paths["trained:longest"] == 3
    # Both convolutions have nine weights a channel, the second one of each channel by itself.
    assert size["size"] == pytest.approx(math.log2(1 + 72 + 72 + 2 * 16 + 90))


def test_a_deep_network_has_more_paths_than_a_number_holds():
    layers = [Layer("ip")]
    edges = []
    before = [0]
    for _ in range(1500):
        layers += [Layer("relu", 4), Layer("elu", 4)]
        pair = [len(layers) - 2, len(layers) - 1]
        edges += [(tail, head) for tail in before for head in pair]
        before = pair

    last = len(layers)
    edges += [*((tail, last) for tail in before), (last, last + 1)]
    features, _ = TopologyFeatures().features(
        Architecture("mlp", [*layers, Layer("linear"), Layer("op")], edges)
    )
    assert features["paths"] == pytest.approx(1500)
    assert features["trained:mean"] == pytest.approx(1500)
