"""Proxies of the activations of a network, and of changes of its outputs with its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.probe import (
    NORMALISATIONS,
    PRODUCTS,
    Intercepting,
    NetworkProbe,
    argument,
    weights,
)

FLOOR = 1e-5
"""k."""


@proxy(
    summary="how uncorrelated the gradients by the inputs are",
    paper="Mellor et al., 2020; Abdelfattah et al., 2021",
)
def jacov(probe: NetworkProbe) -> float:
    """Return -sum_i [log(s_i + k) + 1 / (s_i + k)]; NaN where outputs do not depend on an input.

    s_i are the eigenvalues of the correlations of J, the gradient of the sum of the outputs by each
    input, (B, ...); k = 1e-5. Uncorrelated gradients have s_i = 1, the maximum: the network can
    then treat inputs independently.
    """
    jacobian = probe.passes.input_gradient.flatten(1).double()
    correlations = torch.corrcoef(jacobian)
    if not bool(torch.isfinite(correlations).all()):
        return float("nan")

    eigenvalues = torch.linalg.eigvalsh(correlations).clamp(min=0.0) + FLOOR
    return -float((eigenvalues.log() + 1.0 / eigenvalues).sum())


@proxy(
    summary="how different the linear regions of inputs are",
    paper="Mellor et al., 2021",
    needs="a rectifier",
)
def naswot(probe: NetworkProbe) -> float:
    """Return log |det K|, K_ij being the number of rectifiers in one state for inputs i and j.

        K = sum_r h_r h_r^T + (1 - h_r)(1 - h_r)^T        (`probe.Passes.agreement`)

    Inputs in one linear region of the network have equal rows of K. This is the score of the
    paper's second version, in training mode. It is NaN without rectifiers, or where K is singular,
    as for two inputs in one linear region.
    """
    agreement = probe.passes.agreement
    # The computed determinant of a singular matrix is a product of rounding errors.
    if agreement is None or torch.linalg.matrix_rank(agreement, hermitian=True) < len(agreement):
        return float("nan")

    return float(torch.linalg.slogdet(agreement).logabsdet)


@proxy(
    summary="entropy of the principal components of features",
    paper="Lee and Ham, 2024 (AZ-NAS)",
    needs="a convolution or linear layer",
)
def expressivity(probe: NetworkProbe) -> float:
    """Return the sum over stages of the entropy -sum_i p_i log p_i of their features' spectrum.

    | symbol | meaning                                                                 | shape  |
    |--------|-------------------------------------------------------------------------|--------|
    | F      | features of a stage: the last input of a convolution or linear layer of | (n, c) |
    |        | one shape; each position of an image is a row                           |        |
    | p      | eigenvalues of the covariance of F, divided by their sum                | (c,)   |

    Features that spread over all directions have the largest entropy, log c. The definition is
    from Lee and Ham (AZ-NAS, 2024, section 3.2), with their blocks replaced by the stages of equal
    shape, which every network has. It is NaN without such layers, or where the features of a stage
    are constant.
    """
    features = probe.passes.features
    return sum(map(_entropy, features)) if features else float("nan")


def _entropy(features: Tensor) -> float:
    channels = features.shape[-1]
    covariance = torch.cov(features.flatten(0, 1).T.double()).reshape(channels, channels)
    spectrum = torch.linalg.eigvalsh(covariance).clamp(min=0.0)
    return float(torch.special.entr(spectrum / spectrum.sum()).sum())


ALPHA = 0.01


@proxy(
    summary="change of features by a change of the input, before normalisation",
    paper="Lin et al., 2021 (Zen-NAS)",
    needs="a convolution or linear layer",
)
def zen(probe: NetworkProbe) -> float:
    """Return log E |F(x) - F(x + alpha e)| + sum_n log sqrt(mean s_n^2), with normal weights.

    | symbol | meaning                                                                 | shape    |
    |--------|-------------------------------------------------------------------------|----------|
    | x, e   | standard normal inputs                                                  | (B, ...) |
    | alpha  | 0.01                                                                    | scalar   |
    | F      | last values with positions, before the mean over an image; of networks  | (B, ...) |
    |        | of vectors, the input of the last layer                                 |          |
    | s_n^2  | variances of the channels that normalisation n divides by               | (c,)     |

    Weights of matrices and kernels are drawn from a standard normal distribution. |.| is the sum
    of absolute values of an input's features, E the mean over the batch. The sum over n restores
    the scale that normalisations remove (Lin et al., Zen-NAS, 2021, algorithm 1). The score is NaN
    without such layers, or where features do not change.
    """
    with probe.copied() as network, torch.no_grad():
        for weight in weights(network):
            weight.normal_()

        x = torch.randn_like(probe.inputs)
        before, scale = _features(network, x)
        after, _ = _features(network, x + ALPHA * torch.randn_like(x))

    if before is None or after is None:
        return float("nan")

    change = (before - after).abs().flatten(1).sum(1).mean()
    return float(change.log() + scale)


def _features(network: nn.Module, x: Tensor) -> tuple[Tensor | None, float]:
    """Return F and the sum over normalisations."""
    entered: list[Tensor] = []
    spatial: list[Tensor] = []
    scales: list[float] = []

    def product(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        entered[:] = [argument(args, kwargs, 0, "input", "self")]
        return func(*args, **kwargs)

    def normalisation(
        func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        values = argument(args, kwargs, 0, "input", "self").transpose(0, 1).flatten(1)
        scales.append(0.5 * float(values.var(1, correction=0).mean().log()))
        return func(*args, **kwargs)

    def seen(value: Any) -> None:
        if isinstance(value, Tensor) and value.ndim > 3 and len(value) == len(x):
            spatial[:] = [value]

    with Intercepting({PRODUCTS: product, NORMALISATIONS: normalisation}, seen):
        network(x)

    return next(iter(spatial or entered), None), sum(scales)
