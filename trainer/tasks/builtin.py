"""The built-in tasks with their protocols: data of scikit-learn, and data that are downloaded.

A new rule for a task is a new protocol beside the others; an existing protocol never changes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from archive.trainer.protocols.base import SMALL_CELLS, TrainingProtocol
from archive.trainer.tasks.base import Task

if TYPE_CHECKING:
    from archive.trainer.datasets.splits import Scaling, Splits


def _load_bundled(name: str, protocol: TrainingProtocol) -> Splits:
    from archive.trainer.datasets import scikit_learn

    return scikit_learn.load(name, protocol)


def _scaling_of_bundled(name: str, protocol: TrainingProtocol) -> Scaling:
    from archive.trainer.datasets import scikit_learn

    return scikit_learn.scaling_of(name, protocol)


def _load_published(name: str, protocol: TrainingProtocol) -> Splits:
    from archive.trainer.datasets import readers

    return readers.load(name, protocol)


def _scaling_of_published(name: str, protocol: TrainingProtocol) -> Scaling:
    from archive.trainer.datasets import readers

    return readers.scaling(name, protocol)


def _fetch(name: str, protocol: TrainingProtocol) -> None:
    from archive.trainer.datasets import sources

    sources.locate(name, protocol.data)


_DIGITS = TrainingProtocol(
    name="digits/1",
    train=1078,
    valid=359,
    test=360,
    split="stratified",
    split_seed=0,
    batch=64,
    epochs=16,
    patience=6,
    optimiser="sgd",
    learning_rate=0.03,
    warmup=0.3,
    weight_decay=5e-4,
    normalisation="batch",
)
_FEW_DIGITS = replace(
    _DIGITS,
    name="digits/small",
    train=200,
    valid=1237,
    batch=32,
    epochs=4,
    patience=4,
    learning_rate=0.06,
)
"""28 steps on 200 images tell networks apart, which `digits/1` trains to nearly the same accuracy:
deep and narrow ones learn little in that time. The test images are the same as in `digits/1`; all
others validate, for a finer scale of values."""

_LONG_DIGITS = replace(_DIGITS, name="digits/long", epochs=64, patience=24)
_DIGIT_CELLS = replace(
    _FEW_DIGITS, name="digits/cells-small", epochs=8, patience=8, network=SMALL_CELLS
)

DIGITS = Task(
    name="digits",
    summary="handwritten digits, 1,797 images of 8 x 8 pixels in 10 classes (inside scikit-learn)",
    kind="classification",
    metric="accuracy",
    direction="maximise",
    input_shape=(1, 8, 8),
    outputs=10,
    spaces=("cnn", "mlp"),
    protocols=(_FEW_DIGITS, _DIGITS, _LONG_DIGITS, _DIGIT_CELLS),
    cells=_DIGIT_CELLS.name,
    loader=partial(_load_bundled, "digits"),
    scaling=partial(_scaling_of_bundled, "digits"),
)

_DIABETES = TrainingProtocol(
    name="diabetes/1",
    train=265,
    valid=88,
    test=89,
    split="shuffled",
    split_seed=0,
    batch=32,
    epochs=60,
    patience=15,
    optimiser="adamw",
    learning_rate=1e-3,
    warmup=0.2,
    weight_decay=1e-2,
    normalisation="none",
)
_LONG_DIABETES = replace(_DIABETES, name="diabetes/long", epochs=240, patience=60)

DIABETES = Task(
    name="diabetes",
    summary="progress of diabetes in 442 patients from 10 measurements (inside scikit-learn)",
    kind="regression",
    metric="mse",
    direction="minimise",
    input_shape=(10,),
    outputs=1,
    spaces=("mlp",),
    protocols=(_DIABETES, _LONG_DIABETES),
    loader=partial(_load_bundled, "diabetes"),
    scaling=partial(_scaling_of_bundled, "diabetes"),
)


def _uci(name: str, summary: str, features: int, ours: TrainingProtocol, longer: int) -> Task:
    """Return a regression of NASBOT's section 5: our protocol, a longer one, and NASBOT's."""
    long = replace(ours, name=f"{name}/long", epochs=longer, patience=longer, epoch_steps=None)
    return Task(
        name=name,
        summary=summary,
        kind="regression",
        metric="mse",
        direction="minimise",
        input_shape=(features,),
        outputs=1,
        spaces=("mlp",),
        protocols=(ours, long, _nasbot(name, ours)),
        loader=partial(_load_published, name),
        scaling=partial(_scaling_of_published, name),
        fetch=partial(_fetch, name),
    )


def _nasbot(name: str, ours: TrainingProtocol) -> TrainingProtocol:
    """Return the protocol of NASBOT: 20,000 SGD steps at a constant rate.

    There is a validation every 100 steps. The paper does not name the loss; the authors' code
    (kirthevasank/nasbot, cg/run_tensorflow.py) minimises the absolute error.
    """
    return replace(
        ours,
        name=f"{name}/nasbot",
        batch=256,
        epochs=200,
        epoch_steps=100,
        patience=200,
        optimiser="sgd",
        momentum=0.0,
        learning_rate=1e-5,
        schedule="constant",
        warmup=0.0,
        weight_decay=0.0,
        normalisation="none",
        loss="absolute",
    )


_NAVAL = TrainingProtocol(
    name="naval/1",
    train=7160,
    valid=2387,
    test=2387,
    split="shuffled",
    split_seed=0,
    batch=256,
    epochs=4,
    patience=4,
    optimiser="adamw",
    learning_rate=5e-3,
    warmup=0.2,
    weight_decay=1e-4,
    normalisation="batch",
)
_PROTEIN = replace(
    _NAVAL,
    name="protein/1",
    train=27438,
    valid=9146,
    test=9146,
    epochs=2,
    patience=2,
    epoch_steps=40,
)

NAVAL = _uci(
    "naval",
    "decay of a frigate's gas turbine compressor from 16 measurements, 11,934 simulated states "
    "(UCI)",
    16,
    _NAVAL,
    longer=20,
)

PROTEIN = _uci(
    "protein",
    "how far a decoy of a protein lies from its native fold (RMSD) from 9 properties, 45,730 "
    "decoys (UCI, CASP)",
    9,
    _PROTEIN,
    longer=12,
)


def _images(
    name: str,
    summary: str,
    shape: tuple[int, int, int],
    ours: TrainingProtocol,
    *others: TrainingProtocol,
) -> Task:
    """Return a classification of images in ten classes: our protocols, and Auto-Keras's."""
    cells = replace(_small(ours, f"{name}/cells-small"), network=SMALL_CELLS)
    return Task(
        name=name,
        summary=summary,
        kind="classification",
        metric="accuracy",
        direction="maximise",
        input_shape=shape,
        outputs=10,
        spaces=("cnn", "mlp"),
        protocols=(ours, *others, _autokeras(name, ours.train + ours.valid + ours.test), cells),
        cells=cells.name,
        loader=partial(_load_published, name),
        scaling=partial(_scaling_of_published, name),
        fetch=partial(_fetch, name),
    )


def _autokeras(name: str, count: int) -> TrainingProtocol:
    """Return the protocol of Auto-Keras for a task with so many images.

    It splits all images 60/20/20 and trains until the validation loss has not fallen by a
    ten-thousandth for five epochs. These, Adam at its usual rate, 128 images a step and 200 epochs
    at most are the constants of their code (Auto-Keras 0.4, autokeras/constant.py), which augments
    a little more than ours.
    """
    return TrainingProtocol(
        name=f"{name}/autokeras",
        train=count * 6 // 10,
        valid=count // 5,
        test=count // 5,
        split="stratified",
        split_seed=0,
        batch=128,
        epochs=200,
        patience=5,
        optimiser="adamw",
        learning_rate=1e-3,
        warmup=0.0,
        weight_decay=0.0,
        normalisation="batch",
        schedule="constant",
        convergence="threshold",
        threshold=1e-4,
        augmentation="shift-flip",
    )


_GREY = TrainingProtocol(
    name="mnist/1",
    train=50000,
    valid=10000,
    test=10000,
    split="held-out",
    split_seed=0,
    batch=128,
    epochs=8,
    patience=4,
    optimiser="sgd",
    learning_rate=0.05,
    warmup=0.25,
    weight_decay=5e-4,
    normalisation="batch",
)
_FASHION = replace(_GREY, name="fashion-mnist/1")
_CIFAR = replace(
    _GREY, name="cifar10/1", train=40000, epochs=16, patience=8, augmentation="shift-flip"
)
_CIFAR_NASBOT = replace(
    _CIFAR,
    name="cifar10/nasbot",
    batch=64,
    epochs=60,
    epoch_steps=400,
    patience=60,
    learning_rate=1e-4,
    warmup=0.0,
    weight_decay=0.0,
    normalisation="none",
    schedule="constant",
    momentum=0.0,
    augmentation="none",
)
"""Appendix C.2:

24,000 SGD steps of 64 images, a validation every 400. (Section 5 says 32 images.)
"""


def _small(protocol: TrainingProtocol, name: str) -> TrainingProtocol:
    """Return a protocol on a subset of the images: half a minute for a small network on a CPU."""
    return replace(
        protocol, name=name, train=3000, valid=1500, test=1500, batch=64, epochs=5, patience=5
    )


MNIST = _images(
    "mnist",
    "handwritten digits, 70,000 images of 28 x 28 pixels in 10 classes",
    (1, 28, 28),
    _GREY,
    _small(_GREY, "mnist/small"),
)

FASHION_MNIST = _images(
    "fashion-mnist",
    "articles of clothing, 70,000 images of 28 x 28 pixels in 10 classes",
    (1, 28, 28),
    _FASHION,
    _small(_FASHION, "fashion-mnist/small"),
)

CIFAR10 = _images(
    "cifar10",
    "animals and vehicles, 60,000 colour images of 32 x 32 pixels in 10 classes",
    (3, 32, 32),
    _CIFAR,
    _small(_CIFAR, "cifar10/small"),
    _CIFAR_NASBOT,
    replace(_CIFAR, name="cifar10/jpeg", data="jpeg"),
    _small(replace(_CIFAR, data="jpeg"), "cifar10/jpeg-small"),
)
"""`jpeg` is a lossy copy of the images: other data, and therefore other protocols."""
