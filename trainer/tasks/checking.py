"""Check of the arrays that a task's loader returns; other packages write loaders, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archive.errors import TrainingError
from archive.trainer.datasets.splits import DataPart, Splits

if TYPE_CHECKING:
    from archive.trainer.tasks.base import Task


def checked(task: Task, splits: Any) -> Splits:
    """Return the splits of a task.

    Raises:
        TrainingError: They are none, or an array is not what the task says.
    """
    if not isinstance(splits, Splits):
        raise TrainingError(
            f"the loader of the task {task.name} must return Splits, got {type(splits).__name__}"
        )

    for name in ("train", "valid", "test"):
        if (fault := _fault(task, getattr(splits, name))) is not None:
            raise TrainingError(
                f"the loader of the task {task.name} returns a part {name} whose {fault}"
            )

    return splits


def _fault(task: Task, part: DataPart) -> str | None:
    """Return what is wrong with a part, beginning with the array."""
    classes = task.kind == "classification"
    for name, dtype in (("inputs", np.float32), ("targets", np.int64 if classes else np.float32)):
        array = getattr(part, name)
        if not isinstance(array, np.ndarray):
            return f"{name} must be an array of numpy, got {type(array).__name__}"

        if array.dtype != dtype:
            return f"{name} must be of {np.dtype(dtype).name}, got {array.dtype}"

    if part.inputs.shape[1:] != task.input_shape:
        return f"inputs must have the shape {('n', *task.input_shape)}, got {part.inputs.shape}"

    if not len(part.inputs) or part.targets.shape != part.inputs.shape[:1]:
        return (
            f"targets must be one for each of {len(part.inputs)} inputs, at least one, got "
            f"{part.targets.shape}"
        )

    if classes and not 0 <= part.targets.min() <= part.targets.max() < task.outputs:
        wrong = part.targets[(part.targets < 0) | (part.targets >= task.outputs)][0]
        return f"targets must be classes from 0 to {task.outputs - 1}, got {wrong}"

    return None
