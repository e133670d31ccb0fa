"""Documents of `archive weights`."""

from __future__ import annotations

from typing import Literal

from archive.cli.documents.base import Document, JsonObject


class ModelInput(JsonObject):
    """The input of an exported model.

    Attributes:
        shape: Its dimensions; the first one is `batch`.
        dtype: Type of its numbers.
        scaling: How raw data become inputs.
    """

    shape: list[str | int]
    dtype: str
    scaling: str


class ModelOutput(JsonObject):
    """The output of an exported model.

    Attributes:
        shape: Its dimensions; the first one is `batch`.
        meaning: What its numbers are.
    """

    shape: list[str | int]
    meaning: str


class ModelScaling(JsonObject):
    """Standardisation of a task's data.

    Attributes:
        mean: Mean of each channel, or each feature; one number stands for all of them.
        deviation: Standard deviation likewise.
        target: Mean and deviation of the target of a regression.
    """

    mean: list[float]
    deviation: list[float]
    target: list[float] | None


class ExportedModel(Document):
    """A trained network that was written to a file.

    Attributes:
        evaluation: Id of the evaluation that has the weights.
        architecture: Key of the architecture.
        space: Name of its space.
        task: Name of the task.
        protocol: Name of the training protocol.
        value: The objective.
        path: The file.
        format: `pt2`, `onnx` or `safetensors`.
        bytes: Its size.
        input: The input; null for weights alone.
        output: The output; null for weights alone.
        scaling: Standardisation of the data; null where it is not known here.
    """

    evaluation: str
    architecture: str
    space: str
    task: str
    protocol: str
    value: float
    path: str
    format: Literal["pt2", "onnx", "safetensors"]
    bytes: int
    input: ModelInput | None
    output: ModelOutput | None
    scaling: ModelScaling | None
