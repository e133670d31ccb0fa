"""Operators of ONNX with weights, windows or statistics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from archive.trainer.intake.onnx_graphs.values import Call


def _convolution(call: Call) -> Tensor:
    x = call.tensor(0)
    weight = call.tensor(1)
    sides = weight.ndim - 2
    strides = call.get("strides", [1] * sides)
    dilations = call.get("dilations", [1] * sides)
    x, padding = _pad_input(call, x, list(weight.shape[2:]), strides, dilations)
    apply: Callable[..., Tensor] = (F.conv1d, F.conv2d, F.conv3d)[sides - 1]
    return apply(x, weight, call.optional(2), strides, padding, dilations, call.get("group", 1))


def _transposed_convolution(call: Call) -> Tensor:
    x = call.tensor(0)
    weight = call.tensor(1)
    sides = weight.ndim - 2
    pads = call.get("pads", [0] * 2 * sides)
    if (
        call.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
        or "output_shape" in call.attributes
    ):
        raise call.fault("has an output of a given shape: give pads instead")

    if pads[:sides] != pads[sides:]:
        raise call.fault(f"has other pads before than behind: {pads}")

    functions = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
    apply: Callable[..., Tensor] = functions[sides - 1]
    return apply(
        x,
        weight,
        call.optional(2),
        call.get("strides", [1] * sides),
        pads[:sides],
        call.get("output_padding", [0] * sides),
        call.get("group", 1),
        call.get("dilations", [1] * sides),
    )


def _max_pool(call: Call) -> Tensor:
    kernel = call.attributes["kernel_shape"]
    strides = call.get("strides", [1] * len(kernel))
    dilations = call.get("dilations", [1] * len(kernel))
    x, padding = _pad_input(call, call.tensor(0), kernel, strides, dilations, fill=-math.inf)
    if call.outputs > 1:
        raise call.fault("has the indices of the largest values as an output")

    apply: Callable[..., Tensor] = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(kernel) - 1]
    return apply(x, kernel, strides, padding, dilations, bool(call.get("ceil_mode", 0)))


def _average_pool(call: Call) -> Tensor:
    kernel = call.attributes["kernel_shape"]
    strides = call.get("strides", [1] * len(kernel))
    counted = bool(call.get("count_include_pad", 0))
    if set(call.get("dilations", [1])) != {1}:
        raise call.fault(
            f"has the dilations {call.get('dilations', [])}, and a mean of neighbours alone is read"
        )

    x, padding = _pad_input(call, call.tensor(0), kernel, strides, [1] * len(kernel))
    if x is not call.value(0) and not counted:
        raise call.fault("has other pads before than behind, which do not count")

    apply: Callable[..., Tensor] = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[len(kernel) - 1]
    return apply(x, kernel, strides, padding, bool(call.get("ceil_mode", 0)), counted)


def _global(function: Callable[..., Tensor]) -> Callable[[Call], Tensor]:
    def pool(call: Call) -> Tensor:
        x = call.tensor(0)
        return function(x, tuple(range(2, x.ndim)), keepdim=True)

    return pool


def _pad_input(
    call: Call,
    x: Tensor,
    kernel: list[int],
    strides: list[int],
    dilations: list[int],
    fill: float = 0.0,
) -> tuple[Tensor, list[int]]:
    """Return the input and the padding of an operation.

    The input itself is padded where the padding of its two ends differs.
    """
    sides = len(kernel)
    pads = list(call.get("pads", [0] * 2 * sides))
    mode = call.get("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        pads = [0] * 2 * sides
        for axis in range(sides):
            side = int(x.shape[2 + axis])
            reach = dilations[axis] * (kernel[axis] - 1) + 1
            windows = math.ceil(side / strides[axis])
            total = max((windows - 1) * strides[axis] + reach - side, 0)
            before = total // 2 if mode == "SAME_UPPER" else total - total // 2
            pads[axis] = before
            pads[sides + axis] = total - before

    if pads[:sides] == pads[sides:]:
        return x, pads[:sides]

    # PyTorch has the last side first.
    ends = []
    for axis in reversed(range(sides)):
        ends += [pads[axis], pads[sides + axis]]

    return F.pad(x, ends, value=fill), [0] * sides


def _linear(call: Call) -> Tensor:
    matrix = call.tensor(1)
    return F.linear(call.tensor(0), matrix if call.get("transB", 0) else matrix.T, call.optional(2))


def _general_product(call: Call) -> Tensor:
    a = call.tensor(0)
    b = call.tensor(1)
    a = a.T if call.get("transA", 0) else a
    product = a @ (b.T if call.get("transB", 0) else b)
    alpha = call.get("alpha", 1.0)
    beta = call.get("beta", 1.0)
    c = call.optional(2)
    product = product if alpha == 1.0 else product * alpha
    if c is None:
        return product

    return product + (c if beta == 1.0 else c * beta)


def _batch_norm(call: Call) -> Tensor:
    if call.get("training_mode", 0):
        raise call.fault("is in training mode: export the model in evaluation mode")

    x, weight, bias, mean, var = map(call.tensor, range(5))
    # ONNX has the weight of the old statistics. PyTorch writes 1 where they are the mean of all
    # batches.
    momentum = round(1 - call.get("momentum", 0.9), 7) or math.nan
    return F.batch_norm(
        x, mean, var, weight, bias, False, momentum, _real(call.get("epsilon", 1e-5))
    )


def _layer_norm(call: Call) -> Tensor:
    x = call.tensor(0)
    axis = call.get("axis", -1)
    shape = list(x.shape[axis:])
    return F.layer_norm(
        x, shape, call.tensor(1), call.optional(2), _real(call.get("epsilon", 1e-5))
    )


def _group_norm(call: Call) -> Tensor:
    x = call.tensor(0)
    groups = call.attributes["num_groups"]
    weight = call.tensor(1)
    bias = call.tensor(2)
    if call.opset < 21:
        # Of a group, not of a channel.
        repeats = int(x.shape[1]) // groups
        weight = weight.repeat_interleave(repeats)
        bias = bias.repeat_interleave(repeats)

    return F.group_norm(x, groups, weight, bias, _real(call.get("epsilon", 1e-5)))


def _response_norm(call: Call) -> Tensor:
    x = call.tensor(0)
    size = call.attributes["size"]
    alpha = _real(call.get("alpha", 1e-4))
    beta = _real(call.get("beta", 0.75))
    bias = _real(call.get("bias", 1.0))
    # PyTorch has the longer part of an even window before the channel, ONNX behind it.
    if size % 2:
        return F.local_response_norm(x, size, alpha, beta, bias)

    squares = F.pad(x.square().flatten(2).unsqueeze(1), (0, 0, (size - 1) // 2, size // 2))
    means = F.avg_pool2d(squares, (size, 1), stride=1).squeeze(1).reshape(x.shape)
    return x / (means * alpha + bias) ** beta


def _instance_norm(call: Call) -> Tensor:
    x = call.tensor(0)
    epsilon = _real(call.get("epsilon", 1e-5))
    return F.instance_norm(x, None, None, call.tensor(1), call.tensor(2), True, 0.1, epsilon)


def _dropout(call: Call) -> Tensor:
    ratio: Any = call.attributes.get("ratio")
    if ratio is None:
        ratio = call.operand(1) if call.value(1) is not None else 0.5

    return F.dropout(call.tensor(0), _real(ratio), training=False)


def _real(value: float) -> float:
    """Return a setting as it was written: files have 32 bits, in which 1e-5 is 9.99999974e-06."""
    return float(f"{value:.7g}")


FUNCTIONS: dict[str, Callable[[Call], Any]] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global(lambda x, sides, keepdim: x.mean(sides, keepdim=keepdim)),
    "GlobalMaxPool": _global(lambda x, sides, keepdim: x.amax(sides, keepdim=keepdim)),
    "Linear": _linear,
    "Gemm": _general_product,
    "MatMul": lambda call: call.tensor(0) @ call.tensor(1),
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LRN": _response_norm,
    "Dropout": _dropout,
}
"""Operator to its function. `Linear` is a product of `module` with a matrix of the file."""
