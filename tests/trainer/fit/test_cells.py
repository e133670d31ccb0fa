"""Cells trained by the default recipe, in the small networks of the protocols `…/cells-small`."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from archive.architecture.codec import from_nasbench101, from_nasbench201
from archive.errors import InvalidArchitectureError
from archive.spaces.darts.published import PUBLISHED
from archive.trainer.fit.train import train
from archive.trainer.morphism.feasibility import operations_between
from archive.trainer.nn import builders
from archive.trainer.nn.base import weighted_layers
from archive.trainer.recipes.run import Cancelled
from archive.trainer.tasks import registry
from tests.support import whole
from tests.support.strategies import relabelled
from tests.trainer.fit.test_resume import leave
from tests.trainer.fit.test_train import same

DIGITS = registry.get("digits")
CELLS = {
    "darts": PUBLISHED["DARTS_V2"].architecture,
    "nasbench101": from_nasbench101(
        [[0, 1, 1, 0, 1], [0, 0, 0, 1, 0], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]],
        ["input", "conv1x1-bn-relu", "conv3x3-bn-relu", "maxpool3x3", "output"],
    ),
    # The fifth edge is dead: its layer has weights, and no gradient.
    "nasbench201": from_nasbench201(
        "|nor_conv_3x3~0|+|none~0|nor_conv_1x1~1|+|skip_connect~0|avg_pool_3x3~1|none~2|"
    ),
}


@pytest.mark.parametrize(
    "space", ["nasbench201", *(whole(name) for name in CELLS if name != "nasbench201")]
)
def test_a_cell_learns(space):
    outcome = train(CELLS[space], DIGITS)
    assert outcome.value > 0.3
    assert outcome.epochs == 8
    cost = builders.costs(CELLS[space], DIGITS.form(space=space))
    assert (outcome.metrics["params"], outcome.metrics["flops"]) == cost


def test_a_dead_layer_is_trained_without_a_gradient():
    cell = CELLS["nasbench201"].canonical
    (dead,) = (
        at
        for at, layer in enumerate(cell.layers)
        if at not in cell.live and layer.op == "nor_conv_1x1"
    )
    weights = train(cell, DIGITS, short()).weights
    # The offset of its normalisation has no gradient and no decay; its statistics follow the data.
    assert not weights[f"body.0.operations.{dead - 1}.2.bias"].any()
    assert weights[f"body.0.operations.{dead - 1}.2.running_mean"].any()


@pytest.mark.parametrize("space", CELLS)
def test_an_interrupted_training_goes_on(tmp_path, space):
    whole = train(CELLS[space], DIGITS, short(), seed=1)
    path = tmp_path / "checkpoint"
    with pytest.raises(Cancelled):
        leave(path, 5, CELLS[space], DIGITS, short(), seed=1)

    resumed = train(relabelled(CELLS[space], 2), DIGITS, short(), seed=1, checkpoint=path)
    assert resumed.resumed == 1
    assert same(resumed, whole)


def test_hyperparameters_apply():
    plain = train(CELLS["nasbench201"], DIGITS, short())
    for changed in (
        {"dropout": 0.3},
        {"learning_rate": 0.01},
        {"weight_decay": 0.1},
        {"max_norm": 0.5},
    ):
        found = train(CELLS["nasbench201"], DIGITS, short(), hyperparameters=changed)
        assert found.curve["train_loss"] != plain.curve["train_loss"]


def test_one_rate_a_layer_leaves_the_normalisations_to_the_protocol():
    cell = CELLS["nasbench101"]
    layers = weighted_layers(builders.build(cell, DIGITS.form(space="nasbench101")))
    rates = [1e-9] * len(layers)
    start = builders.build(cell.canonical, DIGITS.form(space="nasbench101")).state_dict()
    found = train(
        cell, DIGITS, short(), hyperparameters={"learning_rate": rates, "weight_decay": 0.0}
    ).weights
    assert torch.allclose(found["stem.0.weight"], start["stem.0.weight"], atol=1e-6)
    assert not torch.allclose(found["stem.1.weight"], start["stem.1.weight"], atol=1e-3)


def test_cells_inherit_no_weights():
    with pytest.raises(
        InvalidArchitectureError, match="of the space nasbench201 inherit no weights"
    ):
        operations_between(CELLS["nasbench201"], CELLS["nasbench201"], (1, 8, 8))


def short():
    return dataclasses.replace(DIGITS.protocol("digits/cells-small"), epochs=1)
