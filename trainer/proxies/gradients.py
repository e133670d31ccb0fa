"""Proxies of the gradients of the loss by weights and channels, and of paths (`synflow`).

| symbol | meaning                                        | shape         |
|--------|------------------------------------------------|---------------|
| W_l    | weights of layer l                             | of the layer  |
| G_l    | gradient of the loss by W_l                    | of the layer  |
| a, g   | activations of a channel, gradients by them    | (B, position) |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.probe import (
    NORMALISATIONS,
    Intercepting,
    NetworkProbe,
    argument,
    skip,
    weights,
)


@proxy(summary="norms of the gradients of the weights", paper="Abdelfattah et al., 2021")
def grad_norm(probe: NetworkProbe) -> float:
    """Return sum_l |G_l|, the sum of the Euclidean norms of the layers' gradients."""
    return float(sum(g.norm() for _, g in probe.passes.gradients))


@proxy(
    summary="change of the loss by the removal of weights",
    paper="Lee et al., 2019; Abdelfattah et al., 2021",
)
def snip(probe: NetworkProbe) -> float:
    """Return sum_l sum |W_l * G_l|.

    This is the first-order change of the loss by the removal of each weight.
    """
    return float(sum((w * g).abs().sum() for w, g in probe.passes.gradients))


@proxy(
    summary="Fisher information of channels",
    paper="Turner et al., 2020; Abdelfattah et al., 2021",
    needs="a convolution or linear layer",
)
def fisher(probe: NetworkProbe) -> float:
    """Return sum_l n_l sum_c 1/2 mean_b (sum_positions a g)^2; NaN without such layers.

    This is the Fisher information of scaling each channel. n_l is the number of weights of a
    channel: its information counts once for each of them, as in the implementation of Abdelfattah
    et al. and in the published tables.
    """
    saliencies = probe.passes.saliencies
    if not saliencies:
        return float("nan")

    return float(
        sum(0.5 * count * saliency.square().mean(0).sum() for saliency, count in saliencies)
    )


_LOG_SOFTMAX = frozenset(["log_softmax"])
_LOG_SUMS = frozenset(["logsumexp"])


def _mean(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    """Return a mean instead of the logarithm of a sum of exponentials: a handler."""
    dim = args[1] if len(args) > 1 else kwargs["dim"]
    return argument(args, kwargs, 0, "input", "self").mean(dim)


_LINEAR = {NORMALISATIONS: skip, _LOG_SOFTMAX: skip, _LOG_SUMS: _mean}


@proxy(
    summary="sum over all paths of the products of their weights",
    paper="Tanaka et al., 2020; Abdelfattah et al., 2021",
    needs="a convolution or linear layer",
)
def synflow(probe: NetworkProbe) -> float:
    """Return log sum_l sum |W_l * dR / dW_l|; NaN without weights, or where no path has any.

    R = sum f(1) of the network |W| without normalisation. All parameters and buffers are replaced
    by their absolute values, and all inputs are 1, so that R is a sum over all paths of the
    products of their weights. No data enter. R grows exponentially with depth; it is computed in
    double precision, and its logarithm ranks alike.

    The output of a network with several decisions is the logarithm of the mean of their softmaxes.
    The mean of the decisions replaces it here, as R would otherwise be a sum of log probabilities,
    which are no sums over paths.
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
        flows = []
        for w, g in zip(parameters, gradients, strict=True):
            if g is not None:
                flows.append((w.detach() * g).sum())

    return float(torch.stack(flows).sum().log()) if flows else float("nan")
