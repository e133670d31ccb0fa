"""Evaluation: loss and metric of a part, in as little memory as the network allows."""

from __future__ import annotations

import dataclasses
import math
import weakref

import pytest
import torch
from torch import nn

from archive.trainer.fit.batches import Batches
from archive.trainer.fit.evaluate import evaluate, training_loss
from archive.trainer.nn.layers import Network
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.tasks import registry
from tests.support.networks.nets import net

DIGITS = registry.get("digits")
FORM = NetworkForm((1, 8, 8), 10, "classification")


class Limited(nn.Module):
    """A network for which more than some inputs at a time do not fit into memory."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.sizes = []
        torch.manual_seed(0)
        self.layer = nn.Linear(64, 10)

    def forward(self, x):
        self.sizes.append(len(x))
        if len(x) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

        return self.layer(x.flatten(1))


@pytest.fixture
def part():
    generator = torch.Generator().manual_seed(0)
    return Batches(torch.rand(100, 1, 8, 8, generator=generator), torch.arange(100) % 10)


def test_evaluation_without_memory_continues_with_smaller_batches(part, caplog):
    limited = Limited(30)
    plain = Limited(100)
    assert evaluate(limited, part, DIGITS) == pytest.approx(evaluate(plain, part, DIGITS))
    assert (plain.sizes, limited.sizes) == ([100], [100, 50, 25, 25, 25, 25])
    assert "out of memory" in caplog.text
    with pytest.raises(torch.OutOfMemoryError):
        evaluate(Limited(0), part, DIGITS)


def test_evaluation_keeps_only_the_outputs_that_later_layers_need(part):
    # The output of layer 1 is needed by layer 5, all others by the next layer alone.
    words = "conv3/4 conv3/4 conv3/4 conv3/4 conv3/4 conv3/4 conv3/4 fc/8 softmax"
    network = Network(net("cnn", words, [*((k, k + 1) for k in range(10)), (1, 5)]), FORM)
    outputs = []
    alive = []

    def record(layer, inputs, output):
        outputs.append(weakref.ref(output))
        alive.append([at for at, each in enumerate(outputs, start=1) if each() is not None])

    for layer in network.layers[1:-1]:
        layer.register_forward_hook(record)

    evaluate(network, part, DIGITS)
    # With its input, which is a concatenation in layer 5.
    assert alive == [[1], [1, 2], [1, 2, 3], [1, 3, 4], [5], [5, 6], [6, 7], [7, 8], [8, 9]]


@pytest.mark.parametrize(
    ("task", "loss", "outputs", "targets", "expected"),
    [
        ("diabetes", "likelihood", [[1.0], [5.0]], [0.0, 2.0], (1 + 9) / 2),
        ("diabetes", "absolute", [[1.0], [5.0]], [0.0, 2.0], (1 + 3) / 2),
        ("digits", "likelihood", [[0.0] * 10], [3], math.log(10)),
    ],
)
def test_the_training_loss_is_the_one_of_the_protocol(task, loss, outputs, targets, expected):
    task = registry.get(task)
    protocol = dataclasses.replace(task.protocol(), loss=loss)
    given = training_loss(task, protocol)(torch.tensor(outputs), torch.tensor(targets))
    assert given.item() == pytest.approx(expected)
