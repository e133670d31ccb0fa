"""Weights of an ancestor that are not those of its network, or not finite, are refused with the
tensors' names."""

from __future__ import annotations

import pytest
import torch

from archive.errors import WeightsError
from archive.trainer.morphism.inherited_weights import check
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from tests.support.networks.nets import net

FORM = NetworkForm((5,), 1, "regression", True)
NETWORK = net("mlp", "relu/16 linear").canonical
NAME = "layers.1.affine.weight"


@pytest.fixture
def weights():
    return builders.build(NETWORK, FORM).state_dict()


def test_whole_and_finite_weights_are_accepted(weights):
    check("file:///w", NETWORK, weights, FORM)
    check("file:///w", NETWORK, {name: tensor.double() for name, tensor in weights.items()}, FORM)


def test_further_tensors_and_counters_of_batches_do_not_matter(weights):
    floating = {name: tensor for name, tensor in weights.items() if tensor.is_floating_point()}
    assert len(floating) < len(weights)
    check("file:///w", NETWORK, {**floating, "best_loss": torch.tensor(float("inf"))}, FORM)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, f"do not fit its network: missing: {NAME}"),
        (
            {"net.weight": torch.zeros(1)},
            f"do not fit its network: missing: {NAME}; unexpected: net.weight",
        ),
        (
            {f"net.{k}": torch.zeros(1) for k in range(5)},
            f"do not fit its network: missing: {NAME}; unexpected: net.0, net.1, net.2 and 2 more",
        ),
        (
            {NAME: torch.zeros(16, 4)},
            f"do not fit its network: {NAME} must have the shape (16, 5), got (16, 4)",
        ),
        ({NAME: torch.full((16, 5), float("nan"))}, f"are not finite: NaN or infinity in {NAME}"),
        (
            {NAME: torch.full((16, 5), 1e300, dtype=torch.float64)},
            f"are not finite: NaN or infinity in {NAME}",
        ),
    ],
)
def test_other_weights_are_refused_by_name(weights, changed, reason):
    del weights[NAME]
    with pytest.raises(WeightsError) as caught:
        check("file:///w", NETWORK, weights | changed, FORM)

    assert str(caught.value) == f"the weights of file:///w {reason}"
