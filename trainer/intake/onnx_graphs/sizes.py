"""Operators on values that are known before any tensor: constants, and sizes with the symbol of the
batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from archive.trainer.intake.onnx_graphs.values import Call, Known

Function = Callable[[Call], Known]


def arrays(call: Call) -> list[Known]:
    """Return the inputs that are present."""
    return [value for value in call.inputs if isinstance(value, np.ndarray)]


def _pairwise(function: Callable[..., Any]) -> Function:
    return lambda call: np.asarray(function(*arrays(call)))


def _quotient(call: Call) -> Known:
    first, second = arrays(call)
    if any(_is_real(data) for data in (first, second)):
        return np.asarray(first / second)

    if all(
        isinstance(one, int | np.integer) for data in (first, second) for one in data.reshape(-1)
    ):
        return np.asarray(np.sign(first) * np.sign(second) * (abs(first) // abs(second)))

    # The size of a batch is not negative.
    return np.asarray(first // second)


def _is_real(data: Known) -> bool:
    if data.dtype != object:
        return data.dtype.kind == "f"

    return any(isinstance(one, float | torch.SymFloat) for one in data.reshape(-1))


def _rounded(whole: Callable[[Any], Any], function: Function) -> Function:
    def apply(call: Call) -> Known:
        data = arrays(call)[0]
        # numpy asks objects for a method that numbers of Python do not have.
        return (
            np.vectorize(whole, otypes=[object])(data) if data.dtype == object else function(call)
        )

    return apply


def _gather(call: Call) -> Known:
    data, indices = arrays(call)
    return np.asarray(np.take(data, indices.astype(np.int64), axis=call.get("axis", 0)))


def _slice(call: Call) -> Known:
    data = arrays(call)[0]
    return data[slices(call, data.ndim)]


def slices(call: Call, sides: int) -> tuple[slice, ...]:
    """Return the slices of an operator Slice."""
    begins = call.numbers(1, "starts") or []
    ends = call.numbers(2, "ends") or []
    axes = call.numbers(3, "axes") or range(len(begins))
    steps = call.numbers(4) or [1] * len(begins)
    parts = [slice(None)] * sides
    for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
        # The largest and the smallest number stand for the end of the side.
        last = None if isinstance(end, int) and abs(end) >= 2**31 - 1 else end
        parts[axis] = slice(begin, last, step)

    return tuple(parts)


def _unsqueeze(call: Call) -> Known:
    return np.expand_dims(arrays(call)[0], tuple(call.numbers(1, "axes") or ()))


def _squeeze(call: Call) -> Known:
    axes = call.numbers(1, "axes")
    return np.squeeze(arrays(call)[0], None if axes is None else tuple(axes))


def _reshape(call: Call) -> Known:
    data = arrays(call)[0]
    shape = [data.shape[at] if side == 0 else side for at, side in enumerate(call.numbers(1) or [])]
    return data.reshape(shape)


def _cast(call: Call) -> Known:
    from archive.trainer.intake.onnx_graphs.files import numpy_type

    data = arrays(call)[0]
    dtype = numpy_type(call, call.get("to", 1))
    if data.dtype != object or all(isinstance(one, int | float) for one in data.reshape(-1)):
        return data.astype(dtype)

    convert = {"f": torch.sym_float, "i": torch.sym_int}.get(dtype.kind, lambda one: one)
    return np.asarray(np.vectorize(convert, otypes=[object])(data))


def _filled(call: Call) -> Known:
    shape = call.numbers(0) or []
    value = call.get("value", np.zeros(1, np.float32))
    return np.full(shape, value.reshape(-1)[0])


def _range(call: Call) -> Known:
    return np.arange(*(call.operand(at) for at in range(3)))


def _product(call: Call) -> Known:
    axes = call.numbers(1, "axes")
    if axes is None or arrays(call)[0].ndim == 1:
        kept = (1,) if call.get("keepdims", 1) else ()
        total = math.prod(arrays(call)[0].reshape(-1).tolist())
        return np.array(
            [total], dtype=object if not isinstance(total, int | float) else None
        ).reshape(kept)

    return np.asarray(
        np.prod(arrays(call)[0], axis=tuple(axes), keepdims=bool(call.get("keepdims", 1)))
    )


def _transpose(call: Call) -> Known:
    return np.transpose(arrays(call)[0], call.get("perm", None))


FUNCTIONS: dict[str, Function] = {
    "Add": _pairwise(np.add),
    "Sub": _pairwise(np.subtract),
    "Mul": _pairwise(np.multiply),
    "Div": _quotient,
    "Neg": _pairwise(np.negative),
    "Min": _pairwise(np.minimum),
    "Max": _pairwise(np.maximum),
    "Sqrt": _pairwise(np.sqrt),
    "Floor": _rounded(math.floor, _pairwise(np.floor)),
    "Ceil": _rounded(math.ceil, _pairwise(np.ceil)),
    "Equal": _pairwise(np.equal),
    "Where": _pairwise(np.where),
    "Identity": _pairwise(lambda data: data),
    "Concat": lambda call: np.concatenate(arrays(call), axis=call.get("axis", 0)),
    "Gather": _gather,
    "Slice": _slice,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Cast": _cast,
    "ConstantOfShape": _filled,
    "Range": _range,
    "ReduceProd": _product,
    "Transpose": _transpose,
}
"""Operator to its function on known values; others compute with tensors."""
