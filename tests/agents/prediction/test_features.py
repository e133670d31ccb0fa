"""Features of networks: sums that are computed by hand, and another size of the image."""

from __future__ import annotations

import math

import pytest

from archive.agents.prediction.features import BALANCE, ENLARGEMENT, at_side, features
from archive.architecture.aten import blocks
from tests.support.networks import torch_nets
from tests.support.stores import cells


def test_sums_of_a_network_are_those_counted_by_hand():
    # A convolution of 8 x 3 x 3 x 3 on 4 x 4 pixels, one of 8 x 8 x 3 x 3, and 80 products.
    described = features(torch_nets.residual())
    work = 16 * 216 + 16 * 576 + 80
    traffic = 2 * 128 + 10 + 3 * 128
    assert 2 ** described["size: multiply-adds"] == pytest.approx(work)
    assert 2 ** described["size: activations"] == pytest.approx(2 * 128 + 10)
    assert 2 ** described["size: traffic"] == pytest.approx(traffic)
    assert 2 ** described["size: roofline"] == pytest.approx(work + BALANCE * traffic)
    assert 2 ** described["size: depth"] - 1 == pytest.approx(3)
    assert described["work: window"] == pytest.approx(math.sqrt((work - 80) / work))
    assert described["resolutions: at 1"] == pytest.approx(math.sqrt((work - 80) / work))


def test_kinds_of_operations_are_told_apart():
    mobile = features(torch_nets.mobile())
    transformer = features(torch_nets.transformer())
    assert mobile["work: depthwise"] > 0.0 == mobile["work: grouped"]
    assert mobile["functions: batch norm"] == transformer["functions: layer norm"] == 1.0
    # Scores of 4 x 4 tokens of 6 features, and their means.
    attention = 2 * 16 * 6
    work = 4 * 96 + attention + 60
    assert transformer["work: attention"] == pytest.approx(math.sqrt(attention / work))


def test_a_folded_network_has_the_features_of_the_network_written_out():
    folded = torch_nets.folded()
    written = features(blocks.unfold(folded))
    described = features(folded)
    for name in described.keys() - {"size: layers"}:
        assert described[name] == pytest.approx(written[name]), name


def test_another_size_of_the_image_scales_work_alone():
    described = features(torch_nets.residual())
    larger = at_side(described, 16)
    changed = {name for name in described if larger[name] != described[name]} - {ENLARGEMENT}
    assert larger["size: multiply-adds"] == described["size: multiply-adds"] + 2.0
    assert larger["size: side"] == 4.0
    assert changed <= {name for name in described if name.startswith("size:")}
    assert larger[ENLARGEMENT] == 1.0
    assert at_side(described, None) == described == at_side(described, 8)


def test_cells_are_described_by_their_operations():
    described = [features(cell) for cell in cells(30)]
    assert len({tuple(sorted(one.items())) for one in described}) > 20
    assert all(math.isfinite(value) for one in described for value in one.values())
