"""Fisher: sum_l n_l sum_c 1/2 mean_b (sum_positions a g)^2, the Fisher information of scaling each
channel.

n_l is the number of weights of a channel: the score counts the information of a channel for each of
them, as the implementation of Abdelfattah et al. and the published tables do.
"""

from __future__ import annotations

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.probe import NetworkProbe


@proxy(
    summary="Fisher information of channels",
    paper="Turner et al., 2020; Abdelfattah et al., 2021",
    needs="a convolution or linear layer",
)
def fisher(probe: NetworkProbe) -> float:
    """Return the score; NaN without such layers."""
    saliencies = probe.passes.saliencies
    if not saliencies:
        return float("nan")

    return float(sum(0.5 * count * each.square().mean(0).sum() for each, count in saliencies))
