"""Shapes of the layers' outputs in the space `torch`, computed without PyTorch.

The batch has `BATCH` inputs, a prime number that no side of a network has. A shape is None where an
operation is not known here; the layers behind it may have shapes again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from archive.architecture.aten.sizes import evaluate
from archive.architecture.aten.weights import shape as weight_shape
from archive.architecture.aten.wiring import inputs, values
from archive.architecture.graph import Architecture
from archive.architecture.layer import Layer
from archive.architecture.operations import INPUT, OUTPUT, vocabulary
from archive.errors import InvalidArchitectureError

BATCH = 9973

Shape = tuple[int, ...]
Shapes = Mapping[int, Shape | None]
"""Number of an input of a layer to its shape."""

_SAME = frozenset("norm rectifier sigmoid dropout elementwise structure".split())


def output_shapes(architecture: Architecture) -> list[Shape | None]:
    """Return the shape of each layer's output, with the batch first; None where it is unknown."""
    groups = vocabulary(architecture.space).operations
    outputs: list[Shape | None] = []
    # Operations with several outputs, such as a split, have a shape for each.
    lists: dict[int, list[Shape]] = {}
    for u, layer in enumerate(architecture.layers):
        parents = values(architecture, u)
        shapes = {number: outputs[parent] for number, parent in parents.items()}
        shape: Shape | None = None
        try:
            if layer.op == INPUT:
                lists[u] = [(BATCH, *entry.shape) for entry in inputs(architecture)]
                shape = lists[u][0]
            elif layer.op == "getitem" and parents[0] in lists:
                shape = lists[parents[0]][_whole(layer, "item", 0)]
            elif layer.op in ("split_with_sizes", "unbind", "split"):
                lists[u] = _split(layer, shapes)
                shape = lists[u][0]
            elif layer.op in _RULES:
                shape = _RULES[layer.op](layer, shapes)
            elif groups[layer.op].group in _SAME or layer.op == OUTPUT:
                shape = _broadcast(shapes)
        except (InvalidArchitectureError, LookupError, TypeError, ValueError, ZeroDivisionError):
            shape = None

        outputs.append(shape)

    return outputs


def _whole(layer: Layer, name: str, default: int) -> int:
    value = layer.attributes.get(name, default)
    if isinstance(value, str):
        return int(evaluate(value, BATCH))

    if not isinstance(value, int):
        raise ValueError(name)

    return value


def _list(layer: Layer, name: str) -> list[int]:
    """Return a list of sizes; texts such as `64*batch` are evaluated."""
    value = layer.attributes[name]
    sides = []
    for side in value if isinstance(value, tuple) else (value,):
        if isinstance(side, str):
            sides.append(int(evaluate(side, BATCH)))
        elif isinstance(side, int):
            sides.append(side)

    return sides


def _sides(layer: Layer, name: str, rank: int, default: int) -> list[int]:
    """Return a setting of a window for each spatial side."""
    if name not in layer.attributes:
        return [default] * rank

    sides = _list(layer, name)
    return sides * rank if len(sides) == 1 else sides


def _known(shapes: Shapes, number: int = 0) -> Shape:
    shape = shapes[number]
    if shape is None:
        raise LookupError(number)

    return shape


def _broadcast(shapes: Shapes) -> Shape | None:
    """Return the joint shape of the inputs whose shapes are known."""
    joint: Shape = ()
    for shape in shapes.values():
        if shape is None:
            continue

        short, long = sorted((joint, shape), key=len)
        short = (1,) * (len(long) - len(short)) + short
        joint = tuple(map(max, long, short))

    return joint or None


def _convolution(layer: Layer, shapes: Shapes) -> Shape:
    batch, _, *image = _known(shapes)
    # A computed weight, such as a standardised one, is an input.
    weight = weight_shape(layer, "weight") or _known(shapes, 1)

    rank = len(image)
    steps = _sides(layer, "stride", rank, layer.stride)
    paddings = _sides(layer, "padding", rank, 0)
    gaps = _sides(layer, "dilation", rank, 1)
    if layer.attributes.get("transposed"):
        groups = _whole(layer, "groups", 1)
        extra = _sides(layer, "output_padding", rank, 0)
        grown = []
        for side, kernel, step, padding, gap, more in zip(
            image, weight[2:], steps, paddings, gaps, extra, strict=True
        ):
            grown.append((side - 1) * step - 2 * padding + gap * (kernel - 1) + more + 1)

        return (batch, weight[1] * groups, *grown)

    reduced = []
    for side, kernel, step, padding, gap in zip(
        image, weight[2:], steps, paddings, gaps, strict=True
    ):
        reduced.append((side + 2 * padding - gap * (kernel - 1) - 1) // step + 1)

    return (batch, weight[0], *reduced)


def _pool(layer: Layer, shapes: Shapes) -> Shape:
    shape = _known(shapes)
    kernels = _list(layer, "kernel_size")
    rank = 3 if "3d" in layer.op else 1 if "1d" in layer.op else 2
    kernels = kernels * rank if len(kernels) == 1 else kernels
    steps = _sides(layer, "stride", rank, layer.stride)
    paddings = _sides(layer, "padding", rank, 0)
    gaps = _sides(layer, "dilation", rank, 1)
    up = bool(layer.attributes.get("ceil_mode"))
    reduced = []
    for side, kernel, step, padding, gap in zip(
        shape[-rank:], kernels, steps, paddings, gaps, strict=True
    ):
        room = side + 2 * padding - gap * (kernel - 1) - 1
        count = (-(-room // step) if up else room // step) + 1
        if up and (count - 1) * step >= side + padding:
            count -= 1

        reduced.append(count)

    return (*shape[:-rank], *reduced)


def _adaptive(layer: Layer, shapes: Shapes) -> Shape:
    shape = _known(shapes)
    rank = 3 if "3d" in layer.op else 1 if "1d" in layer.op else 2
    return (*shape[:-rank], *_sides(layer, "output_size", rank, 1))


def _linear(layer: Layer, shapes: Shapes) -> Shape:
    return (*_known(shapes)[:-1], weight_shape(layer, "weight")[0])


def _embedding(layer: Layer, shapes: Shapes) -> Shape:
    (indices,) = shapes.values()
    if indices is None:
        raise LookupError("indices")

    return (*indices, weight_shape(layer, "weight")[1])


def _view(layer: Layer, shapes: Shapes) -> Shape:
    sizes = _list(layer, "size")
    if -1 in sizes:
        rest = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = math.prod(_known(shapes)) // rest

    return tuple(sizes)


def _permute(layer: Layer, shapes: Shapes) -> Shape:
    shape = _known(shapes)
    return tuple(shape[side] for side in _list(layer, "dims"))


def _slice(layer: Layer, shapes: Shapes) -> Shape:
    shape = list(_known(shapes))
    dim = _whole(layer, "dim", 0)
    first = layer.attributes.get("start")
    end = layer.attributes.get("end")
    limits = [None if value is None else int(evaluate(str(value), BATCH)) for value in (first, end)]
    shape[dim] = len(range(shape[dim])[limits[0] : limits[1] : _whole(layer, "step", 1)])
    return tuple(shape)


def _select(layer: Layer, shapes: Shapes) -> Shape:
    shape = list(_known(shapes))
    del shape[_whole(layer, "dim", 0)]
    return tuple(shape)


def _squeeze(layer: Layer, shapes: Shapes) -> Shape:
    shape = _known(shapes)
    if "dim" not in layer.attributes:
        return tuple(side for side in shape if side != 1)

    dims = {dim % len(shape) for dim in _list(layer, "dim")}
    return tuple(side for dim, side in enumerate(shape) if side != 1 or dim not in dims)


def _unsqueeze(layer: Layer, shapes: Shapes) -> Shape:
    shape = list(_known(shapes))
    dim = _whole(layer, "dim", 0)
    shape.insert(dim if dim >= 0 else dim + len(shape) + 1, 1)
    return tuple(shape)


def _expand(layer: Layer, shapes: Shapes) -> Shape:
    sizes = _list(layer, "size")
    shape = (1,) * (len(sizes) - len(_known(shapes))) + _known(shapes)
    return tuple(old if size == -1 else size for size, old in zip(sizes, shape, strict=True))


def _repeat(layer: Layer, shapes: Shapes) -> Shape:
    times = _list(layer, "repeats")
    shape = (1,) * (len(times) - len(_known(shapes))) + _known(shapes)
    return tuple(side * count for side, count in zip(shape, times, strict=True))


def _cat(layer: Layer, shapes: Shapes) -> Shape:
    dim = _whole(layer, "dim", 0)
    parts = [_known(shapes, number) for number in shapes]
    joint = list(parts[0])
    joint[dim] = sum(part[dim] for part in parts)
    return tuple(joint)


def _split(layer: Layer, shapes: Shapes) -> list[Shape]:
    shape = list(_known(shapes))
    dim = _whole(layer, "dim", 0)
    parts = []
    for size in _list(layer, "split_sizes"):
        shape[dim] = size
        parts.append(tuple(shape))

    return parts


def _reduce(layer: Layer, shapes: Shapes) -> Shape:
    shape = _known(shapes)
    dims = set(range(len(shape)))
    if "dim" in layer.attributes:
        dims = {dim % len(shape) for dim in _list(layer, "dim")} or dims

    if layer.attributes.get("keepdim"):
        return tuple(1 if dim in dims else side for dim, side in enumerate(shape))

    return tuple(side for dim, side in enumerate(shape) if dim not in dims)


def _product(layer: Layer, shapes: Shapes) -> Shape:
    return (*_known(shapes)[:-1], _known(shapes, 1)[-1])


def _attention(layer: Layer, shapes: Shapes) -> Shape:
    return (*_known(shapes)[:-1], _known(shapes, 2)[-1])


def _pad(layer: Layer, shapes: Shapes) -> Shape:
    shape = list(_known(shapes))
    name = "pad" if "pad" in layer.attributes else "padding"
    pads = _list(layer, name)
    for number in range(len(pads) // 2):
        shape[-1 - number] += pads[2 * number] + pads[2 * number + 1]

    return tuple(shape)


def _upsample(layer: Layer, shapes: Shapes) -> Shape:
    shape = _known(shapes)
    if "output_size" in layer.attributes:
        sides = _list(layer, "output_size")
        return (*shape[:2], *sides)

    factors: Any = layer.attributes["scale_factors"]
    return (*shape[:2], *(int(side * f) for side, f in zip(shape[2:], factors, strict=True)))


def _sized(layer: Layer, shapes: Shapes) -> Shape:
    return tuple(_list(layer, "shape" if "shape" in layer.attributes else "size"))


def _arange(layer: Layer, shapes: Shapes) -> Shape:
    first, end, step = (
        _whole(layer, "start", 0),
        _whole(layer, "end", 0),
        _whole(layer, "step", 1),
    )
    return (len(range(first, end, step)),)


def _first(layer: Layer, shapes: Shapes) -> Shape:
    return _known(shapes)


def _rules() -> dict[str, Callable[[Layer, Shapes], Shape | None]]:
    groups: Sequence[tuple[Callable[[Layer, Shapes], Shape | None], str]] = (
        (_convolution, "convolution"),
        (_linear, "linear"),
        (_embedding, "embedding"),
        (_pool, "max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d"),
        (_adaptive, "adaptive_avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool3d"),
        (_adaptive, "adaptive_max_pool2d adaptive_max_pool3d"),
        (_view, "view"),
        (_permute, "permute"),
        (_slice, "slice"),
        (_select, "select"),
        (_squeeze, "squeeze"),
        (_unsqueeze, "unsqueeze"),
        (_expand, "expand"),
        (_repeat, "repeat"),
        (_cat, "cat"),
        (_reduce, "amax amin mean sum prod var any argmax argmin"),
        (_product, "bmm mm"),
        (_attention, "scaled_dot_product_attention"),
        (_pad, "constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad2d"),
        (_upsample, "upsample_nearest2d upsample_bilinear2d upsample_bicubic2d"),
        (_upsample, "_upsample_nearest_exact2d"),
        (_sized, "parameter constant empty full rand randn as_strided"),
        (_arange, "arange"),
        (
            _first,
            "clone alias detach roll flip _softmax _log_softmax cumsum _to_copy copy bernoulli",
        ),
        (_first, "slice_scatter select_scatter index_put masked_scatter scatter"),
    )
    rules: dict[str, Callable[[Layer, Shapes], Shape | None]] = {}
    for rule, names in groups:
        rules |= dict.fromkeys(names.split(), rule)

    return rules


_RULES = _rules()
