"""Networks of NAS-Bench-201: every cell of the table, and the rules of the skeleton one by one."""

from __future__ import annotations

import gzip
import random
from csv import DictReader
from functools import cache

import pytest
import torch
from torch import nn

from archive.architecture.codec import from_nasbench201
from archive.trainer.nn import builders, costs
from archive.trainer.nn.layers import Pool
from archive.trainer.nn.nasbench201 import NasBench201Cell
from archive.trainer.protocols.networks import NetworkForm
from tests.support import WHOLE, data_dir

PUBLISHED = NetworkForm((3, 32, 32), 10, "classification")
FULL = "|nor_conv_3x3~0|+|nor_conv_1x1~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_1x1~2|"
EMPTY = "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"


@cache
def rows():
    with gzip.open(data_dir() / "data" / "nb201.csv.gz", "rt") as opened:
        found = list(DictReader(opened))

    assert len(found) == 15_625
    # Every fifth cell, unless everything is run.
    return found if WHOLE else found[::5]


@pytest.fixture(scope="module")
def found():
    """The costs of every cell of the table."""
    return [builders.costs(from_nasbench201(row["arch_str"]), PUBLISHED) for row in rows()]


@pytest.mark.lasts(3)
def test_parameters_of_every_cell_are_those_of_the_table(found):
    wrong = [
        row
        for row, cost in zip(rows(), found, strict=True)
        if _millions(cost.params, 5) != row["params_millions"]
    ]
    assert not wrong


@pytest.mark.lasts(2)
def test_operations_of_every_cell_are_those_of_the_table(found):
    """The table's tool counts normalisations, relus and pools besides, and 5,184 more in each
    network.

    5,184 is 64 times 81: for the mean over the image, the window that the tool takes would be 9 x
    9.
    """
    empty = other_operations(EMPTY)
    each = {name: other_operations(EMPTY.replace("none", name, 1)) - empty for name in OPERATIONS}
    wrong = []
    for row, cost in zip(rows(), found, strict=True):
        others = empty + sum(each[name] * row["arch_str"].count(name) for name in OPERATIONS)
        if _millions(cost.flops + others + 64 * 81, 4) != row["flops_millions"]:
            wrong.append(row)

    assert not wrong


def test_the_empty_cell_has_the_costs_of_the_benchmarks_own_file():
    assert builders.costs(from_nasbench201(EMPTY), PUBLISHED) == (73_306, 7_783_050)


@pytest.mark.parametrize("row", random.Random(0).sample(range(3_125), 2))
def test_a_published_network_has_the_counted_costs(row):
    cell = from_nasbench201(rows()[row]["arch_str"])
    assert costs.measure(builders.build(cell, PUBLISHED), (3, 32, 32)) == builders.costs(
        cell, PUBLISHED
    )


def test_nodes_of_a_cell_are_sums():
    cell = NasBench201Cell(from_nasbench201(FULL), 4, 0.1).eval()
    a, b, c, d, e, f = cell.operations
    x0 = torch.randn(2, 4, 5, 5)
    x1 = a(x0)
    x2 = b(x0) + c(x1)
    torch.testing.assert_close(cell(x0), d(x0) + e(x1) + f(x2))


def test_operations_are_those_of_the_publication():
    conv, one, pool, skip, *_ = NasBench201Cell(from_nasbench201(FULL), 4, 0.1).operations
    assert (
        [type(part) for part in conv]
        == [nn.ReLU, nn.Conv2d, nn.BatchNorm2d]
        == [type(part) for part in one]
    )
    assert (conv[1].kernel_size, conv[1].padding, conv[1].bias, one[1].kernel_size) == (
        (3, 3),
        (1, 1),
        None,
        (1, 1),
    )
    assert (conv[2].eps, conv[2].momentum, conv[2].affine, conv[2].track_running_stats) == (
        1e-5,
        0.1,
        True,
        True,
    )
    x = torch.randn(1, 4, 3, 3)
    # The corner's window has four pixels inside the image.
    torch.testing.assert_close(pool(x)[..., 0, 0], x[..., :2, :2].mean(dim=(2, 3)))
    assert skip(x) is x


def test_dead_operations_have_parameters_and_no_effect():
    dead = "|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|"
    cell = NasBench201Cell(from_nasbench201(dead), 4, 0.1)
    x = torch.randn(2, 4, 5, 5)
    assert torch.equal(cell(x), x)
    assert costs.params(cell) == 4 * 4 * 9 + 8


def test_an_operation_on_an_empty_node_emits_its_offset():
    cell = NasBench201Cell(
        from_nasbench201("|none~0|+|none~0|none~1|+|none~0|nor_conv_1x1~1|none~2|"), 2, 0.1
    )
    nn.init.constant_(cell.operations[0][2].bias, 0.5)
    assert torch.equal(cell(torch.randn(3, 2, 4, 4)), torch.full((3, 2, 4, 4), 0.5))


def test_a_cell_without_operations_is_zero():
    network = builders.build(
        from_nasbench201(EMPTY), NetworkForm((3, 8, 8), 10, "classification", options={"cells": 1})
    )
    first, second = network.eval()(torch.randn(2, 3, 8, 8))
    # Only the reductions' offsets arrive at the classifier.
    torch.testing.assert_close(first, second)


OPERATIONS = ("nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")


def other_operations(text):
    """Return the operations of normalisations (two a value), relus and average pools (one a pixel
    of the window)."""
    total = 0

    def hook(layer, entering, output):
        nonlocal total
        if isinstance(layer, nn.BatchNorm2d):
            total += 2 * output.numel()
        elif isinstance(layer, nn.ReLU):
            total += output.numel()
        elif isinstance(layer, nn.AvgPool2d):
            total += 9 * output.numel()
        elif isinstance(layer, Pool):
            total += 4 * output.numel()

    with torch.device("meta"):
        network = builders.build(from_nasbench201(text), PUBLISHED).eval()
        for part in network.modules():
            part.register_forward_hook(hook)

        network(torch.zeros(1, 3, 32, 32))

    return total


def _millions(number, digits):
    """Return a number in millions as the table writes it, without trailing zeros."""
    return f"{number / 1e6:.{digits}f}".rstrip("0").rstrip(".")
