"""The data of the tasks: read, split once and for all, and laid out as tensors on a device.

Inputs and, in a regression, targets are standardised with the mean and the deviation of the training part alone.
"""

from __future__ import annotations

import gzip
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from archive.errors import TrainingError
from archive.trainer.datasets import layout
from archive.trainer.tasks.protocol import Protocol

Inputs = NDArray[np.float32]
Targets = NDArray[np.int64] | NDArray[np.float32]

SHIFT = 4
"""Pixels by which images are shifted at most, as is usual for CIFAR-10."""


@dataclass(frozen=True, slots=True)
class Part:
    """Inputs (n, …) float32 and targets (n,): int64 classes, or float32 values."""

    inputs: Inputs
    targets: Targets

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.targets)


@dataclass(frozen=True, slots=True)
class Splits:
    """The three parts of a data set."""

    train: Part
    valid: Part
    test: Part


@dataclass(frozen=True, slots=True)
class Batches:
    """One part as tensors that stay on the device, whence batches are cut without a step per input."""

    inputs: Tensor
    targets: Tensor

    @classmethod
    def of(cls, part: Part, device: torch.device) -> Batches:
        """Copy a part to the device."""
        inputs = torch.from_numpy(part.inputs)
        if inputs.ndim == 4:
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        return cls(inputs.to(device), torch.from_numpy(part.targets).to(device))

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.targets)

    def steps(self, protocol: Protocol) -> int:
        """Return the number of steps in one epoch of a protocol."""
        return protocol.epoch_steps or -(-len(self) // protocol.batch)

    def epoch(self, protocol: Protocol, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the batches of one epoch of training, as the protocol wants them.

        All that is random comes from the generator, which is on the CPU: its state between two epochs, and the
        protocol, say what the next epoch will be.
        """
        left = self.steps(protocol)
        while left > 0:
            for inputs, targets in islice(self.shuffled(protocol.batch, generator), left):
                yield augmented(inputs, protocol.augmentation, generator), targets
                left -= 1

    def shuffled(self, batch: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield every input once, in random order, in batches of equal size (within one) of at most `batch`.

        Equal batches never leave a last batch of one, which batch normalisation could not take.
        """
        order = torch.randperm(len(self), generator=generator).to(self.targets.device)
        for chosen in order.tensor_split(-(-len(self) // batch)):
            yield self.inputs[chosen], self.targets[chosen]


def augmented(images: Tensor, rule: str, generator: torch.Generator) -> Tensor:
    """Return images (n, channels, height, width) as a protocol's `augmentation` has them seen in training.

    A shift moves an image by up to `SHIFT` pixels a side; zero, the mean, moves in.
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
    # (n, height, width, channels) comes out; seen with the channels first it is what the networks take.
    return padded.permute(0, 2, 3, 1)[at, rows, columns + right].permute(0, 3, 1, 2)


def digits(protocol: Protocol) -> Splits:
    """Return scikit-learn's handwritten digits: images (n, 1, 8, 8), classes 0 to 9."""
    table = _table("digits.csv.gz", delimiter=",")
    images = table[:, :-1].reshape(-1, 1, 8, 8)
    return split(images, table[:, -1].astype(np.int64), protocol, per_feature=False)


def diabetes(protocol: Protocol) -> Splits:
    """Return scikit-learn's diabetes data: ten standardised measurements, the standardised progress after a year."""
    measurements, progress = _table("diabetes_data_raw.csv.gz"), _table("diabetes_target.csv.gz")
    return split(measurements, progress, protocol, per_feature=True)


def split(
    inputs: NDArray[np.float64], targets: NDArray[np.generic], protocol: Protocol, *, per_feature: bool
) -> Splits:
    """Cut a data set into the parts that the protocol asks for, and standardise them.

    Args:
        inputs: (n, …) float64.
        targets: (n,) int64 classes, or float64 values.
        protocol: Names the sizes, the kind and the seed of the split.
        per_feature: Whether each feature has its own mean and deviation, or all (an image's pixels) share one.

    Raises:
        ValueError: The protocol's sizes do not add up to n.
    """
    sizes = (protocol.train, protocol.valid, protocol.test)
    if sum(sizes) != len(targets):
        raise ValueError(f"the parts of {protocol.name} must add up to {len(targets)} inputs, got {sizes}")
    stratified = protocol.split == "stratified"
    order = layout.order(targets, protocol.split_seed, stratified)
    train, valid, test = np.split(order, np.cumsum(sizes)[:-1])
    inputs = _standardised(inputs, train, axis=0 if per_feature else None)
    if np.issubdtype(targets.dtype, np.integer):
        answers: Targets = targets.astype(np.int64)
    else:
        answers = _standardised(targets.astype(np.float64), train, axis=0).astype(np.float32)
    x = inputs.astype(np.float32)
    return Splits(*(Part(x[rows], answers[rows]) for rows in (train, valid, test)))


def _table(name: str, delimiter: str | None = None) -> NDArray[np.float64]:
    """Read one of the tables that come with scikit-learn; a trial does not wait for all of it to be imported."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise TrainingError("the package scikit-learn, which holds the data, is not installed")
    with gzip.open(Path(package.origin).parent / "datasets" / "data" / name, "rt", encoding="utf-8") as file:
        return np.loadtxt(file, delimiter=delimiter)


def _standardised(values: NDArray[np.float64], train: NDArray[np.intp], axis: int | None) -> NDArray[np.float64]:
    mean, deviation = values[train].mean(axis=axis), values[train].std(axis=axis)
    scaled: NDArray[np.float64] = (values - mean) / np.where(deviation > 0, deviation, 1.0)
    return scaled
