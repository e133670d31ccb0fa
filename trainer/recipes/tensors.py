"""Tensors and arrays of a recipe as tensors that a file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archive.errors import TrainingError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

_TYPES = frozenset(
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 "
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz".split()
)
"""Types of numbers that safetensors has."""


def as_tensors(named: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return tensors or arrays by name as tensors that share no memory with each other.

    Raises:
        TrainingError: A value is neither, or a file cannot hold it: texts, objects, sparse or
            quantised tensors.
    """
    import numpy as np
    import torch

    if not isinstance(named, Mapping):
        raise TrainingError(
            "weights are a mapping of names to tensors or arrays, as module.state_dict() returns "
            "it, got "
            f"{type(named).__name__}"
        )

    tensors: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, value in named.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor | np.ndarray):
            raise TrainingError(
                f"weights are tensors or arrays by name, got {type(value).__name__} as {name!r}"
            )

        tensor = (
            _dense(name, value) if isinstance(value, torch.Tensor) else _from_array(name, value)
        )
        # The file format refuses tied weights.
        place = tensor.untyped_storage().data_ptr()
        tensors[name] = tensor.clone() if place in places else tensor
        places.add(place)

    return tensors


def _dense(name: str, tensor: Tensor) -> Tensor:
    import torch

    if tensor.is_nested or tensor.layout is not torch.strided:
        raise _fault(
            name, f"a tensor that is {'nested' if tensor.is_nested else _name(tensor.layout)}"
        )

    if tensor.is_meta:
        raise _fault(name, "a tensor without values, on the device meta")

    if _name(tensor.dtype) not in _TYPES:
        raise _fault(name, f"a tensor of {_name(tensor.dtype)}")

    # A file holds memory alone, without the flags that conjugate or negate it on reading.
    return tensor.detach().resolve_conj().resolve_neg()


def _from_array(name: str, value: np.ndarray[Any, Any]) -> Tensor:
    import numpy as np
    import torch

    if value.dtype.name not in _TYPES:
        raise _fault(name, f"an array of {value.dtype}")

    # Native bytes in memory that may be written to, as PyTorch needs them; a single number has no
    # sides.
    array = np.require(
        value.astype(value.dtype.newbyteorder("="), order="C", copy=False), requirements=["C", "W"]
    )
    if hasattr(np, value.dtype.name):
        return torch.from_numpy(array)

    # Of a package such as ml_dtypes, as JAX has them.
    dtype: torch.dtype = getattr(torch, value.dtype.name)
    return torch.from_numpy(array.view(f"u{array.itemsize}")).view(dtype)


def _name(kind: torch.dtype | torch.layout) -> str:
    return str(kind).removeprefix("torch.")


def _fault(name: str, what: str) -> TrainingError:
    return TrainingError(
        "weights are dense tensors or arrays of a type that safetensors has, "
        f"got {what} as {name!r}"
    )
