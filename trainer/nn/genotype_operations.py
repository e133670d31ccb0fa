"""Operations of the networks of genotypes, as in `cnn/operations.py` of DARTS' repository.

    operation        module, from C channels to C channels with stride s
    sep_conv_kxk     twice: relu, depthwise k x k, pointwise, normalisation; stride s in the first
    dil_conv_kxk     relu, depthwise k x k with dilation 2 and stride s, pointwise, normalisation
    conv_7x1_1x7     relu, 1x7 with stride s along the rows, 7x1 with stride s along the columns,
                     normalisation
    max_pool_3x3     maximum of the pixels of the window that are inside the image
    avg_pool_3x3     mean of the pixels of the window that are inside the image
    skip_connect     identity; with stride 2, `FactorizedReduce`
    none             zero: no module

Convolutions have no bias, normalisations have weights. A side of s pixels becomes ceil(s / 2) with
stride 2.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def operation(name: str, channels: int, stride: int, momentum: float) -> nn.Module:
    """Return the module of an operation other than `none`."""
    if name == "skip_connect":
        return nn.Identity() if stride == 1 else FactorizedReduce(channels, channels, momentum)

    if name == "max_pool_3x3":
        return nn.MaxPool2d(3, stride, padding=1)

    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, stride, padding=1, count_include_pad=False)

    if name == "conv_7x1_1x7":
        return nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, (1, 7), (1, stride), padding=(0, 3), bias=False),
            nn.Conv2d(channels, channels, (7, 1), (stride, 1), padding=(3, 0), bias=False),
            nn.BatchNorm2d(channels, momentum=momentum),
        )

    kind = name[:3]
    kernel = int(name[-1])
    if kind == "dil":
        return nn.Sequential(*_separable(channels, kernel, stride, 2, momentum))

    first = _separable(channels, kernel, stride, 1, momentum)
    return nn.Sequential(*first, *_separable(channels, kernel, 1, 1, momentum))


def relu_conv_norm(inputs: int, outputs: int, momentum: float) -> nn.Sequential:
    """Return a relu, a pointwise convolution and a normalisation."""
    return nn.Sequential(
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs, momentum=momentum),
    )


@final
class FactorizedReduce(nn.Module):
    """Halves the image: half of the channels from even rows and columns, half from odd ones.

    Beyond an image of odd side, the next row and column are zero.
    """

    def __init__(self, inputs: int, outputs: int, momentum: float) -> None:
        """Build both convolutions; of an odd number of channels, the second gets one more."""
        super().__init__()
        self.even = nn.Conv2d(inputs, outputs // 2, 1, stride=2, bias=False)
        self.odd = nn.Conv2d(inputs, outputs - outputs // 2, 1, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(outputs, momentum=momentum)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, inputs, h, w) to (n, outputs, ceil(h / 2), ceil(w / 2))."""
        x = F.relu(x)
        shifted = F.pad(x, (0, 1, 0, 1))[:, :, 1:, 1:]
        out: Tensor = self.norm(torch.cat((self.even(x), self.odd(shifted)), dim=1))
        return out


def _separable(
    channels: int, kernel: int, stride: int, dilation: int, momentum: float
) -> list[nn.Module]:
    padding = dilation * (kernel // 2)
    return [
        nn.ReLU(),
        nn.Conv2d(
            channels, channels, kernel, stride, padding, dilation, groups=channels, bias=False
        ),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels, momentum=momentum),
    ]
