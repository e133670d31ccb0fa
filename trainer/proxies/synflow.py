"""Synaptic flow: sum_l sum |W_l * dR / dW_l|, with R = sum f(1) of the network |W| without normalisation.

All parameters and buffers are replaced by their absolute values, and the input is one of ones, so that R is a sum over
all paths of the products of their weights. No data enter. Computed in double precision, as R grows exponentially with
depth.
"""

from __future__ import annotations

import torch

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.calls import NORMALISATIONS, Intercepting, skipped
from archive.trainer.proxies.probe import NetworkProbe, weights


@proxy(
    summary="sum over all paths of the products of their weights",
    paper="Tanaka et al., 2020; Abdelfattah et al., 2021",
    needs="a convolution or linear layer",
)
def synflow(probe: NetworkProbe) -> float:
    """Return the logarithm of the score, which ranks alike; NaN without weights, or where no path has any."""
    with probe.copied() as network, Intercepting({NORMALISATIONS: skipped}):
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
        flows = [(w.detach() * g).sum() for w, g in zip(parameters, gradients, strict=True) if g is not None]
    return float(torch.stack(flows).sum().log()) if flows else float("nan")
