"""Operators on known values: constants, and sizes with the symbol of the batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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


def _divide(call: Call) -> Known:
    first, second = arrays(call)
    if any(_is_real(data) for data in (first, second)):
        return np.asarray(first / second)

    if _is_whole(first) and _is_whole(second):
        return np.asarray(np.sign(first) * np.sign(second) * (abs(first) // abs(second)))

    # The size of a batch is not negative.
    return np.asarray(first // second)


def _is_whole(data: Known) -> bool:
    return all(isinstance(number, int | np.integer) for number in data.reshape(-1))


def _is_real(data: Known) -> bool:
    if data.dtype != object:
        return data.dtype.kind == "f"

    return any(isinstance(number, float | torch.SymFloat) for number in data.reshape(-1))


def _make_rounding(whole: Callable[[Any], Any], function: Function) -> Function:
    def apply(call: Call) -> Known:
        data = arrays(call)[0]
        # numpy asks objects for a method that numbers of Python do not have.
        if data.dtype == object:
            return np.asarray(np.vectorize(whole, otypes=[object])(data))

        return function(call)

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
    return data.reshape(keep_sides(call.numbers(1) or [], data.shape))


def keep_sides(shape: Sequence[Any], sides: Sequence[Any]) -> list[Any]:
    """Return a new shape, with the side of the old shape in place of each 0."""
    kept = list(shape)
    for axis, side in enumerate(shape):
        if side == 0:
            kept[axis] = sides[axis]

    return kept


def _cast(call: Call) -> Known:
    from archive.trainer.intake.onnx_graphs.files import numpy_type

    data = arrays(call)[0]
    dtype = numpy_type(call, call.get("to", 1))
    if data.dtype != object or all(isinstance(number, int | float) for number in data.reshape(-1)):
        return data.astype(dtype)

    convert = {"f": torch.sym_float, "i": torch.sym_int}.get(dtype.kind, lambda number: number)
    return np.asarray(np.vectorize(convert, otypes=[object])(data))


def _fill(call: Call) -> Known:
    shape = call.numbers(0) or []
    value = call.get("value", np.zeros(1, np.float32))
    return np.full(shape, value.reshape(-1)[0])


def _range(call: Call) -> Known:
    return np.arange(call.operand(0), call.operand(1), call.operand(2))


def _product(call: Call) -> Known:
    axes = call.numbers(1, "axes")
    data = arrays(call)[0]
    keeps_sides = bool(call.get("keepdims", 1))
    if axes is not None and data.ndim > 1:
        return np.asarray(np.prod(data, axis=tuple(axes), keepdims=keeps_sides))

    total = math.prod(data.reshape(-1).tolist())
    dtype = None if isinstance(total, int | float) else object
    return np.array([total], dtype=dtype).reshape((1,) if keeps_sides else ())


def _transpose(call: Call) -> Known:
    return np.transpose(arrays(call)[0], call.get("perm", None))


FUNCTIONS: dict[str, Function] = {
    "Add": _pairwise(np.add),
    "Sub": _pairwise(np.subtract),
    "Mul": _pairwise(np.multiply),
    "Div": _divide,
    "Neg": _pairwise(np.negative),
    "Min": _pairwise(np.minimum),
    "Max": _pairwise(np.maximum),
    "Sqrt": _pairwise(np.sqrt),
    "Floor": _make_rounding(math.floor, _pairwise(np.floor)),
    "Ceil": _make_rounding(math.ceil, _pairwise(np.ceil)),
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
    "ConstantOfShape": _fill,
    "Range": _range,
    "ReduceProd": _product,
    "Transpose": _transpose,
}
"""Operator to its function on known values; others compute with tensors."""
