"""Benchmark of inherited weights: a chain of morphed networks against each of them trained alone.

    first ── 15 epochs ──> child 1 ── 3 ──> child 2 ── 3 ──> … ── 3 ──> child 8         with inherited weights
    child 1 ── 15 ──>      child 2 ── 15 ──> …                 child 8 ── 15 ──>        each from its seed

Every child is its parent after one operation of `archive.spaces.morphism`; the chain has all kinds
of them. Networks and data are small, so that the benchmark takes minutes on one core: Fashion-MNIST
under `fashion-mnist/small`, with other epochs, and images shifted by some pixels, without which
every network of the chain overfits to 5,000 images. The children inherit and train by the rules of
`fashion-mnist/small+morph`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import torch

from archive.architecture.graph import Architecture, Layer
from archive.benchmarks.measurement import Figure
from archive.spaces import morphism
from archive.trainer.fit.train import train
from archive.trainer.morphism import inherited_weights
from archive.trainer.nn import builders
from archive.trainer.protocols.base import (
    TrainingProtocol,
    add_inheritance,
    inherited_seed,
    shorten,
)
from archive.trainer.recipes.run import Outcome
from archive.trainer.tasks import registry
from archive.trainer.tasks.base import Task

EPOCHS = 15
"""Epochs of a network that starts from its seed; children train for a share of it by the rule of
`+morph`."""

Report = Callable[[str], None]


def measure(
    epochs: int = EPOCHS, seed: int = 0, report: Report = lambda line: None
) -> list[Figure]:
    """Train the chain, then each of its networks alone, and compare their accuracies.

    Args:
        epochs: Number of epochs of a network that starts from its seed.
        seed: Seed of all networks.
        report: Receives a line on each trained network.

    Raises:
        SettingsError: The data are missing and cannot be fetched.
    """
    task = registry.get("fashion-mnist")
    assert isinstance(task, Task)
    small = task.protocol("fashion-mnist/small")
    alone = replace(small, epochs=epochs, patience=epochs, augmentation="shift")
    networks = list(chain())
    fresh = [_trained(one, task, alone, seed, report) for one in networks]
    children, differences = _inherited(networks, fresh[0], task, alone, seed, report)
    return list(_figures(fresh, children, differences))


def chain() -> Iterator[Architecture]:
    """Yield a small convolutional network, then eight that grow from it one by one."""
    inner = [Layer("conv3", 8, 2), Layer("conv3", 16, 2), Layer("fc", 32)]
    layers = [Layer("ip"), *inner, Layer("softmax"), Layer("op")]
    network = Architecture("cnn", layers, [(u, u + 1) for u in range(len(layers) - 1)])
    yield network
    grow: list[Callable[[Architecture], Architecture]] = [
        lambda one: morphism.widen(one, _at(one, "conv3", 0)),
        lambda one: morphism.deepen(one, _at(one, "conv3", 1), "conv3"),
        lambda one: morphism.skip_concat(one, _at(one, "conv3", 0), _at(one, "fc", 0)),
        lambda one: morphism.widen(one, _at(one, "fc", 0)),
        lambda one: morphism.skip_add(one, _at(one, "conv3", 1), "res3"),
        lambda one: morphism.deepen(one, _at(one, "fc", 0), "fc"),
        lambda one: morphism.widen(one, _at(one, "conv3", 2)),
        lambda one: morphism.skip_concat(one, _at(one, "conv3", 1), _at(one, "fc", 0)),
    ]
    for operation in grow:
        network = operation(network)
        yield network


def _at(network: Architecture, op: str, number: int) -> int:
    return [u for u, layer in enumerate(network.layers) if layer.op == op][number]


def _trained(
    network: Architecture, task: Task, protocol: TrainingProtocol, seed: int, report: Report
) -> Outcome:
    outcome = train(network, task, protocol, seed=seed)
    report(
        f"{network!r} alone: {outcome.value:.4f} after {outcome.epochs} epochs, "
        f"{outcome.seconds:.0f} s"
    )
    return outcome


def _inherited(
    networks: list[Architecture],
    first: Outcome,
    task: Task,
    alone: TrainingProtocol,
    seed: int,
    report: Report,
) -> tuple[list[Outcome], list[float]]:
    """Return the outcomes of the children, and the change of each one's outputs from its parent's
    before training.
    """
    protocol = add_inheritance(alone)
    inputs = torch.from_numpy(task.load(alone).valid.inputs[:256])
    learned = first.weights
    outcomes = []
    differences = []
    for parent, child in pairwise(networks):
        begun = inherited_weights.adapt(parent.canonical, learned, child, task, protocol, seed)
        ends, begins = (
            _outputs(*pair, task, alone, inputs) for pair in ((parent, learned), (child, begun))
        )
        differences.append(float((ends - begins).abs().max()))
        own = inherited_seed(seed, child.key)
        outcome = train(child, task, shorten(protocol), seed=own, initial=begun)
        report(
            f"{child!r} inherited: {outcome.value:.4f} after {outcome.epochs} epochs, "
            f"{outcome.seconds:.0f} s"
        )
        outcomes.append(outcome)
        learned = outcome.weights

    return outcomes, differences


@torch.inference_mode()
def _outputs(
    network: Architecture,
    learned: inherited_weights.StateDict,
    task: Task,
    protocol: TrainingProtocol,
    inputs: torch.Tensor,
) -> torch.Tensor:
    built = builders.build(network.canonical, task.form(protocol))
    built.load_state_dict(learned)
    # Logits differ by a constant where the number of decision layers does.
    outputs: torch.Tensor = built.eval()(inputs).log_softmax(dim=1)
    return outputs


def _figures(
    fresh: list[Outcome], children: list[Outcome], differences: list[float]
) -> Iterator[Figure]:
    """Yield the comparison; it counts all epochs of the chain, with those of its first network."""
    alone = fresh[1:]
    first = fresh[0]
    spent = first.epochs + sum(one.epochs for one in children)
    apart = sum(one.epochs for one in alone)
    yield Figure(
        "largest change of an output by an operation, before training",
        max(differences),
        "",
        "<= 1e-4",
    )
    for name, key in (("validation", None), ("test", "test_accuracy")):
        reached, reference = (
            fmean(one.value if key is None else one.metrics[key] for one in outcomes)
            for outcomes in (children, alone)
        )
        yield Figure(
            f"mean {name} accuracy of 8 children that inherit",
            reached,
            "",
            f">= {reference:.4f}",
            reference,
        )

    better = sum(child.value >= one.value for child, one in zip(children, alone, strict=True))
    yield Figure("children that reach what they reach alone, on validation", better, "of 8")
    yield Figure(
        "accuracy of the last child, on validation", children[-1].value, "", None, alone[-1].value
    )
    yield Figure("epochs of the whole chain", spent, "epochs", f"<= {apart // 3}", apart)
    seconds = first.seconds + sum(one.seconds for one in children)
    yield Figure(
        "seconds of the whole chain", seconds, "s", None, sum(one.seconds for one in alone)
    )
