"""A task: which of two interleaved half circles a point belongs to."""

from typing import TYPE_CHECKING

import numpy as np

from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks.base import Task

if TYPE_CHECKING:
    from archive.trainer.datasets.splits import Splits


def _moons(protocol: TrainingProtocol) -> "Splits":
    # Loads torch, which naming the task must not.
    from archive.trainer.datasets.scikit_learn import split

    rng = np.random.default_rng(0)
    n = protocol.train + protocol.valid + protocol.test
    angles = rng.uniform(0, np.pi, n)
    classes = np.arange(n) % 2
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = np.where(classes[:, None] == 1, [1.0, 0.5] - points, points) + rng.normal(
        0, 0.2, (n, 2)
    )
    return split(points, classes.astype(np.int64), protocol, per_feature=True)


TWO_MOONS = Task(
    name="two-moons",
    summary="two interleaved half circles with noise, 1,000 points in the plane",
    kind="classification",
    metric="accuracy",
    direction="maximise",
    input_shape=(2,),
    outputs=2,
    spaces=("mlp",),
    protocols=(
        TrainingProtocol(
            name="two-moons/1",
            train=600,
            valid=200,
            test=200,
            split="stratified",
            split_seed=0,
            batch=64,
            epochs=5,
            patience=5,
            optimiser="adamw",
            learning_rate=3e-3,
            warmup=0.2,
            weight_decay=1e-2,
            normalisation="none",
        ),
    ),
    loader=_moons,
)
