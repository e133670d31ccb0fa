"""Networks of NAS-Bench-101: every cell of the sampled table, and the rules of the skeleton one by
one."""

from __future__ import annotations

import gzip
import math
import random
from csv import DictReader
from functools import cache

import pytest
import torch
from torch import nn

from archive.architecture.codec import from_nasbench101
from archive.errors import InvalidArchitectureError
from archive.trainer.nn import builders, costs
from archive.trainer.nn.nasbench101 import NasBench101Cell, plan, published_order
from archive.trainer.protocols.networks import NetworkForm
from tests.support import WHOLE, data_dir
from tests.support.strategies import relabelled

PUBLISHED = NetworkForm((3, 32, 32), 10, "classification")
THREE = "conv3x3-bn-relu"
ONE = "conv1x1-bn-relu"
POOL = "maxpool3x3"


@cache
def table():
    """Return the cells of the table, every tenth outside of the whole matrix, with their numbers of
    parameters."""
    with gzip.open(data_dir() / "data" / "nb101_sample.csv.gz", "rt") as opened:
        rows = list(DictReader(opened))[:: 1 if WHOLE else 10]

    cells = []
    for row in rows:
        n = int(row["n_vertices"])
        digits = [int(digit) for digit in row["adjacency_rowmajor"]]
        matrix = [digits[at : at + n] for at in range(0, n * n, n)]
        cells.append((from_nasbench101(matrix, row["ops"].split("|")), int(row["params"])))

    return cells


def cell_of(edges, *operations):
    n = len(operations) + 2
    matrix = [[int((u, v) in edges) for v in range(n)] for u in range(n)]
    return from_nasbench101(matrix, ["input", *operations, "output"])


def planned(architecture, inputs, outputs):
    return plan(architecture, range(len(architecture.layers)), inputs, outputs)


@pytest.mark.lasts(6)
def test_parameters_of_every_cell_are_those_of_the_table():
    wrong = [cell for cell, params in table() if builders.costs(cell, PUBLISHED).params != params]
    assert len(table()) == (20_001 if WHOLE else 2_001)
    assert not wrong


def test_the_order_of_the_table_is_found_again():
    for cell, params in random.Random(1).sample(table(), 100):
        assert published_order(cell) == tuple(range(len(cell.layers)))
        for other in (relabelled(cell, 1), cell.canonical):
            assert builders.costs(other, PUBLISHED).params == params


def test_a_published_network_has_the_counted_costs():
    cell, params = min(random.Random(2).sample(table(), 20), key=lambda row: row[1])
    measured = costs.measure(builders.build(cell, PUBLISHED), (3, 32, 32))
    assert measured == builders.costs(cell, PUBLISHED)
    assert measured.params == params


def test_channels_are_divided_with_the_remainder_to_the_first():
    edges = {(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)}
    assert planned(cell_of(edges, THREE, ONE, POOL), 16, 128).channels == (16, 43, 43, 42, 128)


def test_too_few_channels_are_named():
    wide = cell_of({(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)}, THREE, ONE, POOL)
    with pytest.raises(
        InvalidArchitectureError,
        match="3 vertices of the cell share the 2 channels of its output: set",
    ):
        planned(wide, 2, 2)


def test_other_vertices_have_as_many_channels_as_the_largest_that_they_feed():
    # 1 feeds 2 and 3, which feed the output with 3 and 2 channels.
    edges = {(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)}
    assert planned(cell_of(edges, THREE, ONE, POOL), 8, 5).channels == (8, 3, 3, 2, 5)


def test_a_vertex_sums_its_inputs_cut_to_its_channels():
    edges = {(0, 1), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)}
    cell = NasBench101Cell(planned(cell_of(edges, THREE, ONE, ONE), 4, 5), 0.1).eval()
    first, second, third = cell.operations
    x = torch.randn(2, 4, 3, 3)
    one = first(cell.projections["1"](x))
    assert one.shape[1] == 3
    expected = torch.cat((second(one), third(one[:, :2] + cell.projections["3"](x))), dim=1)
    torch.testing.assert_close(cell(x), expected)


def test_the_input_is_added_to_the_output():
    cell = NasBench101Cell(planned(cell_of({(0, 1), (1, 2), (0, 2)}, POOL), 4, 6), 0.1).eval()
    x = torch.randn(2, 4, 3, 3)
    assert sorted(cell.projections) == ["1", "2"]
    pooled = cell.operations[0](cell.projections["1"](x))
    torch.testing.assert_close(cell(x), pooled + cell.projections["2"](x))


def test_a_cell_without_vertices_is_a_projection():
    cell = NasBench101Cell(planned(cell_of({(0, 1)}), 4, 6), 0.1).eval()
    x = torch.randn(2, 4, 3, 3)
    assert torch.equal(cell(x), cell.projections["1"](x))


def test_stacks_double_the_channels_and_halve_the_image():
    options = {"channels": 4, "cells": 2}
    form = NetworkForm((3, 9, 9), 10, "classification", options=options)
    network = builders.build(cell_of({(0, 1), (1, 2)}, THREE), form)
    shapes = []
    for stack in network.stacks:
        for cell in stack:
            cell.register_forward_hook(
                lambda _, entering, out: shapes.append((*entering[0].shape[1:], *out.shape[1:]))
            )

    network(torch.randn(2, 3, 9, 9))
    assert shapes == [
        (4, 9, 9, 4, 9, 9), (4, 9, 9, 4, 9, 9), (4, 5, 5, 8, 5, 5), (8, 5, 5, 8, 5, 5), (8, 3, 3, 16, 3, 3),
        (16, 3, 3, 16, 3, 3),
    ]  # fmt: skip


def test_operations_are_those_of_the_publication():
    network = builders.build(cell_of({(0, 1), (1, 2), (2, 3)}, THREE, POOL), PUBLISHED)
    convolution, norm, relu = network.stacks[0][0].operations[0]
    weight = convolution.weight.detach()
    assert isinstance(relu, nn.ReLU)
    assert (convolution.kernel_size, convolution.padding, convolution.bias) == (
        (3, 3),
        (1, 1),
        None,
    )
    assert (norm.momentum, norm.eps) == (0.003, 1e-5)
    pool = network.stacks[0][0].operations[1]
    x = torch.randn(1, 1, 3, 3)
    assert pool(x)[..., 1, 1] == x.max()
    # Variance 1 / fan in, no draw beyond two standard deviations of the normal before it is cut.
    deviation = 1 / math.sqrt(128 * 9)
    assert float(weight.std()) == pytest.approx(deviation, rel=0.02)
    assert float(weight.abs().max()) <= 2 * deviation / 0.8796
    assert network.classifier.bias.abs().max() == 0
