"""NASWOT: log |det K|, with K_ij the number of rectifier units in the same state for the inputs i
and j.

    K = sum_r h_r h_r^T + (1 - h_r)(1 - h_r)^T        (`probe.Passes.agreement`)

Inputs in one linear region of the network have equal rows of K. The score is that of the paper's
second version, in training mode.
"""

from __future__ import annotations

import torch

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.probe import NetworkProbe


@proxy(
    summary="how different the linear regions of inputs are",
    paper="Mellor et al., 2021",
    needs="a rectifier",
)
def naswot(probe: NetworkProbe) -> float:
    """Return the score;

    NaN without rectifiers, or where K is singular, as for two inputs in one linear region.
    """
    agreement = probe.passes.agreement
    # The computed determinant of a singular matrix is a product of rounding errors.
    if agreement is None or torch.linalg.matrix_rank(agreement, hermitian=True) < len(agreement):
        return float("nan")

    return float(torch.linalg.slogdet(agreement).logabsdet)
