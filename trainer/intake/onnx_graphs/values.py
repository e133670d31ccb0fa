"""Values of an ONNX graph: tensors, and numbers that are known before any tensor is computed.

ONNX computes shapes by the operators that compute with tensors. `torch.export` must know sizes, so
constants and shapes are numpy arrays here, of type object where they have the symbol of the batch.
An operator with such inputs alone gives another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from archive.errors import UsageError

Known = NDArray[Any]
Value = Tensor | Known


@dataclass(frozen=True)
class Call:
    """One node with its inputs.

    Attributes:
        op: Name of the operator.
        name: Name of the first output, for messages.
        inputs: Values, None for absent ones.
        attributes: Attributes by name, as numbers, texts and arrays.
        outputs: Number of outputs.
        batch: The number of inputs in a batch that the file fixes; None where it does not.
        opset: Version of the operators.
    """

    op: str
    name: str
    inputs: tuple[Value | None, ...]
    attributes: dict[str, Any]
    outputs: int = 1
    batch: int | None = None
    opset: int = 13

    def value(self, position: int) -> Value | None:
        """Return an input; None if it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def tensor(self, position: int) -> Tensor:
        """Return an input as a tensor.

        Raises:
            UsageError: It is absent.
        """
        value = self.optional(position)
        if value is None:
            raise self.fault(f"needs input {position}")

        return value

    def tensors(self) -> list[Tensor]:
        """Return all inputs as tensors.

        Raises:
            UsageError: One is absent.
        """
        return [self.tensor(position) for position in range(len(self.inputs))]

    def optional(self, position: int) -> Tensor | None:
        """Return an input as a tensor; None if it is absent."""
        value = self.value(position)
        return self._as_tensor(value) if isinstance(value, np.ndarray) else value

    def operand(self, position: int) -> Any:
        """Return an input as a tensor, or as a number if its one number is known."""
        value = self.value(position)
        if isinstance(value, np.ndarray) and value.size == 1:
            return value.reshape(-1)[0] if value.dtype == object else value.reshape(-1)[0].item()

        return self.tensor(position)

    def numbers(self, position: int, name: str = "") -> list[Any] | None:
        """Return a known list of numbers from an attribute (older files) or an input.

        None if both are absent.

        Raises:
            UsageError: It depends on values of a tensor.
        """
        if name and name in self.attributes:
            listed = self.attributes[name]
            return list(listed) if isinstance(listed, (list, tuple)) else [listed]

        value = self.value(position)
        if value is None:
            return None

        if not isinstance(value, np.ndarray):
            raise self.fault(f"has a {name or 'size'} that depends on values of a tensor")

        flat = value.reshape(-1)
        return list(flat) if value.dtype == object else flat.tolist()

    def get(self, name: str, default: Any) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def fault(self, what: str) -> UsageError:
        """Return an error about this node."""
        return UsageError(f"the node {self.name!r:.80} of the operator {self.op} {what}")

    def _as_tensor(self, value: Known) -> Tensor:
        if value.dtype == object:
            raise self.fault("computes with a size as with a tensor")

        # Arrays of a file cannot be written to, and tensors could be.
        return torch.from_numpy(np.array(value))


def count_axes(axes: Iterable[int], sides: int) -> list[int]:
    """Return axes counted from the first one; a negative axis counts from the end."""
    return [axis % sides for axis in axes]


def are_known(*values: Any) -> bool:
    """Return whether all values are known before any tensor."""
    return all(value is None or isinstance(value, np.ndarray) for value in values)
