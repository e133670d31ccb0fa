"""Batches of a data set on a device: shuffled, cut, and augmented as the protocol says.

    draws of many batches, on the CPU ── one copy ──> rows and moves on the device ──> gather,
    decode, move ──> batch

The random numbers of an epoch, or of `DRAWN` inputs of a long one, are drawn and copied to the
device at once: a copy for each batch would make the processor wait for a GPU in each step. The
stream is the same as with draws batch by batch: the order of the rows of a pass, then for each
batch its shifts down, its shifts to the right and its mirrorings.

Images of at most 256 values a channel may stay bytes on the device. A batch is standardised when it
is read:

    codes[i, y, x, c]   byte of a pixel                (n, height, width, channels) uint8
    levels[c, k]        value of the byte k, ascending (channels, 256) float32
    image[i, c, y, x]   = levels[c, codes[i, y, x, c]]

Photographs have 256 values a channel, and keep them when they are standardised. The table holds the
values of the data themselves: a decoded image is equal to the original to the last bit, and bytes
take a quarter of the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from archive.trainer.datasets.splits import DataPart
from archive.trainer.protocols.base import TrainingProtocol

SHIFT = 4
"""Largest shift of an augmented image in pixels, as is usual for CIFAR-10."""

DRAWN = 1 << 18
"""Largest number of inputs that are drawn at once, in whole passes over the data; at least one pass
is drawn."""

LEVELS = 256
_CHUNK = 4096
"""Number of images that are on the device as float32 at a time."""


class Draws(NamedTuple):
    """The random numbers of some batches.

    Attributes:
        rows: (m,) int64 rows of the inputs, batch after batch.
        moves: (m, 3) uint8: shift down and to the right, less `SHIFT`, and whether the image is
            mirrored; None without augmentation.
        sizes: Number of rows of each batch.
    """

    rows: Tensor
    moves: Tensor | None
    sizes: list[int]


@dataclass(frozen=True, slots=True)
class Batches:
    """One part of a data set as tensors on the device, so that a batch costs no transfer.

    Attributes:
        inputs: (n, …) float32; or (n, height, width, channels) uint8 with `levels`; or (n, length)
            int64 tokens.
        targets: (n,) int64 classes, or float32 values; (n, length) int64 tokens.
        levels: Values that the bytes of `inputs` stand for (`archive.trainer.fit.batches`);
            None for float32.
    """

    inputs: Tensor
    targets: Tensor
    levels: Tensor | None = None

    @classmethod
    def of(cls, part: DataPart, device: torch.device, *, compact: bool | None = None) -> Batches:
        """Copy a part to the device.

        Args:
            part: The part.
            device: The device.
            compact: Whether to keep images of few values as bytes, at a quarter of the memory;
                None: on a GPU.
        """
        targets = torch.from_numpy(part.targets).to(device)
        inputs = torch.from_numpy(part.inputs)
        if inputs.ndim == 4:
            if device.type == "cuda" if compact is None else compact:
                encoded = encode_images(inputs, device)
                if encoded is not None:
                    return cls(encoded.codes, targets, encoded.levels)

            inputs = inputs.contiguous(memory_format=torch.channels_last)

        return cls(inputs.to(device), targets)

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.targets)

    def steps(self, protocol: TrainingProtocol) -> int:
        """Return the number of steps in one epoch of a protocol."""
        return protocol.epoch_steps or -(-len(self) // protocol.batch)

    def epoch(
        self, protocol: TrainingProtocol, generator: torch.Generator, first: int = 0
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches of one epoch of training under a protocol.

        All randomness comes from the generator, which is on the CPU: its state between two epochs,
        and the protocol, determine the next epoch.

        Args:
            protocol: Protocol with the largest batch, the number of steps and the augmentation.
            generator: Generator of the draws.
            first: Number of batches to leave out; they are drawn, and neither gathered nor
                augmented.
        """
        device = self.targets.device
        for drawn in self.draws(protocol, generator):
            skipped = min(first, len(drawn.sizes))
            first -= skipped
            rows = torch.split(drawn.rows.to(device), drawn.sizes)
            moves = (
                [None] * len(rows)
                if drawn.moves is None
                else torch.split(drawn.moves.to(device), drawn.sizes)
            )
            for batch, move in zip(rows[skipped:], moves[skipped:], strict=True):
                inputs = self._floats(self.inputs[batch])
                yield inputs if move is None else augment(inputs, move), self.targets[batch]

    def draws(self, protocol: TrainingProtocol, generator: torch.Generator) -> Iterator[Draws]:
        """Yield the random numbers of one epoch, on the CPU: `DRAWN` inputs at a time.

        Every pass takes each input once, in batches of equal size (within one): equal batches never
        leave a last batch of one input, on which batch normalisation fails.
        """
        left = self.steps(protocol)
        most = max(1, DRAWN // len(self))
        while left > 0:
            rows = list[Tensor]()
            moves = list[Tensor]()
            for _ in range(most):
                order = torch.randperm(len(self), generator=generator)
                batches = order.tensor_split(-(-len(self) // protocol.batch))[:left]
                left -= len(batches)
                rows += batches
                if protocol.augmentation != "none":
                    for batch in batches:
                        moves.append(_moves(len(batch), protocol.augmentation, generator))

                if not left:
                    break

            sizes = [len(batch) for batch in rows]
            yield Draws(torch.cat(rows), torch.cat(moves) if moves else None, sizes)

    def parts(self, size: int) -> Iterator[Tensor]:
        """Yield all inputs in their order, as the network takes them, so many at a time."""
        for inputs in torch.split(self.inputs, size):
            yield self._floats(inputs)

    def _floats(self, inputs: Tensor) -> Tensor:
        return inputs if self.levels is None else decode_images(inputs, self.levels)


def _moves(n: int, rule: str, generator: torch.Generator) -> Tensor:
    """Draw the moves of n images by a protocol's rule; every rule draws the same numbers."""

    def draw(count: int) -> Tensor:
        return torch.randint(0, count, (n,), generator=generator, dtype=torch.int64)

    down = draw(2 * SHIFT + 1)
    right = draw(2 * SHIFT + 1)
    mirrored = draw(2)
    return torch.stack((down, right, mirrored * (rule == "shift-flip")), dim=1).to(torch.uint8)


def augment(images: Tensor, moves: Tensor) -> Tensor:
    """Return training images, each moved, with the gap filled with zero, the mean.

    Args:
        images: (n, channels, height, width).
        moves: (n, 3), on their device, as in `Draws`.
    """
    n, _, height, width = images.shape
    device = images.device
    down, right, mirrored = moves.long()[:, :, None, None].unbind(1)
    rows = torch.arange(height, device=device)[None, :, None] + down
    columns = torch.arange(width, device=device)[None, None, :]
    columns = torch.where(mirrored.bool(), width - 1 - columns, columns)
    padded = F.pad(images, (SHIFT, SHIFT, SHIFT, SHIFT))
    image = torch.arange(n, device=device)[:, None, None]
    # The indexing gives (n, height, width, channels); networks take a view with the channels first.
    return padded.permute(0, 2, 3, 1)[image, rows, columns + right].permute(0, 3, 1, 2)


class ImageBytes(NamedTuple):
    """Encoded images.

    Attributes:
        codes: (n, height, width, channels) uint8.
        levels: (channels, 256) float32; zero after the last value of a channel.
    """

    codes: Tensor
    levels: Tensor


def encode_images(images: Tensor, device: torch.device) -> ImageBytes | None:
    """Return images as bytes on a device.

    Args:
        images: (n, channels, height, width) float32, on the CPU.
        device: Device of the result.

    Returns:
        None if a channel has more than 256 values, or one that is not finite.
    """
    values = [torch.empty(0, device=device) for _ in range(images.shape[1])]
    for chunk in _chunks(images, device):
        for c, earlier in enumerate(values):
            values[c] = _distinct(earlier, chunk[..., c])

        for channel_values in values:
            if len(channel_values) > LEVELS or not bool(channel_values.isfinite().all()):
                return None

    n, channels, height, width = images.shape
    codes = torch.empty((n, height, width, channels), dtype=torch.uint8, device=device)
    levels = torch.zeros((channels, LEVELS), device=device)
    for c, channel_values in enumerate(values):
        levels[c, : len(channel_values)] = channel_values

    for index, chunk in enumerate(_chunks(images, device)):
        rows = slice(index * _CHUNK, (index + 1) * _CHUNK)
        for c, channel_values in enumerate(values):
            pixels = chunk[..., c].contiguous()
            codes[rows, :, :, c] = torch.searchsorted(channel_values, pixels)

    return ImageBytes(codes, levels)


def decode_images(codes: Tensor, levels: Tensor) -> Tensor:
    """Return the images (n, channels, height, width) of codes, with the channels last in memory."""
    start = torch.arange(len(levels), device=levels.device, dtype=torch.int32) * LEVELS
    pixels = levels.flatten().index_select(0, (codes + start).flatten())
    return pixels.view(codes.shape).permute(0, 3, 1, 2)


def _chunks(images: Tensor, device: torch.device) -> Iterator[Tensor]:
    """Yield the images with the channels last, (n, height, width, channels), on the device."""
    for chunk in torch.split(images, _CHUNK):
        yield chunk.to(device).permute(0, 2, 3, 1)


def _distinct(earlier: Tensor, pixels: Tensor) -> Tensor:
    """Return the distinct values of earlier and further pixels, ascending."""
    values: Tensor = torch.cat((earlier, pixels.flatten())).unique()  # type: ignore[no-untyped-call]
    return values
