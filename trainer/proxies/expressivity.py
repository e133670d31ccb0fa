"""Expressivity: sum over stages of the entropy -sum_i p_i log p_i, with p the spectrum of the
features' covariance.

| symbol | meaning                                                                                      | shape  |
|--------|----------------------------------------------------------------------------------------------|--------|
| F      | features of a stage: the last input of a convolution or linear layer of one shape; each      | (n, c) |
|        | position of an image is a row                                                                |        |
| p      | eigenvalues of the covariance of F, divided by their sum                                     | (c,)   |

Features that spread over all directions have the largest entropy, log c. The definition is that of
Lee and Ham (AZ-NAS, 2024, section 3.2), with their blocks replaced by the stages of equal shape,
which every network has.
"""

from __future__ import annotations

import torch
from torch import Tensor

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.probe import NetworkProbe


@proxy(
    summary="entropy of the principal components of features",
    paper="Lee and Ham, 2024 (AZ-NAS)",
    needs="a convolution or linear layer",
)
def expressivity(probe: NetworkProbe) -> float:
    """Return the score; NaN without such layers, or where features of a stage are constant."""
    features = probe.passes.features
    return sum(map(_entropy, features)) if features else float("nan")


def _entropy(features: Tensor) -> float:
    channels = features.shape[-1]
    covariance = torch.cov(features.flatten(0, 1).T.double()).reshape(channels, channels)
    spectrum = torch.linalg.eigvalsh(covariance).clamp(min=0.0)
    return float(torch.special.entr(spectrum / spectrum.sum()).sum())
