"""The three parts of a data set: which rows each has, fixed by the protocol, and their numbers, standardised.

Means and deviations are those of the training part alone: of each feature, or of each channel of the images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import TrainingError
from archive.trainer.tasks.protocol import Protocol

Parts = dict[str, tuple[NDArray[np.float32], NDArray[Any]]]
"""`train`, `valid` and `test` to inputs, images as (n, height, width, channels), and targets."""

CHUNK = 4096
"""Images that are standardised at a time: a whole data set in double precision would not fit into a small machine."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A data set as it was read.

    Attributes:
        inputs: (n, features) of floats, or images (n, height, width, channels) of bytes or floats.
        targets: (n,) int64 classes, or float64 values.
        held_out: How many of the last rows its publisher keeps for tests.
    """

    inputs: NDArray[Any]
    targets: NDArray[Any]
    held_out: int = 0


def cut(rows: Rows, protocol: Protocol) -> Parts:
    """Return the parts that a protocol asks for, standardised.

    Raises:
        TrainingError: There are too few rows.
    """
    chosen = choose(rows, protocol)
    mean, deviation = moments(rows.inputs, chosen["train"])
    targets = rows.targets
    if not np.issubdtype(targets.dtype, np.integer):
        centre, spread = moments(targets[:, None], chosen["train"])
        targets = ((targets - centre) / spread).astype(np.float32)
    return {name: (_standardised(rows.inputs, at, mean, deviation), targets[at]) for name, at in chosen.items()}


def choose(rows: Rows, protocol: Protocol) -> dict[str, NDArray[np.intp]]:
    """Return which rows are in each part; no row is in two.

    Raises:
        TrainingError: There are too few rows.
    """
    n, own = len(rows.targets), len(rows.targets) - rows.held_out
    sizes = (protocol.train, protocol.valid, protocol.test)
    if protocol.split == "held-out":
        fits = sum(sizes[:2]) <= own and sizes[2] <= rows.held_out
    else:
        fits = sum(sizes) <= n
    if not fits:
        raise TrainingError(f"the parts of {protocol.name} need {sum(sizes)} rows, the data have {n}")
    train, valid, test, _ = np.split(_ranked(rows, protocol, own), np.cumsum(sizes))
    return {"train": train, "valid": valid, "test": test}


def _ranked(rows: Rows, protocol: Protocol, own: int) -> NDArray[np.intp]:
    """Return rows in the order in which the parts take them."""
    seed, targets = protocol.split_seed, rows.targets
    stratified = np.issubdtype(targets.dtype, np.integer)
    if protocol.split == "given":
        return np.arange(len(targets))
    if protocol.split == "held-out":
        used = protocol.train + protocol.valid
        tests = own + order(targets[own:], seed, stratified)
        return np.concatenate((order(targets[:own], seed, stratified)[:used], tests))
    return order(targets, seed, protocol.split == "stratified")


def order(targets: NDArray[Any], seed: int, stratified: bool) -> NDArray[np.intp]:
    """Return a fixed order of the rows; if stratified, every stretch of it holds each class in its share."""
    # RandomState, since numpy promises that its stream never changes: a protocol's split must outlive numpy versions.
    shuffled = np.random.RandomState(seed).permutation(len(targets))
    if not stratified:
        return shuffled
    rank = np.empty(len(targets))
    for label in np.unique(targets):
        rows = shuffled[targets[shuffled] == label]
        rank[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    return shuffled[np.argsort(rank[shuffled], kind="stable")]


def moments(inputs: NDArray[Any], rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the deviation over some rows of each feature, or of each channel; 1 for a constant one."""
    axes = tuple(range(inputs.ndim - 1))
    if inputs.dtype == np.uint8:
        # Whole numbers add up exactly, in whatever chunks.
        count = len(rows) * int(np.prod(inputs.shape[1:-1]))
        sums = squares = np.zeros(inputs.shape[-1], dtype=np.int64)
        for at in _chunks(rows):
            chunk = inputs[at].astype(np.int64)
            sums, squares = sums + chunk.sum(axis=axes), squares + (chunk**2).sum(axis=axes)
        mean = sums / count
        deviation = np.sqrt(squares / count - mean**2)
    else:
        mean, deviation = inputs[rows].mean(axis=axes), inputs[rows].std(axis=axes)
    # The deviation of a constant that no float is equal to comes out as its rounding error.
    return mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)


def _standardised(
    inputs: NDArray[Any], rows: NDArray[np.intp], mean: NDArray[np.float64], deviation: NDArray[np.float64]
) -> NDArray[np.float32]:
    out = np.empty((len(rows), *inputs.shape[1:]), dtype=np.float32)
    for start, at in zip(range(0, len(rows), CHUNK), _chunks(rows), strict=True):
        out[start : start + CHUNK] = (inputs[at] - mean) / deviation
    return out


def _chunks(rows: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
