"""Zen score: log E |F(x) - F(x + alpha e)| + sum_n log sqrt(mean s_n^2), of a network with normal
weights.

| symbol | meaning                                                                                  | shape    |
|--------|------------------------------------------------------------------------------------------|----------|
| x, e   | standard normal inputs                                                                   | (B, ...) |
| alpha  | 0.01                                                                                     | scalar   |
| F      | last values with positions, before the mean over an image; of networks of vectors, the   | (B, ...) |
|        | input of the last layer                                                                  |          |
| s_n^2  | variances of the channels that normalisation n divides by                                | (c,)     |

Weights of matrices and kernels are drawn from a standard normal distribution. |.| is the sum of
absolute values of an input's features, E the mean over the batch. The sum restores the scale that
normalisations remove (Lin et al., Zen-NAS, 2021, algorithm 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from archive.trainer.proxies.base import proxy
from archive.trainer.proxies.calls import NORMALISATIONS, PRODUCTS, Intercepting, argument
from archive.trainer.proxies.probe import NetworkProbe, weights

ALPHA = 0.01


@proxy(
    summary="change of features by a change of the input, before normalisation",
    paper="Lin et al., 2021 (Zen-NAS)",
    needs="a convolution or linear layer",
)
def zen(probe: NetworkProbe) -> float:
    """Return the score; NaN without such layers, or where features do not change."""
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
