"""Images of at most 256 values a channel, kept as bytes on the device and standardised when a batch
is read.

    codes[i, y, x, c]     byte of a pixel                                   (n, height, width, channels) uint8
    levels[c, k]          value of the byte k in channel c, ascending in k  (channels, 256) float32
    image[i, c, y, x]     = levels[c, codes[i, y, x, c]]

Photographs have 256 values a channel, and keep them when they are standardised. The table has the
values of the data themselves, so that a decoded image is equal to the original to the last bit;
bytes take a quarter of the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

LEVELS = 256
_CHUNK = 4096
"""Number of images that are on the device as float32 at a time."""


class ImageBytes(NamedTuple):
    """Encoded images.

    Attributes:
        codes: (n, height, width, channels) uint8.
        levels: (channels, 256) float32; zero after the last value of a channel.
    """

    codes: Tensor
    levels: Tensor


def encode(images: Tensor, device: torch.device) -> ImageBytes | None:
    """Return images as bytes on a device; None if a channel has more than 256 values, or one that
    is not finite.

    Args:
        images: (n, channels, height, width) float32, on the CPU.
        device: Device of the result.
    """
    values = [torch.empty(0, device=device) for _ in range(images.shape[1])]
    for chunk in _chunks(images, device):
        values = [_values(known, chunk[..., c]) for c, known in enumerate(values)]
        if any(len(known) > LEVELS or not bool(known.isfinite().all()) for known in values):
            return None

    n, channels, height, width = images.shape
    codes = torch.empty((n, height, width, channels), dtype=torch.uint8, device=device)
    levels = torch.zeros((channels, LEVELS), device=device)
    for c, known in enumerate(values):
        levels[c, : len(known)] = known

    for at, chunk in enumerate(_chunks(images, device)):
        for c, known in enumerate(values):
            codes[at * _CHUNK : (at + 1) * _CHUNK, :, :, c] = torch.searchsorted(
                known, chunk[..., c].contiguous()
            )

    return ImageBytes(codes, levels)


def decode(codes: Tensor, levels: Tensor) -> Tensor:
    """Return the images (n, channels, height, width) of codes, with the channels last in memory."""
    start = torch.arange(len(levels), device=levels.device, dtype=torch.int32) * LEVELS
    pixels = levels.flatten().index_select(0, (codes + start).flatten())
    return pixels.view(codes.shape).permute(0, 3, 1, 2)


def _chunks(images: Tensor, device: torch.device) -> Iterator[Tensor]:
    """Yield the images with the channels last, (n, height, width, channels), on the device."""
    for chunk in torch.split(images, _CHUNK):
        yield chunk.to(device).permute(0, 2, 3, 1)


def _values(known: Tensor, pixels: Tensor) -> Tensor:
    """Return the ascending values of known ones and of further pixels."""
    values: Tensor = torch.cat((known, pixels.flatten())).unique()  # type: ignore[no-untyped-call]
    return values
