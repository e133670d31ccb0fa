"""Resize and Upsample: tensors with sides of other lengths, where PyTorch computes the same.

A position y of the output is a coordinate of the input. With n the length of a side, m its new
length, s the scale:

| coordinate_transformation_mode | coordinate              | PyTorch                             |
|--------------------------------|-------------------------|-------------------------------------|
| `asymmetric`                   | y / s                   | nearest, with `floor`               |
| `half_pixel`                   | (y + 1/2) / s - 1/2     | linear, cubic; where halves are     |
|                                |                         | rounded up, nearest-exact           |
| `tf_half_pixel_for_nn`         | (y + 1/2) / s           | nearest-exact, with `floor`         |
| `align_corners`                | y (n-1)/(m-1); 0 at m=1 | linear, cubic, with `align_corners` |
| `pytorch_half_pixel`           | `half_pixel`; 0 at m=1  |                                     |
| `half_pixel_symmetric`         | `half_pixel`+n/2-m/(2s) |                                     |

Other combinations are read where they give the same pixels for the lengths of the file, such as
`half_pixel` with `round_prefer_floor` at whole scales. The rest is refused: another mode would be
another network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional as F

from archive.errors import UsageError
from archive.trainer.intake.onnx_graphs.values import Call, count_axes

_HALF = Fraction(1, 2)
_CUBIC = -0.75
"""The coefficient of cubic interpolation that PyTorch has."""

_NAMES = {
    "nearest": {3: "nearest", 4: "nearest", 5: "nearest"},
    "linear": {3: "linear", 4: "bilinear", 5: "trilinear"},
    "cubic": {4: "bicubic"},
}
"""Mode to its name in PyTorch, by the number of the tensor's sides."""

_WAYS = {
    "nearest": "with asymmetric and floor",
    "linear": "with half_pixel or align_corners",
    "cubic": "with half_pixel or align_corners",
}
"""Mode to the settings that PyTorch computes for all lengths."""


@dataclass(frozen=True)
class _Side:
    """One side: its length before and behind, and its scale.

    `sized` is whether the file has the length, not the scale.
    """

    before: int
    behind: int
    scale: Fraction
    sized: bool


def _resize(call: Call) -> Tensor:
    x = call.tensor(0)
    mode = call.get("mode", "nearest")
    name = _NAMES.get(mode, {}).get(x.ndim)
    if name is None:
        raise call.fault(
            f"has the mode {mode!r:.40} for a tensor of {x.ndim} sides, which PyTorch does not have"
        )

    sides = _sides(call, x)
    lengths = [side.behind for side in sides]
    if min(lengths) < 1:
        raise call.fault(f"has outputs without a pixel: {'x'.join(map(str, lengths))}")

    _check_filter(call, mode, sides)
    target: dict[str, Any] = {"size": lengths}
    if not all(side.sized for side in sides):
        target = {"scale_factor": list(map(_factor, sides))}

    if mode == "nearest":
        return F.interpolate(x, **target, mode=_nearest(call, sides))

    aligned = _has_aligned_corners(call, mode, sides)
    return F.interpolate(x, **target, mode=name, align_corners=aligned)


def _sides(call: Call, x: Tensor) -> list[_Side]:
    """Return the sides behind the batch and the channels; these two must stay unchanged."""
    axes = count_axes(call.get("axes", range(x.ndim)), x.ndim)
    sizes = call.numbers(3)
    listed = call.numbers(1 if _is_old(call) else 2)
    if len(sizes or listed or ()) != len(axes):
        raise call.fault(f"needs scales or sizes for {len(axes)} sides")

    if not sizes:
        scales = dict(zip(axes, listed or (), strict=True))
        if scales.get(0, 1) != 1 or scales.get(1, 1) != 1:
            raise call.fault("resizes the batch or the channels: transpose the tensor before it")

        return [_scale_side(int(x.shape[axis]), scales.get(axis, 1.0)) for axis in range(2, x.ndim)]

    asked = dict(zip(axes, sizes, strict=True))
    if not _keeps_batch(call, x, asked) or asked.get(1, x.shape[1]) != x.shape[1]:
        raise call.fault("resizes the batch or the channels: transpose the tensor before it")

    asked.pop(0, None)
    asked.pop(1, None)
    lengths = {axis: int(x.shape[axis]) for axis in range(2, x.ndim)}
    return _stretch_sides(call, lengths, asked)


def _keeps_batch(call: Call, x: Tensor, asked: dict[int, Any]) -> bool:
    length = asked.get(0)
    if length is None or type(length) is type(x.shape[0]):
        return length is None or bool(length in (x.shape[0], call.batch))

    # A comparison of the batch's symbol with a number would fix the batch.
    return type(length) is int and length == call.batch


def _scale_side(before: int, scale: float) -> _Side:
    # As shapes are inferred: a file has 32 bits, in which 0.7 * 10 is 7.
    behind = int(np.float32(before) * np.float32(scale))
    return _Side(before, behind, _fraction(scale), False)


def _fraction(scale: float) -> Fraction:
    """Return a scale as it was meant: 1/3, not the nearest number of 32 bits."""
    simple = Fraction(scale).limit_denominator(10_000)
    return simple if np.float32(float(simple)) == np.float32(scale) else Fraction(scale)


def _stretch_sides(call: Call, lengths: dict[int, int], sizes: dict[int, Any]) -> list[_Side]:
    policy = call.get("keep_aspect_ratio_policy", "stretch")
    scales = dict.fromkeys(lengths, Fraction(1))
    for axis, size in sizes.items():
        scales[axis] = Fraction(int(size), lengths[axis])

    if policy in ("not_larger", "not_smaller") and sizes:
        choose = min if policy == "not_larger" else max
        scale = choose(scales[axis] for axis in sizes)
        scales.update(dict.fromkeys(sizes, scale))
    elif policy != "stretch":
        raise call.fault(f"has the keep_aspect_ratio_policy {policy!r:.40}")

    sides = []
    for axis, before in lengths.items():
        behind = before * scales[axis]
        if behind.denominator > 1:
            raise call.fault(
                f"has the keep_aspect_ratio_policy {policy!r:.40} with lengths that must be "
                "rounded: export it with stretch"
            )

        sides.append(_Side(before, int(behind), scales[axis], True))

    return sides


def _factor(side: _Side) -> float:
    """Return the scale for PyTorch, which computes the length with 64 bits."""
    factor = float(side.scale)
    if int(side.before * factor) == side.behind:
        return factor

    return math.nextafter(side.behind / side.before, math.inf)


def _check_filter(call: Call, mode: str, sides: Sequence[_Side]) -> None:
    """Check that the weights of pixels equal PyTorch's weights.

    Raises:
        UsageError: They are not.
    """
    if mode == "nearest":
        return

    if call.get("antialias", 0) and any(side.scale < 1 for side in sides):
        raise _fault(call, mode, "antialias", "without it")

    # Linear, the pixel inside has the whole weight then, as at PyTorch's edges.
    if mode == "cubic" and call.get("exclude_outside", 0):
        raise _fault(call, mode, "exclude_outside", "without it")

    if mode == "cubic" and call.get("cubic_coeff_a", _CUBIC) != _CUBIC:
        coefficient = call.get("cubic_coeff_a", _CUBIC)
        raise _fault(call, mode, f"the cubic_coeff_a {coefficient:.7g}", f"with {_CUBIC}")


def _nearest(call: Call, sides: Sequence[_Side]) -> str:
    """Return PyTorch's mode that picks the same pixels.

    Raises:
        UsageError: There is none.
    """
    transform = _transform(call, "nearest")
    rounding = "floor" if _is_old(call) else call.get("nearest_mode", "round_prefer_floor")
    if rounding not in _ROUNDINGS:
        raise _fault(call, "nearest", f"{rounding!r:.40}")

    pixels = _pick_pixels(transform, rounding, sides)
    for name, equivalent in (("nearest", "asymmetric"), ("nearest-exact", "tf_half_pixel_for_nn")):
        if pixels == _pick_pixels(equivalent, "floor", sides):
            return name

    raise _fault(call, "nearest", f"{transform} and {rounding}")


_ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda coordinate: math.ceil(coordinate - _HALF),
    "round_prefer_ceil": lambda coordinate: math.floor(coordinate + _HALF),
}


def _pick_pixels(transform: str, rounding: str, sides: Sequence[_Side]) -> list[int]:
    """Return the pixel of the input for each position of all sides."""
    pixels = []
    for side in sides:
        for coordinate in _coordinates(transform, side):
            pixel = _ROUNDINGS[rounding](coordinate)
            pixels.append(min(max(pixel, 0), side.before - 1))

    return pixels


def _has_aligned_corners(call: Call, mode: str, sides: Sequence[_Side]) -> bool:
    """Return PyTorch's setting that has the same coordinates.

    Raises:
        UsageError: There is none.
    """
    transform = _transform(call, mode)
    coordinates = _clamped_coordinates(transform, sides, mode)
    for name in ("half_pixel", "align_corners"):
        if coordinates == _clamped_coordinates(name, sides, mode):
            return name == "align_corners"

    raise _fault(call, mode, transform)


def _clamped_coordinates(transform: str, sides: Sequence[_Side], mode: str) -> list[Fraction]:
    """Return coordinates; beyond an edge all are equal where only two pixels have a weight."""
    clamped = []
    for side in sides:
        last = Fraction(side.before - 1)
        for coordinate in _coordinates(transform, side):
            inside = min(max(coordinate, Fraction(0)), last)
            clamped.append(coordinate if mode == "cubic" else inside)

    return clamped


def _coordinates(transform: str, side: _Side) -> list[Fraction]:
    """Return the coordinate of each position of a side."""
    first = -_HALF + _HALF / side.scale
    step = 1 / side.scale
    if transform == "asymmetric":
        first = Fraction(0)
    elif transform == "tf_half_pixel_for_nn":
        first += _HALF
    elif transform == "half_pixel_symmetric":
        first += Fraction(side.before, 2) - side.behind / (2 * side.scale)
    elif transform == "align_corners":
        first = Fraction(0)
        step = Fraction(side.before - 1, max(side.behind - 1, 1))
    elif transform == "pytorch_half_pixel" and side.behind == 1:
        first = Fraction(0)

    return [first + position * step for position in range(side.behind)]


_TRANSFORMS = (
    "asymmetric",
    "half_pixel",
    "tf_half_pixel_for_nn",
    "align_corners",
    "pytorch_half_pixel",
    "half_pixel_symmetric",
)


def _transform(call: Call, mode: str) -> str:
    transform: str = (
        "asymmetric" if _is_old(call) else call.get("coordinate_transformation_mode", "half_pixel")
    )
    if transform not in _TRANSFORMS:
        raise _fault(call, mode, f"{transform!r:.40}")

    return transform


def _is_old(call: Call) -> bool:
    """Return whether the node is Upsample, or Resize of version 10, which have two inputs."""
    return len(call.inputs) == 2


def _fault(call: Call, mode: str, setting: str, way: str = "") -> UsageError:
    version = ", in version 11 of the operators or later" if _is_old(call) else ""
    return call.fault(
        f"has the mode {mode} with {setting}, which PyTorch does not compute for these lengths: "
        f"export the model {way or _WAYS[mode]}{version}, or import it from PyTorch"
    )


FUNCTIONS: dict[str, Callable[[Call], Any]] = {"Resize": _resize, "Upsample": _resize}
"""Operator to its function."""
