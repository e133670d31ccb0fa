"""Gradient norm: sum_l |G_l|, the Euclidean norms of the gradients of the layers."""

from __future__ import annotations

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.probe import NetworkProbe


@proxy(summary="norms of the gradients of the weights", paper="Abdelfattah et al., 2021")
def grad_norm(probe: NetworkProbe) -> float:
    """Return the score."""
    return float(sum(g.norm() for _, g in probe.passes.gradients))
