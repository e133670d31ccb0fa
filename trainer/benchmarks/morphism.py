"""How far weights that carry over shorten training: a chain of grown networks against each of them trained alone.

    first ── 15 epochs ──> child 1 ── 3 ──> child 2 ── 3 ──> … ── 3 ──> child 8         with inherited weights
    child 1 ── 15 ──>      child 2 ── 15 ──> …                 child 8 ── 15 ──>        each from its seed

Every child is its parent after one operation of `archive.spaces.morphism`; all kinds of them are there. Networks and
data are small, so that all of it takes minutes on one core: Fashion-MNIST under `fashion-mnist/small`, with other
epochs, and images that are shifted by some pixels, without which every network of the chain learns 5,000 images by
heart and has nothing left to learn. What children inherit, and for how long they train, is the rule of
`fashion-mnist/small+morph`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import torch

from archive.architecture.graph import Architecture, Layer
from archive.measurement import Figure
from archive.spaces import morphism
from archive.trainer.fit.train import Outcome, train
from archive.trainer.morphism import inherited_weights
from archive.trainer.morphism import protocol as inheriting
from archive.trainer.nn.network import Network
from archive.trainer.tasks import registry
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.protocol import Protocol

EPOCHS = 15
"""Of a network that begins with its seed; that children train for a third of it, or less, is the rule of `+morph`."""

Say = Callable[[str], None]


def measure(epochs: int = EPOCHS, seed: int = 0, say: Say = lambda line: None) -> list[Figure]:
    """Train the chain, then each of its networks alone, and compare what they reach.

    Args:
        epochs: Of a network that begins with its seed.
        seed: Of all networks.
        say: Is told of each network when it is trained.

    Raises:
        SettingsError: The data are not here and cannot be fetched.
    """
    task = registry.get("fashion-mnist")
    assert isinstance(task, Task)
    small = task.protocol("fashion-mnist/small")
    alone = replace(small, epochs=epochs, patience=epochs, augmentation="shift")
    networks = list(chain())
    fresh = [_trained(one, task, alone, seed, say) for one in networks]
    children, differences = _inherited(networks, fresh[0], task, alone, seed, say)
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


def _trained(network: Architecture, task: Task, protocol: Protocol, seed: int, say: Say) -> Outcome:
    outcome = train(network, task, protocol, seed=seed)
    say(f"{network!r} alone: {outcome.value:.4f} after {outcome.epochs} epochs, {outcome.seconds:.0f} s")
    return outcome


def _inherited(
    networks: list[Architecture], first: Outcome, task: Task, alone: Protocol, seed: int, say: Say
) -> tuple[list[Outcome], list[float]]:
    """Return what the children reach, one after the other, and how far each begins from where its parent ended."""
    protocol = inheriting.extended(alone)
    inputs = torch.from_numpy(task.load(alone).valid.inputs[:256])
    learned, outcomes, differences = first.weights, [], []
    for parent, child in pairwise(networks):
        begun = inherited_weights.begin(parent.canonical, learned, child, task, protocol, seed)
        ends, begins = (_outputs(*pair, task, alone, inputs) for pair in ((parent, learned), (child, begun)))
        differences.append(float((ends - begins).abs().max()))
        own = inheriting.seed_of(seed, child.key)
        outcome = train(child, task, inheriting.shortened(protocol), seed=own, initial=begun)
        say(f"{child!r} inherited: {outcome.value:.4f} after {outcome.epochs} epochs, {outcome.seconds:.0f} s")
        outcomes.append(outcome)
        learned = outcome.weights
    return outcomes, differences


@torch.inference_mode()
def _outputs(
    network: Architecture, learned: inherited_weights.Weights, task: Task, protocol: Protocol, inputs: torch.Tensor
) -> torch.Tensor:
    normalise = protocol.normalisation == "batch"
    built = Network(network.canonical, task.input_shape, task.outputs, task.kind, normalise=normalise)
    built.load_state_dict(learned)
    outputs: torch.Tensor = built.eval()(inputs)
    return outputs


def _figures(fresh: list[Outcome], children: list[Outcome], differences: list[float]) -> Iterator[Figure]:
    """Yield the comparison; all epochs of the chain count, those of its first network too."""
    alone, first = fresh[1:], fresh[0]
    spent, reference = first.epochs + sum(one.epochs for one in children), sum(one.epochs for one in alone)
    yield Figure("largest change of an output by an operation, before training", max(differences), "", "<= 1e-4")
    for name, key in (("validation", None), ("test", "test_accuracy")):
        reached, wanted = (
            fmean(one.value if key is None else one.metrics[key] for one in outcomes) for outcomes in (children, alone)
        )
        yield Figure(f"mean {name} accuracy of 8 children that inherit", reached, "", f">= {wanted:.4f}", wanted)
    better = sum(child.value >= one.value for child, one in zip(children, alone, strict=True))
    yield Figure("children that reach what they reach alone, on validation", better, "of 8")
    yield Figure("accuracy of the last child, on validation", children[-1].value, "", None, alone[-1].value)
    yield Figure("epochs of the whole chain", spent, "epochs", f"<= {reference // 3}", reference)
    seconds = first.seconds + sum(one.seconds for one in children)
    yield Figure("seconds of the whole chain", seconds, "s", None, sum(one.seconds for one in alone))
