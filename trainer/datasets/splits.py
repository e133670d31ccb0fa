"""The three parts of a data set as arrays: loaded by a task, copied to the device by a training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Inputs = NDArray[np.float32]
Targets = NDArray[np.int64] | NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DataPart:
    """Inputs (n, …) float32 and targets (n,): int64 classes, or float32 values."""

    inputs: Inputs
    targets: Targets

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.targets)


@dataclass(frozen=True, slots=True)
class Splits:
    """The three parts of a data set."""

    train: DataPart
    valid: DataPart
    test: DataPart
