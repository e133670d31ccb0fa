"""Parts of a data set as arrays, with their scaling and the check of a loader's result.

A task loads them, a training copies them to its device. They are standardised:

    x = (raw - mean) / deviation        of each channel of an image, or each feature

Means and deviations come from the training part. In the data set's own unit, a standardised target
y of a regression is y * deviation + mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import TrainingError

Inputs = NDArray[np.float32] | NDArray[np.int64]
Targets = NDArray[np.int64] | NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DataPart:
    """Inputs (n, …) float32 and targets (n,): int64 classes, or float32 values.

    Of text, both are (n, length) int64: tokens, and the tokens that follow them.
    """

    inputs: Inputs
    targets: Targets

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.targets)


@dataclass(frozen=True, slots=True)
class Splits:
    """The three parts of a data set.

    Attributes:
        train: Training part.
        valid: Validation part.
        test: Test part.
        target: Mean and deviation of the target of a regression before it was standardised; None in
            a classification, and where they are not known.
    """

    train: DataPart
    valid: DataPart
    test: DataPart
    target: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Scaling:
    """Standardisation of a task's data by its training part.

    Attributes:
        mean: Mean of each channel, or each feature; one number stands for all of them.
        deviation: Standard deviation likewise.
        target: Mean and deviation of the target of a regression; None in a classification.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    target: tuple[float, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        return {
            "mean": list(self.mean),
            "deviation": list(self.deviation),
            "target": self.target and list(self.target),
        }


def check_splits(
    splits: Any,
    task: str,
    *,
    classification: bool,
    input_shape: tuple[int, ...],
    outputs: int,
    tokens: bool = False,
) -> Splits:
    """Check the result of a task's loader, which may come from another package, and return it.

    Args:
        splits: The result.
        task: Name of the task, for messages.
        classification: Whether the targets are classes.
        input_shape: Shape of one input.
        outputs: Number of classes.
        tokens: Whether inputs and targets are tokens.

    Raises:
        TrainingError: It is no `Splits`, or an array differs from the task's description.
    """
    if not isinstance(splits, Splits):
        raise TrainingError(
            f"the loader of the task {task} must return Splits, got {type(splits).__name__}"
        )

    for name in ("train", "valid", "test"):
        part: DataPart = getattr(splits, name)
        fault = _array_fault(part, classification, tokens) or _content_fault(
            part, input_shape, outputs if classification or tokens else None, tokens=tokens
        )
        if fault is not None:
            raise TrainingError(
                f"the loader of the task {task} returns a part {name} whose {fault}"
            )

    return splits


def _array_fault(part: DataPart, classification: bool, tokens: bool) -> str | None:
    """Return the fault of an array's type as the end of a message; None without one."""
    whole = classification or tokens
    dtypes = {
        "inputs": np.int64 if tokens else np.float32,
        "targets": np.int64 if whole else np.float32,
    }
    for name, dtype in dtypes.items():
        array = getattr(part, name)
        if not isinstance(array, np.ndarray):
            return f"{name} must be an array of numpy, got {type(array).__name__}"

        if array.dtype != dtype:
            return f"{name} must be of {np.dtype(dtype).name}, got {array.dtype}"

    return None


def _content_fault(
    part: DataPart, input_shape: tuple[int, ...], classes: int | None, *, tokens: bool
) -> str | None:
    """Return the fault of the shapes or the classes as the end of a message; None without one."""
    if part.inputs.shape[1:] != input_shape:
        return f"inputs must have the shape {('n', *input_shape)}, got {part.inputs.shape}"

    if tokens:
        return _token_fault(part, classes or 0)

    shape = part.inputs.shape[:1]
    if not len(part.inputs) or part.targets.shape != shape:
        return (
            f"targets must be one for each of {len(part.inputs)} inputs, at least one, got "
            f"{part.targets.shape}"
        )

    if classes is not None and not 0 <= part.targets.min() <= part.targets.max() < classes:
        wrong = part.targets[(part.targets < 0) | (part.targets >= classes)][0]
        return f"targets must be classes from 0 to {classes - 1}, got {wrong}"

    return None


def _token_fault(part: DataPart, tokens: int) -> str | None:
    if not len(part.inputs) or part.targets.shape != part.inputs.shape:
        return (
            f"targets must have the shape {part.inputs.shape} of its sequences, at least one, got "
            f"{part.targets.shape}"
        )

    for name, values in (("inputs", part.inputs), ("targets", part.targets)):
        if not 0 <= values.min() <= values.max() < tokens:
            return f"{name} must be tokens from 0 to {tokens - 1}, got {values.max()}"

    return None
