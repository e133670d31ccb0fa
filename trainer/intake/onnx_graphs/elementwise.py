"""Operators of ONNX that compute element by element, or reduce sides."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from archive.trainer.intake.onnx_graphs.files import torch_type
from archive.trainer.intake.onnx_graphs.values import Call, count_axes

Function = Callable[[Call], Any]

_ALPHA = 1.67326319217681884765625
_GAMMA = 1.05070102214813232421875
"""Settings of SELU, where the file has none."""


def _make_unary(function: Callable[..., Tensor], **settings: tuple[str, Any]) -> Function:
    """Return an operator of one input; settings are PyTorch's name to ONNX's name and default."""

    def apply(call: Call) -> Tensor:
        arguments = {}
        for name, (onnx_name, default) in settings.items():
            arguments[name] = _real(call.get(onnx_name, default))

        return function(call.tensor(0), **arguments)

    return apply


def _make_binary(function: Callable[[Any, Any], Any]) -> Function:
    def apply(call: Call) -> Any:
        return function(call.operand(0), call.operand(1))

    return apply


def _make_variadic(function: Callable[[Any, Any], Any]) -> Function:
    def apply(call: Call) -> Any:
        return reduce(function, call.tensors())

    return apply


def _divide(call: Call) -> Any:
    first = call.operand(0)
    second = call.operand(1)
    whole = _is_whole(first) and _is_whole(second)
    return torch.div(first, second, rounding_mode="trunc") if whole else first / second


def _is_whole(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.is_floating_point()

    return isinstance(value, int)


def _power(call: Call) -> Any:
    exponent = call.operand(1)
    if isinstance(exponent, float) and exponent.is_integer():
        exponent = int(exponent)

    return call.tensor(0) ** exponent


def _clip(call: Call) -> Tensor:
    low = _read_bound(call, "min", 1)
    high = _read_bound(call, "max", 2)
    return torch.clamp(call.tensor(0), low, high)


def _read_bound(call: Call, name: str, position: int) -> Any:
    """Return a bound from an attribute (older files) or an input; None without a bound."""
    if name in call.attributes:
        return call.attributes[name]

    return call.operand(position) if call.value(position) is not None else None


def _prelu(call: Call) -> Tensor:
    x = call.tensor(0)
    slope = call.tensor(1)
    # Slopes are broadcast: one a channel has the sides of an image behind it.
    by_channel = (slope.numel(), *[1] * (x.ndim - 2))
    of_channels = x.ndim > 1 and tuple(slope.shape[1 - x.ndim :]) == by_channel
    if slope.numel() == 1 or (of_channels and slope.numel() == x.shape[1]):
        return F.prelu(x, slope.reshape(-1))

    return torch.where(x > 0, x, x * slope)


def _softmax(function: Callable[..., Tensor]) -> Function:
    def apply(call: Call) -> Any:
        x = call.tensor(0)
        axis = call.get("axis", -1 if call.opset >= 13 else 1) % x.ndim
        if call.opset >= 13 or axis == x.ndim - 1:
            return function(x, dim=axis)

        # Older operators take all sides from the axis on as one.
        return function(x.flatten(axis), dim=axis).reshape(x.shape)

    return apply


def _selu(call: Call) -> Tensor:
    x = call.tensor(0)
    alpha = _real(call.get("alpha", _ALPHA))
    gamma = _real(call.get("gamma", _GAMMA))
    if alpha == _real(_ALPHA) and gamma == _real(_GAMMA):
        return F.selu(x)

    scaled: Tensor = gamma * (torch.relu(x) + alpha * torch.expm1(torch.clamp(x, max=0.0)))
    return scaled


def _hard_sigmoid(call: Call) -> Tensor:
    slope = _real(call.get("alpha", 0.2))
    offset = _real(call.get("beta", 0.5))
    return torch.clamp(call.tensor(0) * slope + offset, 0.0, 1.0)


def _where(call: Call) -> Tensor:
    return torch.where(call.tensor(0), call.operand(1), call.operand(2))


def _cast(call: Call) -> Tensor:
    return call.tensor(0).to(torch_type(call, call.attributes["to"]))


def _make_reduction(function: Callable[[Tensor, list[int], bool], Tensor]) -> Function:
    def apply(call: Call) -> Tensor:
        x = call.tensor(0)
        axes = call.numbers(1, "axes")
        if not axes and call.get("noop_with_empty_axes", 0):
            return x

        return function(x, axes or list(range(x.ndim)), bool(call.get("keepdims", 1)))

    return apply


def _product(x: Tensor, sides: list[int], kept: bool) -> Tensor:
    for side in sorted(count_axes(sides, x.ndim), reverse=True):
        x = x.prod(side, keepdim=kept)

    return x


def _best(function: Callable[..., Tensor]) -> Function:
    def apply(call: Call) -> Tensor:
        x = call.tensor(0)
        axis = call.get("axis", 0)
        kept = bool(call.get("keepdims", 1))
        if call.get("select_last_index", 0):
            # The first of the best from behind.
            last: Tensor = x.shape[axis] - 1 - function(x.flip(axis), axis, keepdim=kept)
            return last

        return function(x, axis, keepdim=kept)

    return apply


def _running_sum(call: Call) -> Tensor:
    if call.get("exclusive", 0) or call.get("reverse", 0):
        raise call.fault("is exclusive or in reverse")

    (axis,) = call.numbers(1) or [0]
    return torch.cumsum(call.tensor(0), axis)


def _largest(call: Call) -> tuple[Tensor, ...]:
    (count,) = call.numbers(1, "k") or [1]
    top = torch.topk(call.tensor(0), count, call.get("axis", -1), bool(call.get("largest", 1)))
    return top[0], top[1]


def _real(value: Any) -> Any:
    return float(f"{value:.7g}") if isinstance(value, float) else value


_PLAIN: dict[str, Callable[..., Tensor]] = {
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Tanh": torch.tanh,
    "HardSwish": F.hardswish,
    "Mish": F.mish,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Log": torch.log,
    "Sqrt": torch.sqrt,
    "Abs": torch.abs,
    "Neg": torch.neg,
    "Reciprocal": torch.reciprocal,
    "Floor": torch.floor,
    "Ceil": torch.ceil,
    "Round": torch.round,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Cos": torch.cos,
    "Not": torch.logical_not,
    "IsNaN": torch.isnan,
    "Identity": lambda x: x,
}

FUNCTIONS: dict[str, Function] = {
    **{name: _make_unary(function) for name, function in _PLAIN.items()},
    "LeakyRelu": _make_unary(F.leaky_relu, negative_slope=("alpha", 0.01)),
    "Elu": _make_unary(F.elu, alpha=("alpha", 1.0)),
    "Celu": _make_unary(F.celu, alpha=("alpha", 1.0)),
    "Selu": _selu,
    "Gelu": _make_unary(F.gelu, approximate=("approximate", "none")),
    "HardSigmoid": _hard_sigmoid,
    "PRelu": _prelu,
    "Clip": _clip,
    "Softmax": _softmax(F.softmax),
    "LogSoftmax": _softmax(F.log_softmax),
    "Add": _make_binary(lambda a, b: a + b),
    "Sub": _make_binary(lambda a, b: a - b),
    "Mul": _make_binary(lambda a, b: a * b),
    "Div": _divide,
    "Pow": _power,
    "Min": _make_variadic(torch.minimum),
    "Max": _make_variadic(torch.maximum),
    "Sum": _make_variadic(torch.add),
    "Equal": _make_binary(lambda a, b: a == b),
    "Greater": _make_binary(lambda a, b: a > b),
    "GreaterOrEqual": _make_binary(lambda a, b: a >= b),
    "Less": _make_binary(lambda a, b: a < b),
    "LessOrEqual": _make_binary(lambda a, b: a <= b),
    "And": _make_variadic(torch.logical_and),
    "Or": _make_variadic(torch.logical_or),
    "Where": _where,
    "Cast": _cast,
    "ReduceMean": _make_reduction(lambda x, sides, kept: x.mean(sides, keepdim=kept)),
    "ReduceSum": _make_reduction(lambda x, sides, kept: x.sum(sides, keepdim=kept)),
    "ReduceMax": _make_reduction(lambda x, sides, kept: x.amax(sides, keepdim=kept)),
    "ReduceMin": _make_reduction(lambda x, sides, kept: x.amin(sides, keepdim=kept)),
    "ReduceProd": _make_reduction(_product),
    "ReduceL2": _make_reduction(lambda x, sides, kept: x.square().sum(sides, keepdim=kept).sqrt()),
    "ReduceSumSquare": _make_reduction(lambda x, sides, kept: x.square().sum(sides, keepdim=kept)),
    "ArgMax": _best(torch.argmax),
    "ArgMin": _best(torch.argmin),
    "CumSum": _running_sum,
    "TopK": _largest,
}
"""Operator to its function."""
