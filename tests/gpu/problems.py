"""Small networks and a task that needs no file: images of ten noisy patterns, in 256 values a
channel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from archive.architecture.graph import Architecture, Layer
from archive.trainer.datasets.splits import DataPart, Splits
from archive.trainer.tasks import registry
from archive.trainer.tasks.base import Task

SIZES = (1000, 400, 400)


def chain(words: str) -> Architecture:
    """Return a chain of layers, each given as `op/units`; pools have stride 2."""
    layers = [Layer("ip")]
    for word in words.split():
        op, _, units = word.partition("/")
        layers.append(Layer(op, int(units) if units else None, 2 if op.endswith("pool") else 1))

    layers.append(Layer("op"))
    return Architecture("cnn", layers, [(at, at + 1) for at in range(len(layers) - 1)])


SMALL = chain("conv3/16 max-pool res3/32 max-pool fc/32 softmax")


def load(protocol) -> Splits:
    """Return the parts: standardised bytes, as those of a data set."""
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 200, (10, 16, 16, 3))
    parts = []
    for n in (protocol.train, protocol.valid, protocol.test):
        targets = rng.integers(0, 10, n)
        raw = np.clip(patterns[targets] + rng.integers(0, 56, (n, 16, 16, 3)), 0, 255)
        parts.append(DataPart(np.moveaxis(((raw - 128) / 64).astype(np.float32), -1, 1), targets))

    return Splits(*parts)


def patterns(**changes) -> Task:
    """Return the task, with changes of its protocol."""
    own = registry.DIGITS.protocol("digits/1")
    sizes = dict(zip(("train", "valid", "test"), SIZES, strict=True))
    protocol = replace(
        own, **{"name": "patterns/1", "batch": 48, "epochs": 4, "patience": 9, **sizes, **changes}
    )
    return replace(
        registry.DIGITS,
        name="patterns",
        input_shape=(3, 16, 16),
        protocols=(protocol,),
        loader=load,
    )
