"""The training loop: repeatable results, the best epoch, and clear errors."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from archive.errors import InvalidArchitectureError, TrainingError
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.evaluate import BestEpoch, evaluate
from archive.trainer.fit.train import Outcome, train
from archive.trainer.nn import builders
from archive.trainer.tasks import registry
from tests.support import faulty
from tests.support.networks.nets import TINY_CNN, TINY_MLP, net
from tests.support.strategies import relabelled

BRANCHES = net(
    "cnn",
    "conv3/8 conv3/12 conv5/12 max-pool avg-pool res3/16 fc/16 softmax softmax",
    [
        (0, 1),
        (1, 2),
        (1, 3),
        (2, 4),
        (3, 5),
        (4, 6),
        (5, 6),
        (6, 7),
        (7, 8),
        (6, 9),
        (8, 10),
        (9, 10),
    ],
)


DIGITS = registry.get("digits")


def short(task: str, **changes):
    return dataclasses.replace(registry.get(task).protocol(f"{task}/1"), **{"epochs": 3, **changes})


def same(a: Outcome, b: Outcome) -> bool:
    curves = (
        {name: values for name, values in o.curve.items() if name != "seconds"} for o in (a, b)
    )
    return (
        (a.value, a.metrics, a.epochs) == (b.value, b.metrics, b.epochs)
        and next(curves) == next(curves)
        and all(torch.equal(a.weights[name], b.weights[name]) for name in a.weights)
    )


@pytest.mark.parametrize(("task", "architecture"), [("digits", BRANCHES), ("diabetes", TINY_MLP)])
def test_one_seed_gives_one_result(task, architecture):
    first, again, other = (
        train(architecture, registry.get(task), short(task), seed=seed) for seed in (1, 1, 2)
    )
    assert same(first, again)
    assert not same(first, other)


def test_relabelled_networks_are_trained_alike():
    task = registry.get("digits")
    assert same(
        *(train(a, task, short("digits"), seed=1) for a in (BRANCHES, relabelled(BRANCHES, 3)))
    )


def test_digits_are_learned():
    outcome = train(TINY_CNN, DIGITS, DIGITS.protocol("digits/1"))
    assert outcome.value > 0.93
    assert outcome.metrics["test_accuracy"] > 0.92


def test_digits_are_learned_by_an_mlp():
    assert (
        train(net("mlp", "relu/64 crelu/32 linear"), DIGITS, DIGITS.protocol("digits/1")).value
        > 0.9
    )


def test_diabetes_is_learned():
    outcome = train(net("mlp", "relu/64 tanh/32 linear"), registry.get("diabetes"))
    assert outcome.value < 0.7
    assert outcome.metrics["test_mse"] < 0.7


def test_curve_has_one_entry_an_epoch_and_is_reported_as_it_grows():
    told = []
    outcome = train(TINY_MLP, registry.get("diabetes"), short("diabetes"), on_epoch=told.append)
    assert outcome.epochs == 3
    assert sorted(outcome.curve) == ["epoch", "seconds", "train_loss", "valid_loss", "valid_mse"]
    assert outcome.curve["epoch"] == [1.0, 2.0, 3.0]
    assert [{name: values[k] for name, values in outcome.curve.items()} for k in range(3)] == told


def test_the_value_is_that_of_the_saved_weights():
    task = registry.get("digits")
    protocol = short("digits", epochs=4)
    outcome = train(BRANCHES, task, protocol)
    network = builders.build(BRANCHES.canonical, task.form(protocol))
    network.load_state_dict(outcome.weights)
    splits = task.load(protocol)
    loss, accuracy = evaluate(network, Batches.of(splits.valid, torch.device("cpu")), task)
    assert accuracy == outcome.value
    assert loss == pytest.approx(outcome.metrics["valid_loss"], abs=1e-6)
    _, held_out = evaluate(network, Batches.of(splits.test, torch.device("cpu")), task)
    assert held_out == outcome.metrics["test_accuracy"]


def test_training_ends_when_patience_does():
    # At this rate nothing moves, so the first epoch stays among the best.
    protocol = short("digits", epochs=30, patience=2, learning_rate=1e-12, normalisation="none")
    outcome = train(TINY_CNN, registry.get("digits"), protocol)
    assert outcome.epochs <= outcome.metrics["best_epoch"] + 2 < 30


def test_the_loss_decides_between_equal_metrics():
    network = torch.nn.Linear(1, 1)
    best = BestEpoch(network, maximise=True)
    epochs = [(1, 0.5, 1.0), (2, 0.7, 0.9), (3, 0.7, 0.8), (4, 0.7, 0.8), (5, 0.6, 0.1)]
    for epoch, metric, loss in epochs:
        best.update(epoch, metric, loss)

    assert (best.epoch, best.metric, best.loss) == (3, 0.7, 0.8)
    smallest = BestEpoch(network, maximise=False)
    for epoch, metric, loss in epochs:
        smallest.update(epoch, metric, loss)

    assert smallest.epoch == 1


def test_batches_are_even_and_cover_all_inputs():
    part = Batches(torch.arange(65.0), torch.arange(65))
    protocol = short("digits", batch=32)
    batches = [targets for _, targets in part.epoch(protocol, torch.Generator().manual_seed(0))]
    assert sorted(map(len, batches)) == [21, 22, 22]
    assert sorted(torch.cat(batches).tolist()) == list(range(65))


def test_nan_loss_fails_with_its_epoch():
    with pytest.raises(TrainingError, match=r"training diverged: train_loss is nan in epoch 1"):
        train(TINY_MLP, faulty.faulty(faulty.has_holes))


def test_a_network_without_weights_fails_with_a_reason(monkeypatch):
    monkeypatch.setattr(builders, "build", lambda architecture, form, seed: torch.nn.Flatten())
    with pytest.raises(TrainingError, match="the network has no weights to train"):
        train(TINY_MLP, registry.get("diabetes"), short("diabetes"))


def test_infinite_loss_fails():
    protocol = short("diabetes", optimiser="sgd", learning_rate=1e6, warmup=0.0, epochs=5)
    with pytest.raises(TrainingError, match="training diverged"):
        train(TINY_MLP, registry.get("diabetes"), protocol)


def test_a_network_that_does_not_suit_the_task_is_refused():
    with pytest.raises(InvalidArchitectureError, match="needs images"):
        train(TINY_CNN, registry.get("diabetes"))
