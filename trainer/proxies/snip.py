"""SNIP: sum_l sum |W_l * G_l|, the first-order change of the loss by the removal of each weight."""

from __future__ import annotations

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.probe import NetworkProbe


@proxy(
    summary="change of the loss by the removal of weights",
    paper="Lee et al., 2019; Abdelfattah et al., 2021",
)
def snip(probe: NetworkProbe) -> float:
    """Return the score."""
    return float(sum((w * g).abs().sum() for w, g in probe.passes.gradients))
