"""Operators of ONNX that move values: shapes, parts, indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from archive.trainer.intake.onnx_graphs.sizes import keep_sides, slices
from archive.trainer.intake.onnx_graphs.values import Call, count_axes


def _reshape(call: Call) -> Tensor:
    x = call.tensor(0)
    shape = call.numbers(1, "shape") or []
    if not call.get("allowzero", 0):
        shape = keep_sides(shape, x.shape)

    if shape and call.batch is not None and shape[0] == call.batch and type(x.shape[0]) is not int:
        # The file was written for one size of the batch.
        shape = [x.shape[0], *shape[1:]]

    return x.reshape(shape)


def _flatten(call: Call) -> Tensor:
    x = call.tensor(0)
    axis = call.get("axis", 1)
    axis += x.ndim if axis < 0 else 0
    if axis in (0, x.ndim):
        return x.reshape((1, -1) if axis == 0 else (-1, 1))

    return x.flatten(axis).flatten(0, axis - 1)


def _transpose(call: Call) -> Tensor:
    x = call.tensor(0)
    return x.permute(call.get("perm", list(reversed(range(x.ndim)))))


def _squeeze(call: Call) -> Tensor:
    axes = call.numbers(1, "axes")
    x = call.tensor(0)
    return x.squeeze() if axes is None else x.squeeze(list(map(int, axes)))


def _unsqueeze(call: Call) -> Tensor:
    x = call.tensor(0)
    axes = call.numbers(1, "axes") or []
    for axis in sorted(count_axes(axes, x.ndim + len(axes))):
        x = x.unsqueeze(axis)

    return x


def _concat(call: Call) -> Tensor:
    return torch.cat(call.tensors(), call.attributes["axis"])


def _split(call: Call) -> tuple[Tensor, ...]:
    x = call.tensor(0)
    axis = call.get("axis", 0)
    lengths: Any = call.numbers(1, "split")
    if lengths is None:
        lengths = math.ceil(int(x.shape[axis]) / call.get("num_outputs", call.outputs))

    return tuple(torch.split(x, lengths, axis))


def _slice(call: Call) -> Tensor:
    x = call.tensor(0)
    parts = slices(call, x.ndim)
    forward = list(parts)
    reversed_axes = []
    for axis, part in enumerate(parts):
        if part.step is None or part.step > 0:
            continue

        if part not in (slice(-1, None, -1), slice(None, None, -1)):
            raise call.fault("goes backwards over a part of a side")

        reversed_axes.append(axis)
        forward[axis] = slice(None)

    if reversed_axes:
        x = x.flip(reversed_axes)

    return x[tuple(forward)]


def _gather(call: Call) -> Tensor:
    data = call.tensor(0)
    indices = call.operand(1)
    axis = call.get("axis", 0)
    sides = list(data.shape)
    axis %= len(sides)
    if not isinstance(indices, Tensor):
        part = data.select(axis, indices)
        constant: Any = call.value(1)
        if constant.ndim == 0:
            return part

        return part.reshape(sides[:axis] + list(constant.shape) + sides[axis + 1 :])

    if isinstance(call.value(1), np.ndarray):
        # A negative index counts from the end.
        indices = torch.where(indices < 0, indices + sides[axis], indices)

    if axis == 0 and data.ndim == 2 and data.requires_grad:
        return F.embedding(indices, data)

    selected = data.index_select(axis, indices.reshape(-1))
    return selected.reshape(sides[:axis] + list(indices.shape) + sides[axis + 1 :])


def _expand(call: Call) -> Tensor:
    x = call.tensor(0)
    shape = call.numbers(1) or []
    added = len(shape) - x.ndim
    # A side of 1 leaves the input's side as it is.
    sides = [1] * added + list(x.shape)
    longer = list(x.shape)[: max(-added, 0)]
    target = []
    for axis, side in enumerate(shape):
        if axis >= added and _is_one(side):
            target.append(-1)
        elif axis < added and side == -1:
            target.append(sides[axis])
        else:
            target.append(side)

    return x.expand(*longer, *target)


def _is_one(side: Any) -> bool:
    return isinstance(side, int) and side == 1


def _tile(call: Call) -> Tensor:
    return call.tensor(0).repeat(*(call.numbers(1) or [1]))


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate"}
"""ONNX's mode of padding to PyTorch's name of it."""


def _pad(call: Call) -> Tensor:
    x = call.tensor(0)
    pads = call.numbers(1, "pads") or []
    mode = _PAD_MODES.get(call.get("mode", "constant"))
    if mode is None:
        raise call.fault(f"has the mode {call.get('mode', '')!r:.40}")

    axes = count_axes(call.numbers(3) or range(x.ndim), x.ndim)
    before = dict(zip(axes, pads[: len(axes)], strict=True))
    behind = dict(zip(axes, pads[len(axes) :], strict=True))
    ends = []
    for axis in reversed(range(x.ndim)):
        ends += [int(before.get(axis, 0)), int(behind.get(axis, 0))]

    if mode == "constant":
        fill = call.operand(2) if call.value(2) is not None else call.get("value", 0.0)
        return F.pad(x, ends, value=fill)

    # Other modes take padded sides only.
    while ends[-2:] == [0, 0]:
        ends = ends[:-2]

    return F.pad(x, ends, mode=mode)


def _depth_to_space(call: Call) -> Tensor:
    x = call.tensor(0)
    block = call.attributes["blocksize"]
    if call.get("mode", "DCR") == "CRD":
        return F.pixel_shuffle(x, block)

    n, depth, height, width = x.shape
    parts = x.reshape(n, block, block, depth // block**2, height, width).permute(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, depth // block**2, height * block, width * block)


def _elements(call: Call) -> Tensor:
    return torch.gather(call.tensor(0), call.get("axis", 0), call.tensor(1))


def _gather_nd(call: Call) -> Tensor:
    if call.get("batch_dims", 0):
        raise call.fault(
            f"has batch_dims {call.get('batch_dims', 0)}, and 0 alone is read: "
            "import it from PyTorch"
        )

    return call.tensor(0)[call.tensor(1).unbind(-1)]


def _einsum(call: Call) -> Tensor:
    return torch.einsum(call.attributes["equation"], *call.tensors())


def _fill(call: Call) -> Tensor:
    value = call.attributes.get("value")
    number = 0.0 if value is None else value.reshape(-1)[0].item()
    return torch.full(call.numbers(0) or [], number)


FUNCTIONS: dict[str, Callable[[Call], Any]] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Transpose": _transpose,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "GatherElements": _elements,
    "GatherND": _gather_nd,
    "Expand": _expand,
    "Tile": _tile,
    "Pad": _pad,
    "DepthToSpace": _depth_to_space,
    "Einsum": _einsum,
    "ConstantOfShape": _fill,
}
"""Operator to its function."""
