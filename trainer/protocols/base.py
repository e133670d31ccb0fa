"""Training protocols: every choice that a result depends on beside task, architecture and seed.

The meaning of a protocol's name never changes: evaluations with the same task and protocol are
comparable. A changed rule is a new protocol (`digits/2`), never another `digits/1`; a new kind of
rule is a new field; its default is the behaviour without it.

| name                    | its rules                                                            |
|-------------------------|----------------------------------------------------------------------|
| `TASK/1`                | ours: good results of small networks in a short time on a CPU        |
| `TASK/long`             | ours with more epochs                                                |
| `TASK/small`            | ours on fewer images and briefly                                     |
| `TASK/jpeg`             | ours on another edition of the data                                  |
| `TASK/nasbot`           | NASBOT's: section 5 and appendix C.2 of Kandasamy et al. 2018        |
|                         | (arXiv:1802.07191)                                                   |
| `TASK/autokeras`        | split and early stopping of Auto-Keras: Jin, Song and Hu 2018        |
|                         | (arXiv:1806.10282)                                                   |
| `TASK/cells-small`      | `TASK/small` for spaces of cells, with few channels: `SMALL_CELLS`   |
| `TEXT/8M/muon/mup`      | another budget, optimiser or scaling by width of a task on text      |
|                         | (`archive.trainer.tasks.text_variants`)                              |
| `NAME+morph`            | NAME with inherited weights                                          |
| `NAME+recipe:RECIPE`    | the data and the length of NAME, trained by a recipe                 |
|                         | (`archive.trainer.recipes`)                                          |
| `NAME+objective:METRIC` | the trainings of NAME, valued by another metric                      |
|                         | (`archive.store.protocol_names`)                                     |

`digits/1+morph` is `digits/1` with one more rule; every protocol has such a variant. A network that
descends from another one in the archive (`archive.store.lineage`) by operations that keep its
function (`archive.trainer.morphism.feasibility`) inherits the weights of the nearest such ancestor
that was trained on the same task, under the same protocol with or without `+morph`. It then trains
for a fifth of the epochs, which the schedule spans, with another seed (`inherited_seed`). All other
networks start from the study's seed, and train under `digits/1`.

A value then measures a network after all the training of its ancestors, as in Auto-Keras, and
depends on which ancestors there were. Values are therefore comparable only under one `+morph`
protocol. The evaluation's environment records the inherited weights under `inherited`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from archive.errors import UsageError
from archive.store.protocol_names import DEFAULT_RECIPE, MORPH

SMALL_CELLS = {"channels": 8, "cells": 1, "norm_momentum": 0.1, "auxiliary": 0.0, "drop_path": 0.0}
"""Network around a cell that trains in seconds on a CPU.

The statistics of its normalisations follow in few steps, and it needs no regularisation."""

INHERITED_SHARE = 0.2
"""Share of a protocol's epochs for a network with inherited weights.

The learning rate keeps its peak: with a lower one, chains of networks hardly improve."""


TRAINING_FLOPS = 6
"""Operations of a training for each multiply-add of a forward pass.

A multiply-add is two operations, and a backward pass costs two forward passes."""


@dataclass(frozen=True, slots=True)
class TrainingProtocol:
    """Every choice that a result depends on beside task, architecture and seed.

    Attributes:
        name: Name in evaluations.
        train: Number of training inputs.
        valid: Number of inputs that choose the best epoch; their metric is the evaluation's value.
        test: Number of test inputs, evaluated once with the weights of the best epoch.
        split: `stratified` (by class), `shuffled`, `held-out` (the test part is the publisher's,
            the others are cut from the rest, stratified by class), or `given`: all three parts are
            the publisher's.
        split_seed: Seed of the one split that all evaluations share.
        batch: Largest batch; the batches of an epoch have equal sizes, within one.
        epochs: Largest number of passes over the training inputs, or of epochs of `epoch_steps`.
        patience: Number of epochs without an improvement, in the sense of `convergence`, after
            which training ends.
        optimiser: `adamw`, `sgd` (with momentum, Nesterov's form), or `muon` for the hidden matrices
            and `adamw` for all else.
        learning_rate: Peak of the learning rate.
        warmup: Share of the steps in which the learning rate rises linearly; it then falls along a
            cosine to zero.
        weight_decay: Weight decay of matrices and kernels, decoupled in `adamw`.
        normalisation: `batch` or `none`; see `archive.trainer.nn.layers`.
        schedule: `cosine`, with `warmup`, or `constant`: the learning rate is its peak at every
            step.
        momentum: Momentum of `sgd`.
        loss: Training loss: `likelihood` (negative log-likelihood of the classes, mean squared
            error), or `absolute`, the mean absolute error of a regression. The evaluation loss is
            the same with both.
        epoch_steps: Number of steps in an epoch, over as many newly shuffled passes as needed, the
            last one cut off; None makes an epoch one pass.
        convergence: `patience` counts the epochs since the best validation metric. `threshold`
            counts those in a row whose validation loss is not lower by `threshold` than the lowest
            that counted (Auto-Keras).
        threshold: Threshold of `convergence`.
        augmentation: Augmentation of training images: `none`; `shift`, by up to 4 pixels a side;
            `shift-flip`, mirrored half of the time as well.
        data: Edition of the data: `official`, another edition of the task, or the SHA-256 of a
            user's file.
        class_weights: Weights of the classes in the training loss: `none`, or `balanced`: a class
            weighs n / (classes * its rows) by its rows in the training part. The evaluation loss
            and the metric are without weights.
        preparation: What a reader made of a user's file before the split and the standardisation,
            as JSON values that must not be changed: kinds of columns, gaps, size of images; of text the
            tokens of a sequence, `context`.
        network: Options of the network around the architecture, by name (`archive.trainer.nn`), as
            JSON values that must not be changed. A builder has a default for each of its options.
        recipe: Name of the recipe. All but the default one follow the other choices as far as they
            document it; the data are the same.
        gradient_norm: Largest L2 norm of the gradient of a step, to which longer ones are scaled;
            None for no bound.
        inherited_epochs: Largest number of epochs of a network with inherited weights; None: no
            network inherits.
        flops: Floating-point operations of a whole training on text, from which the steps of an epoch
            follow for each network (`sized`); None where all networks take the same steps.
    """

    name: str
    train: int
    valid: int
    test: int
    split: Literal["stratified", "shuffled", "held-out", "given"]
    split_seed: int
    batch: int
    epochs: int
    patience: int
    optimiser: Literal["adamw", "sgd", "muon"]
    learning_rate: float
    warmup: float
    weight_decay: float
    normalisation: Literal["batch", "none"]
    schedule: Literal["cosine", "constant"] = "cosine"
    momentum: float = 0.9
    loss: Literal["likelihood", "absolute"] = "likelihood"
    epoch_steps: int | None = None
    convergence: Literal["patience", "threshold"] = "patience"
    threshold: float = 0.0
    augmentation: Literal["none", "shift", "shift-flip"] = "none"
    data: str = "official"
    inherited_epochs: int | None = None
    recipe: str = DEFAULT_RECIPE
    network: Mapping[str, Any] = field(default_factory=dict, hash=False)
    class_weights: Literal["none", "balanced"] = "none"
    preparation: Mapping[str, Any] = field(default_factory=dict, hash=False)
    gradient_norm: float | None = None
    flops: float | None = None

    @property
    def tokens(self) -> int | None:
        """Tokens of a whole training on text; None for other data."""
        length = self.preparation.get("context")
        if length is None or self.epoch_steps is None:
            return None

        return int(self.epochs * self.epoch_steps * self.batch * length)

    def as_dict(self) -> dict[str, Any]:
        """Return the choices as plain values, to record or show.

        A file that needed no preparation has none in its record, as before there was any; likewise
        the bound of the gradients and the operations.
        """
        choices = asdict(self)
        if self.flops is None:
            del choices["flops"]

        if self.gradient_norm is None:
            del choices["gradient_norm"]

        if not choices["preparation"]:
            del choices["preparation"]

        return choices


def add_inheritance(protocol: TrainingProtocol) -> TrainingProtocol:
    """Return the `+morph` variant of a protocol."""
    epochs = max(1, math.ceil(INHERITED_SHARE * protocol.epochs))
    return replace(protocol, name=protocol.name + MORPH, inherited_epochs=epochs)


def inherited_seed(seed: int, key: str) -> int:
    """Return the seed of a trial with inherited weights, by the study's seed and the network's key.

    With the study's seed, which its ancestors had, the same batches would recur with the same
    augmentation: a chain of networks would overfit to these few.
    """
    return int.from_bytes(hashlib.sha256(f"{seed} {key}".encode()).digest()[:4], "big")


def shorten(protocol: TrainingProtocol) -> TrainingProtocol:
    """Return the protocol of a network with inherited weights, with fewer epochs."""
    epochs = protocol.epochs if protocol.inherited_epochs is None else protocol.inherited_epochs
    flops = protocol.flops
    if flops is not None:
        flops *= epochs / protocol.epochs

    return replace(protocol, epochs=epochs, flops=flops)


def sized(protocol: TrainingProtocol, multiply_adds: float) -> TrainingProtocol:
    """Return the protocol of one network, whose steps use up the operations of its budget.

    Args:
        protocol: Protocol with a budget in operations.
        multiply_adds: Multiply-adds of a forward pass of one sequence.

    Raises:
        UsageError: The budget is less than half a step an epoch.
    """
    assert protocol.flops is not None
    least = TRAINING_FLOPS * multiply_adds * protocol.batch * protocol.epochs
    steps = round(protocol.flops / least)
    if not steps:
        raise UsageError(
            f"{protocol.name} allows {protocol.flops:.3g} operations, and {protocol.epochs} epochs "
            f"of one step of this network take {least:.3g}: take a protocol with more"
        )

    return replace(protocol, epoch_steps=steps)
