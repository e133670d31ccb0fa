"""An untrained network with one batch, and the passes that proxies share.

| symbol   | meaning                                                            | shape       |
|----------|--------------------------------------------------------------------|-------------|
| B        | inputs of the batch                                                | scalar      |
| x, f(x)  | inputs; outputs of the network in training mode                    | (B, ...)    |
| L        | mean loss of the batch: cross entropy; mean square in a regression | scalar      |
| W_l, G_l | weights of layer l, a matrix or kernel, without offsets; dL / dW_l |             |
| h_r      | whether each unit of rectifier r has a positive input, 0 or 1      | (B, units)  |
| a, g     | outputs of a convolution or linear layer; dL / da                  | (B, c, ...) |

One forward pass and two backward passes give what the proxies of activations and gradients need. In
training mode, batch normalisation uses the statistics of the batch, as published values do.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
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

    Calls are recognised by the name of the function, so that modules, `torch.nn.functional` and
    `torch.ops.aten` are treated alike.

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
        self._handlers: dict[str, Handler] = {}
        for names, handler in handlers.items():
            self._handlers |= dict.fromkeys(names, handler)

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


def argument(args: Sequence[Any], kwargs: Mapping[str, Any], position: int, *names: str) -> Tensor:
    """Return an argument of a call by its position or its name."""
    tensor: Tensor = (
        args[position]
        if len(args) > position
        else next(kwargs[name] for name in names if name in kwargs)
    )
    return tensor


def name_of(func: Callable[..., Any]) -> str:
    """Return the name of a function; an overload of ATen is called `relu.default`."""
    return getattr(func, "__name__", "").partition(".")[0]


def by_channel(func: Callable[..., Any], values: Tensor) -> Tensor:
    """Return inputs or outputs of a convolution or linear layer as (B, positions, c)."""
    if name_of(func) == "linear":
        return values.reshape(len(values), -1, values.shape[-1])

    return values.flatten(2).transpose(1, 2)


def skip(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    """Return the input of a call instead of its value: a handler."""
    return argument(args, kwargs, 0, "input", "self")


@final
@dataclass(frozen=True, eq=False)
class Passes:
    """Records of a forward pass and of its backward passes.

    Attributes:
        agreement: Units in the same state for two inputs, sum_r h_r h_r^T + (1 - h_r)(1 - h_r)^T:
            (B, B) float64; None without rectifiers.
        features: The last input of a convolution or linear layer of each shape, by input, position
            and channel: (B, positions, c).
        saliencies: For each convolution or linear layer, the sums of a * g over the positions of a
            channel, (B, c), and the number of weights of a channel.
        gradients: W_l and G_l.
        input_gradient: Gradient of the sum of all outputs by x: (B, ...).
    """

    agreement: Tensor | None
    features: tuple[Tensor, ...]
    saliencies: tuple[tuple[Tensor, int], ...]
    gradients: tuple[tuple[Tensor, Tensor], ...]
    input_gradient: Tensor


@final
@dataclass(frozen=True, eq=False)
class NetworkProbe:
    """An untrained network with one batch; the passes that proxies share are computed once.

    Attributes:
        network: The network, on the device of the batch.
        inputs: x.
        targets: (B,) int64 classes, or float32 values.
        kind: `classification` or `regression`.
        seed: Seed of random inputs, of random weights, and of random parts of the network.
    """

    network: nn.Module
    inputs: Tensor
    targets: Tensor
    kind: Literal["classification", "regression"] = "classification"
    seed: int = 0

    @cached_property
    def passes(self) -> Passes:
        """Records of the passes in training mode."""
        with self.copied() as network:
            return _Recorder(network).run(self)

    @contextmanager
    def copied(self) -> Iterator[nn.Module]:
        """Give a copy of the network in training mode while torch's generators are seeded."""
        devices = [self.inputs.device] if self.inputs.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(self.seed)
            yield copy.deepcopy(self.network).train()

    def loss(self, outputs: Tensor) -> Tensor:
        """Return L."""
        if self.kind == "classification":
            return F.cross_entropy(outputs, self.targets)

        return F.mse_loss(outputs.reshape(self.targets.shape), self.targets)


def weights(network: nn.Module) -> list[nn.Parameter]:
    """Return W_l of all layers."""
    return [parameter for parameter in network.parameters() if parameter.ndim > 1]


class _Recorder:
    """Records what `Passes` has."""

    def __init__(self, network: nn.Module) -> None:
        self._network = network
        self._agreement: Tensor | None = None
        self._features: dict[tuple[int, ...], Tensor] = {}
        self._saliencies: list[tuple[Tensor, int]] = []
        self._of_loss = True

    def run(self, probe: NetworkProbe) -> Passes:
        x = probe.inputs.detach().clone().requires_grad_()
        parameters = weights(self._network)
        with Intercepting({RECTIFIERS: self._rectifier, PRODUCTS: self._product}):
            outputs = self._network(x)

        loss = probe.loss(outputs)
        # With x, as a network may have no weights.
        *gradients, _ = torch.autograd.grad(
            loss, [*parameters, x], retain_graph=True, allow_unused=True
        )
        self._of_loss = False
        (input_gradient,) = torch.autograd.grad(outputs.sum(), [x], allow_unused=True)
        return Passes(
            self._agreement,
            tuple(self._features.values()),
            tuple(self._saliencies),
            tuple(
                (w.detach(), g) for w, g in zip(parameters, gradients, strict=True) if g is not None
            ),
            torch.zeros_like(x) if input_gradient is None else input_gradient,
        )

    def _rectifier(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        # Before the call, which may overwrite its input.
        active = (argument(args, kwargs, 0, "input", "self").detach().flatten(1) > 0).float()
        inactive = 1.0 - active
        same = (active @ active.T + inactive @ inactive.T).double()
        self._agreement = same if self._agreement is None else self._agreement + same
        return func(*args, **kwargs)

    def _product(
        self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        entered = argument(args, kwargs, 0, "input", "self")
        weight = argument(args, kwargs, 1, "weight")
        self._features[entered.shape[1:]] = by_channel(func, entered.detach())
        out: Tensor = func(*args, **kwargs)
        if out.requires_grad:
            # A copy: the network may overwrite the outputs.
            self._saliency(func, out, weight[0].numel())

        return out

    def _saliency(self, func: Callable[..., Any], out: Tensor, count: int) -> None:
        """Record the saliencies of a layer's channels when the gradient passes its outputs."""
        values = out.detach().clone()

        def record(gradient: Tensor) -> None:
            if self._of_loss:
                self._saliencies.append((by_channel(func, values * gradient).sum(1), count))

        out.register_hook(record)  # type: ignore[no-untyped-call]
