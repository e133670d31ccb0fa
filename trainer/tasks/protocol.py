"""Protocols: every choice that a result depends on beside task, architecture and seed.

A protocol has a name that never changes its meaning: evaluations are comparable when task and protocol are. A changed
rule is a new protocol (`digits/2`), never another `digits/1`; a new kind of rule is a new field, whose default is what
was done before there was the field.

| name          | its rules                                                                                |
|---------------|------------------------------------------------------------------------------------------|
| `TASK/1`      | ours: good results of small networks soon, on a CPU; see the task's entry                |
| `TASK/nasbot` | those of NASBOT: section 5 and appendix C.2 of Kandasamy et al. 2018 (arXiv:1802.07191)  |
| `TASK/autokeras` | those of Auto-Keras: Jin, Song and Hu 2018 (arXiv:1806.10282), its split and when it stops |
| `NAME+morph`  | those of NAME, but networks inherit weights; see `archive.trainer.morphism.protocol`             |
| `TASK/long`, `TASK/small`, `TASK/jpeg` | ours with more epochs, on fewer images and briefly, on another edition  |
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Protocol:
    """Every choice that a result depends on beside task, architecture and seed.

    Attributes:
        name: Under which evaluations record it.
        train: Number of training inputs.
        valid: Number of inputs that choose the best epoch, and whose metric is the evaluation's value.
        test: Number of inputs that are looked at once, with the weights of the best epoch.
        split: `stratified` (each class in its share), `shuffled`, `held-out` (the test part is the publisher's own, the
            others are cut from the rest, each class in its share), or `given`: all three are the publisher's own.
        split_seed: Of the one split that all evaluations share.
        batch: Inputs in one step, but for a few less where the batches of an epoch are made equal.
        epochs: Most passes over the training inputs, or most epochs of `epoch_steps`.
        patience: Epochs without an improvement, as `convergence` says, after which training ends.
        optimiser: `adamw` or `sgd` (with momentum, Nesterov's form).
        learning_rate: Its peak.
        warmup: Share of the steps in which the learning rate rises linearly; it then falls along a cosine to zero.
        weight_decay: Decoupled in `adamw`, of weight matrices and kernels only.
        normalisation: `batch` or `none`; see `archive.trainer.nn.layers`.
        schedule: `cosine`, as `warmup` says, or `constant`: the learning rate is its peak at every step.
        momentum: Of `sgd`.
        loss: What the steps descend: `likelihood` (negative log-likelihood of the classes, mean squared error), or
            `absolute`, the mean absolute error of a regression. What is measured is the same with both.
        epoch_steps: Steps of an epoch, which goes through as many newly shuffled passes as they take, the last one cut
            off; None makes an epoch one pass.
        convergence: `patience` counts the epochs since the best validation metric. `threshold` counts those in a row
            whose validation loss is not lower by `threshold` than the lowest that counted (Auto-Keras).
        threshold: Of `convergence`.
        augmentation: Of training images: `none`; `shift`, by up to 4 pixels a side; `shift-flip`, mirrored half of the
            time as well.
        data: Edition of the data: `official`, another that the task offers, or the SHA-256 of a user's file.
        inherited_epochs: Most epochs of a network that begins with the weights of what it grew from; None: none does.
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
    optimiser: Literal["adamw", "sgd"]
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

    def as_dict(self) -> dict[str, Any]:
        """Return the choices as plain values, to record or show."""
        return asdict(self)
