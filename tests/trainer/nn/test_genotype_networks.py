"""Networks of genotypes: the published ones, and the rules of the skeleton and the operations one
by one."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from archive.architecture.genotypes.codec import from_genotype
from archive.architecture.genotypes.genotype import Genotype
from archive.spaces.darts.published import PUBLISHED
from archive.trainer.nn import builders, costs
from archive.trainer.nn.base import HasAuxiliaryHead
from archive.trainer.nn.genotype_networks import (
    AuxiliaryHead,
    FactorizedReduce,
    GenotypeNetwork,
    operation,
)
from archive.trainer.protocols.networks import NetworkForm
from tests.support import whole

CIFAR = NetworkForm((3, 32, 32), 10, "classification")
SMALL = NetworkForm((2, 8, 8), 3, "classification", options={"channels": 4, "cells": 1})
SKIPS = Genotype(
    (("skip_connect", 0), ("skip_connect", 1)) * 4,
    (2, 3, 4, 5),
    (("max_pool_3x3", 0), ("none", 1)) * 4,
    (2, 3, 4, 5),
)


@pytest.mark.parametrize(
    ("name", "channels", "params"),
    [
        # The log of DARTS' own cnn/train.py: "param size = 3.349342MB"; 3.3 million in its paper,
        # table 1.
        ("DARTS_V2", 36, 3_349_342),
        whole("DARTS_V1", 36, 3_169_414),
        # 3.1 million in that table, where the networks were trained by DARTS' code.
        whole("AmoebaNet", 36, 3_145_078),
        # 3.1 million there; NASNet-A (6 @ 768) begins with 32 channels.
        ("NASNet", 32, 3_061_738),
        whole("NASNet", 36, 3_830_950),
    ],
)
def test_published_genotypes_have_their_parameters(name, channels, params):
    form = dataclasses.replace(CIFAR, options={"channels": channels})
    found = builders.costs(PUBLISHED[name].architecture, form)
    assert found.params == params == by_hand(PUBLISHED[name].genotype, channels)


def test_the_second_order_genotype_has_the_published_operations():
    # 528 million multiply-adds on CIFAR-10 in the papers that compare with it.
    assert round(builders.costs(PUBLISHED["DARTS_V2"].architecture, CIFAR).flops / 1e6) == 528


def by_hand(genotype, c):
    """Return the number of parameters of a genotype's network, from the definitions of the
    operations alone."""
    separable = {f"sep_conv_{k}x{k}": 2 * k * k for k in (3, 5, 7)}
    dilated = {f"dil_conv_{k}x{k}": k * k for k in (3, 5)}

    def weights(name, c, stride):
        if name in separable:
            return separable[name] * c + 2 * c * c + 4 * c

        if name in dilated:
            return dilated[name] * c + c * c + 2 * c

        if name == "conv_7x1_1x7":
            return 14 * c * c + 2 * c

        return c * c + 2 * c if (name, stride) == ("skip_connect", 2) else 0

    total = 27 * 3 * c + 6 * c
    before = 3 * c
    last = 3 * c
    for at in range(20):
        reduces = at in (20 // 3, 40 // 3)
        c = 2 * c if reduces else c
        choices, concat = (genotype.reduce, genotype.reduce_concat) if reduces else genotype[:2]
        total += before * c + last * c + 4 * c
        total += sum(weights(name, c, 2 if reduces and state < 2 else 1) for name, state in choices)
        before = last
        last = len(concat) * c

    return total + 10 * last + 10


@pytest.mark.parametrize("side", [8, 7])
@pytest.mark.parametrize("name", ["DARTS_V2", "AmoebaNet"])
def test_counted_costs_are_those_of_the_built_network(name, side):
    form = dataclasses.replace(SMALL, input_shape=(2, side, side))
    network = builders.build(PUBLISHED[name].architecture, form)
    assert costs.measure(network, form.input_shape) == builders.costs(
        PUBLISHED[name].architecture, form
    )


def test_nodes_of_two_operations_none_have_the_counted_costs():
    architecture = from_genotype(SKIPS, "darts")
    network = builders.build(architecture, SMALL)
    assert costs.measure(network, (2, 8, 8)) == builders.costs(architecture, SMALL)


@pytest.mark.parametrize("side", [8, 7, 2, 1])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    "name", ["skip_connect", "max_pool_3x3", "avg_pool_3x3", "conv_7x1_1x7"]
    + [f"sep_conv_{k}x{k}" for k in (3, 5, 7)] + [f"dil_conv_{k}x{k}" for k in (3, 5)],
)  # fmt: skip
def test_operations_halve_the_image_alike(name, stride, side):
    out = operation(name, 4, stride, 0.1)(torch.randn(2, 4, side, side))
    assert out.shape == (2, 4, -(-side // stride), -(-side // stride))


def test_kernels_reach_as_far_as_their_names_say():
    def reach(name):
        x = torch.zeros(1, 1, 21, 21)
        x[..., 10, 10] = 1.0
        layer = operation(name, 1, 1, 0.1).eval()
        for part in layer:
            if isinstance(part, nn.Conv2d):
                nn.init.ones_(part.weight)

        (rows, columns) = torch.nonzero(layer(x)[0, 0] > 1e-6, as_tuple=True)
        return int(rows.max()) - 10, int(columns.max()) - 10

    assert [reach(f"sep_conv_{k}x{k}") for k in (3, 5, 7)] == [(2, 2), (4, 4), (6, 6)]
    assert [reach(f"dil_conv_{k}x{k}") for k in (3, 5)] == [(2, 2), (4, 4)]
    assert reach("conv_7x1_1x7") == (3, 3)


def test_factorized_reduction_sees_even_and_odd_pixels():
    reduce = FactorizedReduce(1, 2, 0.1).eval()
    nn.init.ones_(reduce.even.weight)
    nn.init.ones_(reduce.odd.weight)
    x = torch.arange(25.0).reshape(1, 1, 5, 5)
    even, odd = reduce(x)[0] * (1 + reduce.norm.eps) ** 0.5
    torch.testing.assert_close(even, x[0, 0, ::2, ::2])
    # The row and the column beyond the image are zero.
    torch.testing.assert_close(
        odd, torch.tensor([[6.0, 8.0, 0.0], [16.0, 18.0, 0.0], [0.0, 0.0, 0.0]])
    )


def test_cells_are_stacked_around_two_reductions():
    form = dataclasses.replace(SMALL, options={"channels": 4, "cells": 2})
    network = builders.build(PUBLISHED["DARTS_V2"].architecture, form)
    seen = []
    for cell in network.cells:
        cell.register_forward_hook(lambda cell, _, out: seen.append((cell.stride, *out.shape[1:])))

    network(torch.randn(2, 2, 8, 8))
    assert seen == [
        (1, 16, 8, 8), (1, 16, 8, 8), (2, 32, 4, 4), (1, 32, 4, 4), (1, 32, 4, 4), (2, 64, 2, 2), (1, 64, 2, 2),
        (1, 64, 2, 2),
    ]  # fmt: skip
    factorized = [isinstance(cell.first, FactorizedReduce) for cell in network.cells]
    assert factorized == [False, False, False, True, False, False, True, False]
    assert network.auxiliary_at == 5


def test_nodes_are_sums_and_the_output_concatenates_them():
    network = builders.build(from_genotype(SKIPS), SMALL).eval()
    cell = network.cells[0]
    before = torch.randn(2, 12, 4, 4)
    last = torch.randn(2, 12, 4, 4)
    node = cell.first(before) + cell.second(last)
    torch.testing.assert_close(cell(before, last, None), torch.cat([node] * 4, dim=1))
    # The reduction cell has one operation a node: the other is none.
    reduction = network.cells[1]
    assert sorted(reduction.operations) == ["0", "2", "4", "6"]


def test_a_node_of_two_operations_none_is_zero():
    nothing = SKIPS._replace(
        normal=(("none", 0), ("none", 1)) * 4, reduce=(("none", 0), ("none", 1)) * 4
    )
    network = builders.build(from_genotype(nothing), SMALL).eval()
    first, second = network(torch.randn(2, 2, 8, 8))
    assert torch.equal(first, second)


def test_drop_path_grows_with_the_progress_and_spares_identities():
    form = dataclasses.replace(SMALL, options={"channels": 4, "cells": 1, "drop_path": 0.5})
    genotype = SKIPS._replace(normal=(("skip_connect", 0), ("avg_pool_3x3", 1)) * 4)
    network = builders.build(from_genotype(genotype), form)
    cell = network.cells[0].eval()
    before = torch.randn(400, 12, 4, 4)
    last = torch.randn(400, 12, 4, 4)
    whole = cell(before, last, None)
    network.set_progress(0.0)
    torch.testing.assert_close(cell(before, last, network.kept), whole)
    network.set_progress(0.5)
    skipped = cell.first(before)
    pooled = cell.operations["1"](cell.second(last))
    ratio = (cell(before, last, network.kept)[:, :4] - skipped) / pooled
    # A quarter is dropped at half of the training; the others are scaled up by 4 / 3.
    per_input = ratio.detach().flatten(1).median(dim=1).values
    assert sorted({round(float(value), 3) for value in per_input}) == [0.0, 1.333]
    assert float((per_input < 0.1).float().mean()) == pytest.approx(0.25, abs=0.08)
    network.eval()
    x = torch.randn(3, 2, 8, 8)
    assert torch.equal(network(x), network(x))


def test_the_auxiliary_head_sees_the_second_reduction_in_training_only():
    network = builders.build(PUBLISHED["DARTS_V2"].architecture, SMALL)
    assert isinstance(network, HasAuxiliaryHead) and network.auxiliary_weight == 0.4
    x = torch.randn(4, 2, 8, 8)
    network.set_progress(0.0)
    outputs, auxiliary = network.eval().with_auxiliary(x)
    assert torch.equal(outputs, network(x)) and auxiliary.shape == (4, 3)
    auxiliary.sum().backward()
    reached = [any(p.grad is not None for p in cell.parameters()) for cell in network.cells]
    assert reached == [True, True, True, True, False]


def test_without_a_weight_there_is_no_auxiliary_head():
    form = dataclasses.replace(SMALL, options={**SMALL.options, "auxiliary": 0.0})
    network = builders.build(PUBLISHED["DARTS_V2"].architecture, form)
    assert not isinstance(network, HasAuxiliaryHead)
    assert not [name for name in network.state_dict() if name.startswith("auxiliary")]


def test_the_auxiliary_head_is_the_published_one():
    head = AuxiliaryHead(576, 10, 0.1)
    # Pointwise to 128, 2 x 2 to 768, two normalisations, a linear layer.
    assert costs.params(head) == 576 * 128 + 2 * 128 + 128 * 768 * 4 + 2 * 768 + 768 * 10 + 10
    for side in (8, 9, 7, 2, 1):
        assert head(torch.randn(2, 576, side, side)).shape == (2, 10)


def test_operations_are_those_of_the_publication():
    network = GenotypeNetwork(PUBLISHED["DARTS_V2"].architecture, CIFAR)
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    assert {(norm.eps, norm.momentum, norm.affine) for norm in norms} == {(1e-5, 0.1, True)}
    convolutions = [part for part in network.modules() if isinstance(part, nn.Conv2d)]
    assert all(convolution.bias is None for convolution in convolutions)
    assert network.stem[0].out_channels == 108
    x = torch.randn(1, 1, 3, 3)
    pooled = operation("avg_pool_3x3", 1, 1, 0.1)(x)
    torch.testing.assert_close(pooled[..., 0, 0], x[..., :2, :2].mean(dim=(2, 3)))
