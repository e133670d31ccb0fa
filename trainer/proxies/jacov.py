"""Covariance of Jacobians: -sum_i [log(s_i + k) + 1 / (s_i + k)], with s_i the eigenvalues of the
correlations of J.

J is the gradient of the sum of the outputs by each input, (B, ...); k = 1e-5. Uncorrelated
gradients have s_i = 1, the
maximum: the network can then treat inputs independently.
"""

from __future__ import annotations

import torch

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.probe import NetworkProbe

FLOOR = 1e-5
"""k."""


@proxy(
    summary="how uncorrelated the gradients by the inputs are",
    paper="Mellor et al., 2020; Abdelfattah et al., 2021",
)
def jacov(probe: NetworkProbe) -> float:
    """Return the score; NaN where the outputs do not depend on an input."""
    jacobian = probe.passes.input_gradient.flatten(1).double()
    correlations = torch.corrcoef(jacobian)
    if not bool(torch.isfinite(correlations).all()):
        return float("nan")

    eigenvalues = torch.linalg.eigvalsh(correlations).clamp(min=0.0) + FLOOR
    return -float((eigenvalues.log() + 1.0 / eigenvalues).sum())
