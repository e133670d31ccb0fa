"""Batches of a data set on a device: shuffled, cut, and augmented as the protocol says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor
from torch.nn import functional as F

from archive.trainer.datasets.splits import DataPart
from archive.trainer.protocols.base import TrainingProtocol

SHIFT = 4
"""Largest shift of an augmented image in pixels, as is usual for CIFAR-10."""


@dataclass(frozen=True, slots=True)
class Batches:
    """One part of a data set as tensors on the device, so that a batch costs no transfer."""

    inputs: Tensor
    targets: Tensor

    @classmethod
    def of(cls, part: DataPart, device: torch.device) -> Batches:
        """Copy a part to the device."""
        inputs = torch.from_numpy(part.inputs)
        if inputs.ndim == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return cls(inputs.to(device), torch.from_numpy(part.targets).to(device))

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.targets)

    def steps(self, protocol: TrainingProtocol) -> int:
        """Return the number of steps in one epoch of a protocol."""
        return protocol.epoch_steps or -(-len(self) // protocol.batch)

    def epoch(self, protocol: TrainingProtocol, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches of one epoch of training under a protocol.

        All randomness comes from the generator, which is on the CPU: its state between two epochs, and the protocol,
        determine the next epoch.
        """
        left = self.steps(protocol)
        while left > 0:
            for inputs, targets in islice(self.shuffled(protocol.batch, generator), left):
                yield augmented(inputs, protocol.augmentation, generator), targets
                left -= 1

    def shuffled(self, batch: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield every input once, in random order, in batches of equal size (within one) of at most `batch`.

        Equal batches never leave a last batch of one input, on which batch normalisation fails.
        """
        order = torch.randperm(len(self), generator=generator).to(self.targets.device)
        for chosen in order.tensor_split(-(-len(self) // batch)):
            yield self.inputs[chosen], self.targets[chosen]


def augmented(images: Tensor, rule: str, generator: torch.Generator) -> Tensor:
    """Return training images (n, channels, height, width), augmented by a protocol's rule.

    A shift moves an image by up to `SHIFT` pixels a side, and fills the gap with zero, the mean.
    """
    if rule == "none":
        return images
    n, _, height, width = images.shape
    device = images.device
    down, right, mirrored = (
        torch.randint(0, most, (n, 1, 1), generator=generator).to(device) for most in (2 * SHIFT + 1, 2 * SHIFT + 1, 2)
    )
    rows = torch.arange(height, device=device)[None, :, None] + down
    columns = torch.arange(width, device=device)[None, None, :]
    if rule == "shift-flip":
        columns = torch.where(mirrored.bool(), width - 1 - columns, columns)
    padded = F.pad(images, (SHIFT, SHIFT, SHIFT, SHIFT))
    at = torch.arange(n, device=device)[:, None, None]
    # The indexing gives (n, height, width, channels); networks take a view with the channels first.
    return padded.permute(0, 2, 3, 1)[at, rows, columns + right].permute(0, 3, 1, 2)
