"""Torch functions that a forward pass calls, by kind: rectifiers, products with weights,
normalisations.

Calls are recognised by the name of the function, so that networks of modules, of functions and of
ATen operations are treated alike: a network may call an operation through a module,
`torch.nn.functional` or `torch.ops.aten`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from torch import Tensor
from torch.overrides import TorchFunctionMode

RECTIFIERS = frozenset(
    ["relu", "relu_", "relu6", "leaky_relu", "leaky_relu_", "prelu", "rrelu", "elu", "elu_"]
)
"""Activations with a kink, or nearly one, at zero: the sign of their input says which piece is
active."""

PRODUCTS = frozenset(["conv1d", "conv2d", "conv3d", "convolution", "linear"])
"""Convolutions and linear layers; the input comes first, the weights second."""

NORMALISATIONS = frozenset(["batch_norm", "instance_norm", "group_norm", "layer_norm", "rms_norm"])

Handler = Callable[[Callable[..., Any], Sequence[Any], Mapping[str, Any]], Any]
"""Receives a function with its positional and named arguments, and returns the value of the
call."""


@final
class Intercepting(TorchFunctionMode):
    """Context in which calls of some functions go through a handler.

    Args:
        handlers: Names of functions with their handler. A handler's own calls are not intercepted.
        seen: Receives the value of each call.
    """

    def __init__(
        self,
        handlers: Mapping[frozenset[str], Handler],
        seen: Callable[[Any], None] = lambda value: None,
    ) -> None:
        super().__init__()
        self._seen = seen
        self._handlers = {name: handler for names, handler in handlers.items() for name in names}

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the handler of a function, or the function itself."""
        handler = self._handlers.get(name_of(func))
        value = (
            func(*args, **(kwargs or {})) if handler is None else handler(func, args, kwargs or {})
        )
        self._seen(value)
        return value


def argument(args: Sequence[Any], kwargs: Mapping[str, Any], at: int, *names: str) -> Tensor:
    """Return an argument of a call by its position or its name."""
    tensor: Tensor = (
        args[at] if len(args) > at else next(kwargs[name] for name in names if name in kwargs)
    )
    return tensor


def name_of(func: Callable[..., Any]) -> str:
    """Return the name of a function; an overload of ATen is called `relu.default`."""
    return getattr(func, "__name__", "").partition(".")[0]


def by_channel(func: Callable[..., Any], values: Tensor) -> Tensor:
    """Return inputs or outputs of a convolution or linear layer by position and channel:

    (B, positions, c).
    """
    if name_of(func) == "linear":
        return values.reshape(len(values), -1, values.shape[-1])

    return values.flatten(2).transpose(1, 2)


def skipped(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    """Return the input of a call instead of its value: a handler."""
    return argument(args, kwargs, 0, "input", "self")
