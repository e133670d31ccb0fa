"""Synaptic flow: sum_l sum |W_l * dR / dW_l|, with R = sum f(1) of the network |W| without
normalisation.

All parameters and buffers are replaced by their absolute values, and the input is one of ones, so
that R is a sum over all paths of the products of their weights. No data enter. Computed in double
precision, as R grows exponentially with depth.

The output of a network with several decisions is the logarithm of the mean of their softmaxes;
their mean takes its place, as R would otherwise be a sum of log probabilities, which are no sums
over paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.calls import NORMALISATIONS, Intercepting, argument, skipped
from archive.trainer.proxies.probe import NetworkProbe, weights

_LOG_SOFTMAX = frozenset(["log_softmax"])
_LOG_SUMS = frozenset(["logsumexp"])


def _mean(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    """Return a mean instead of the logarithm of a sum of exponentials: a handler."""
    dim = args[1] if len(args) > 1 else kwargs["dim"]
    return argument(args, kwargs, 0, "input", "self").mean(dim)


_LINEAR = {NORMALISATIONS: skipped, _LOG_SOFTMAX: skipped, _LOG_SUMS: _mean}


@proxy(
    summary="sum over all paths of the products of their weights",
    paper="Tanaka et al., 2020; Abdelfattah et al., 2021",
    needs="a convolution or linear layer",
)
def synflow(probe: NetworkProbe) -> float:
    """Return the logarithm of the score, which ranks alike;

    NaN without weights, or where no path has any.
    """
    with probe.copied() as network, Intercepting(_LINEAR):
        # Without the random parts of the training mode.
        network.double().eval()
        with torch.no_grad():
            for tensor in network.state_dict().values():
                tensor.abs_()

        ones = torch.ones_like(probe.inputs[:1], dtype=torch.float64)
        parameters = weights(network)
        if not parameters:
            return float("nan")

        gradients = torch.autograd.grad(network(ones).sum(), parameters, allow_unused=True)
        flows = [
            (w.detach() * g).sum()
            for w, g in zip(parameters, gradients, strict=True)
            if g is not None
        ]

    return float(torch.stack(flows).sum().log()) if flows else float("nan")
