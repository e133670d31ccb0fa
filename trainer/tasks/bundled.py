"""The tasks whose data come with scikit-learn, `digits` and `diabetes`, with their protocols.

A new rule for a task is a new protocol beside the others; an existing protocol never changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from archive.trainer.protocols.base import SMALL_CELLS, TrainingProtocol
from archive.trainer.tasks.base import Task

if TYPE_CHECKING:
    from archive.trainer.datasets.scaling import Scaling
    from archive.trainer.datasets.splits import Splits


def _digits(protocol: TrainingProtocol) -> Splits:
    from archive.trainer.datasets import scikit_learn

    return scikit_learn.digits(protocol)


def _diabetes(protocol: TrainingProtocol) -> Splits:
    from archive.trainer.datasets import scikit_learn

    return scikit_learn.diabetes(protocol)


def _digits_scaling(protocol: TrainingProtocol) -> Scaling:
    from archive.trainer.datasets import scikit_learn

    return scikit_learn.digits_scaling(protocol)


def _diabetes_scaling(protocol: TrainingProtocol) -> Scaling:
    from archive.trainer.datasets import scikit_learn

    return scikit_learn.diabetes_scaling(protocol)


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
deep and narrow ones learn little in that time. The test images are those of `digits/1`; all others
validate, for a finer scale of values."""

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
    protocols=(_FEW_DIGITS, _DIGITS, _DIGIT_CELLS),
    cells=_DIGIT_CELLS.name,
    loader=_digits,
    scaling=_digits_scaling,
)

DIABETES = Task(
    name="diabetes",
    summary="progress of diabetes in 442 patients from 10 measurements (inside scikit-learn)",
    kind="regression",
    metric="mse",
    direction="minimise",
    input_shape=(10,),
    outputs=1,
    spaces=("mlp",),
    protocols=(
        TrainingProtocol(
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
        ),
    ),
    loader=_diabetes,
    scaling=_diabetes_scaling,
)
