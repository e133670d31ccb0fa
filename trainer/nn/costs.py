"""Costs of a network: parameters, and floating point operations of one forward pass.

| quantity | definition                                                                            |
|----------|---------------------------------------------------------------------------------------|
| `params` | elements of all parameters outside of an auxiliary head                               |
| `flops`  | multiply-adds of convolutions, matrix products, recurrent layers and attention, and   |
|          | one addition for each output of a convolution or a linear layer with a bias; for one  |
|          | input in evaluation mode                                                              |

A multiply-add counts once, as in the files of NAS-Bench-201 and most papers of the field.
Normalisations, activations, pools and sums do not count. Every evaluation that the archive trains
has this definition; imported tables have their own, which may count the latter, too.

A decoder counts by the definitions of `archive.architecture.decoders.parts`: attention, for example,
over the positions that it reads, where a pass computes the others as well.

`torch.utils.flop_counter` counts a multiply-add twice, and no bias. Its first use loads torch's
compiler, which takes seconds and no trial needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from archive.trainer.nn.base import CountsFlops, HasAuxiliaryHead


class Costs(NamedTuple):
    """Costs of a network; see the module."""

    params: int
    flops: int


def measure(module: nn.Module, input_shape: Sequence[int]) -> Costs:
    """Return the costs of a network.

    Args:
        module: Any network with one input, which passes a batch of one input of zeros forward;
            unchanged.
        input_shape: Shape of one input, without the batch.
    """
    return Costs(params(module), flops(module, input_shape))


def params(module: nn.Module) -> int:
    """Return the number of parameters outside of an auxiliary head."""
    total = count_numbers(module.parameters())
    if isinstance(module, HasAuxiliaryHead):
        total -= count_numbers(module.auxiliary.parameters())

    return total


def count_numbers(tensors: Iterable[Tensor]) -> int:
    """Return the number of numbers in some tensors."""
    return sum(tensor.numel() for tensor in tensors)


def flops(module: nn.Module, input_shape: Sequence[int]) -> int:
    """Return the multiply-adds of one input."""
    if isinstance(module, CountsFlops):
        return module.count_flops(input_shape)

    first = next(iter(module.parameters()), torch.empty(()))
    device = next(chain(module.parameters(), module.buffers()), first).device
    return flops_of(module, [torch.zeros((1, *input_shape), dtype=first.dtype, device=device)])


def flops_of(module: nn.Module, inputs: Sequence[Tensor]) -> int:
    """Return the multiply-adds of a forward pass in evaluation mode.

    Args:
        module: Any network; unchanged.
        inputs: Its inputs, on its device.
    """
    modes = [(part, part.training) for part in module.modules()]
    counter = _Counter()
    fused = torch.backends.mha.get_fastpath_enabled()
    try:
        # The fast path runs a whole layer of a transformer as one operation, which has no count.
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.no_grad(), counter:
            module.eval()(*inputs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        for part, training in modes:
            part.training = training

    return counter.total


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sums the multiply-adds of the operations that run under it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Torch would load its compiler, in order to keep it away from this mode: seconds that no
        # trial needs.
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        count = _COUNTS.get(func.overloadpacket)
        if count is not None:
            self.total += count(out, *args)

        return out


def _convolution(
    out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None, *settings: Any
) -> int:
    # (outputs, inputs / groups, *kernel) for each pixel; transposed, (inputs, outputs / groups,
    # *kernel).
    transposed = settings[3]
    pixels = x if transposed else out
    products = pixels.shape[0] * math.prod(pixels.shape[2:]) * weight.numel()
    additions = 0 if bias is None else out.numel()
    return products + additions


def _product(out: Tensor, a: Tensor, b: Tensor) -> int:
    return out.numel() * a.shape[-1]


def _product_with_bias(out: Tensor, bias: Tensor, a: Tensor, b: Tensor) -> int:
    return out.numel() * (a.shape[-1] + 1)


def _attention(out: Sequence[Tensor], query: Tensor, key: Tensor, value: Tensor, *_: Any) -> int:
    # Scores (…, queries, keys) from the features, then a mean of the values.
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    return scores * (query.shape[-1] + value.shape[-1])


def _bilinear(out: Tensor, a: Tensor, weight: Tensor, b: Tensor, *_: Any) -> int:
    # Each output of one input is a sum over all pairs of features; the bias is added by another
    # operation.
    return a.shape[0] * weight.numel()


def _count_recurrent_layer(out: Sequence[Tensor], x: Tensor, *settings: Any) -> int:
    # The first four settings are the matrices of the input and of the state, and their biases,
    # which may be absent.
    weights: Sequence[Tensor] = settings[:4]
    biased = settings[11]
    used = weights if biased else weights[:2]
    return _steps(x) * count_numbers(used)


def _count_recurrent_layers(
    out: Sequence[Tensor], x: Tensor, weights: Sequence[Tensor], *_: Any
) -> int:
    return _steps(x) * count_numbers(weights)


def _steps(x: Tensor) -> int:
    """Return how often a recurrent layer applies its weights to an input (…, features)."""
    return math.prod(x.shape[:-1])


_aten = torch.ops.aten
_COUNTS: dict[Any, Callable[..., int]] = {
    _aten.convolution: _convolution,
    _aten.mm: _product,
    _aten.bmm: _product,
    _aten.addmm: _product_with_bias,
    _aten.baddbmm: _product_with_bias,
    _aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    _aten._scaled_dot_product_flash_attention: _attention,
    _aten._scaled_dot_product_efficient_attention: _attention,
    _aten._scaled_dot_product_cudnn_attention: _attention,
    _aten._trilinear: _bilinear,
    _aten.mkldnn_rnn_layer: _count_recurrent_layer,
    _aten._cudnn_rnn: _count_recurrent_layers,
}
