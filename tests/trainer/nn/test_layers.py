"""The function of each operation, against torch's plain functions and numbers by hand."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from archive.trainer.nn.layers import (
    ACTIVATIONS,
    Affine,
    Convolution,
    Dense,
    Filter,
    Pool,
    Residual,
    crelu,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def padded(filter_: Filter, kernel: int) -> torch.Tensor:
    """The kernel with the taps that the filter leaves out, filled with numbers that must not
    matter."""
    units, channels, *_ = filter_.weight.shape
    full = torch.full((units, channels, kernel, kernel), 1e3)
    rows, columns = (slice(kernel // 2 - r, kernel // 2 + r + 1) for r in filter_.reach)
    full[:, :, rows, columns] = filter_.weight.detach()
    return full


@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("sides", [(8, 8), (7, 7), (3, 5), (2, 2), (1, 1), (1, 4)])
def test_a_filter_is_the_convolution_with_the_full_kernel(kernel, stride, sides):
    filter_ = Filter((3, *sides), 4, kernel, stride, normalise=False, generator=generator())
    x = torch.randn(2, 3, *sides)
    expected = F.conv2d(x, padded(filter_, kernel), stride=stride, padding=kernel // 2)
    torch.testing.assert_close(filter_(x), expected)
    assert (
        filter_.shape == tuple(expected.shape[1:]) == (4, *(-(-side // stride) for side in sides))
    )


@pytest.mark.parametrize("sides", [(8, 8), (7, 5), (2, 2), (1, 3), (1, 1)])
@pytest.mark.parametrize("kind", ["max-pool", "avg-pool"])
def test_a_pool_halves_and_rounds_up(kind, sides):
    pool = Pool((2, *sides), kind)
    x = torch.randn(3, 2, *sides)
    out = pool(x)
    assert tuple(out.shape[1:]) == pool.shape == (2, *(-(-side // 2) for side in sides))
    corner = x[:, :, :2, :2].flatten(2)
    expected = corner.amax(2) if kind == "max-pool" else corner.mean(2)
    torch.testing.assert_close(out[:, :, 0, 0], expected)


def test_average_pool_ignores_pixels_outside_the_image():
    x = torch.arange(9.0).reshape(1, 1, 3, 3)
    assert Pool((1, 3, 3), "avg-pool")(x).flatten().tolist() == [2.0, 3.5, 6.5, 8.0]
    assert Pool((1, 3, 3), "max-pool")(x).flatten().tolist() == [4.0, 5.0, 7.0, 8.0]


def test_a_residual_block_adds_its_input_before_the_last_relu():
    block = Residual((2, 4, 4), 2, 3, 1, normalise=False, generator=generator())
    assert block.projection is None
    x = torch.randn(1, 2, 4, 4)
    inner = F.conv2d(
        F.relu(F.conv2d(x, block.first.weight, padding=1)), block.second.weight, padding=1
    )
    torch.testing.assert_close(block(x), F.relu(inner + x))


@pytest.mark.parametrize(("channels", "stride"), [(2, 2), (3, 1), (3, 2)])
def test_a_residual_block_projects_its_input_where_shapes_differ(channels, stride):
    block = Residual((channels, 5, 5), 2, 5, stride, normalise=False, generator=generator())
    x = torch.randn(2, channels, 5, 5)
    assert block.projection is not None
    inner = block.second(F.relu(block.first(x)))
    expected = F.relu(inner + F.conv2d(x, block.projection.weight, stride=stride))
    torch.testing.assert_close(block(x), expected)
    assert tuple(expected.shape[1:]) == block.shape


def test_crelu_emits_both_signs():
    assert crelu(torch.tensor([[1.0, -2.0]])).tolist() == [[1.0, 0.0, 0.0, 2.0]]
    dense = Dense((3,), 5, "crelu", normalise=False, generator=generator())
    assert dense.shape == (10,)
    assert dense(torch.randn(2, 3)).shape == (2, 10)


@pytest.mark.parametrize(
    ("name", "at_minus_one"),
    [
        ("relu", 0.0),
        ("leaky-relu", -0.01),
        ("softplus", 0.313262),
        ("elu", -0.632121),
        ("logistic", 0.268941),
        ("tanh", -0.761594),
    ],
)
def test_activations(name, at_minus_one):
    assert float(ACTIVATIONS[name](torch.tensor([-1.0]))) == pytest.approx(at_minus_one, abs=1e-5)


def test_an_image_is_flattened_by_channel_row_column_whatever_its_layout():
    affine = Affine((2, 2, 2), 1, generator())
    with torch.no_grad():
        affine.weight.copy_(torch.tensor([[1.0, 10, 100, 1e3, 1e4, 1e5, 1e6, 0]]))

    x = torch.arange(1.0, 9.0).reshape(1, 2, 2, 2)
    assert (
        affine(x).item()
        == affine(x.contiguous(memory_format=torch.channels_last)).item()
        == 7654321.0
    )


@torch.no_grad()
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_initial_weights_keep_a_signal_alive_through_six_layers(activation):
    source = generator()
    x = torch.randn(64, 128, generator=source)
    for _ in range(6):
        layer = Dense(tuple(x.shape[1:]), 128, activation, normalise=False, generator=source)
        x = layer(x)

    assert x.isfinite().all()
    between_inputs = x.std(dim=0).mean()
    assert 0.01 < float(between_inputs) < 10


@torch.no_grad()
def test_normalisation_stands_before_the_activation():
    block = Convolution((1, 4, 4), 3, 3, 1, normalise=True, generator=generator())
    out = block(torch.randn(32, 1, 4, 4))
    raw = F.conv2d(torch.randn(1, 1, 4, 4), block.filter.weight, padding=1)
    assert raw.shape[1:] == out.shape[1:]
    assert float(out.min()) == 0.0
    assert out.mean().item() == pytest.approx(0.4, abs=0.05)  # of a relu of a standard normal
