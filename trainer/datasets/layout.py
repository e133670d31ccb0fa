"""Split and standardisation of a data set: rows of each part by the protocol, scaled.

Means and deviations of each feature, or each channel of the images, come from the training part
alone.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import TrainingError
from archive.trainer.datasets import sources
from archive.trainer.datasets.splits import Scaling
from archive.trainer.protocols.base import TrainingProtocol

Parts = dict[str, tuple[NDArray[np.float32], NDArray[Any]]]
"""`train`, `valid` and `test` to inputs, images as (n, height, width, channels), and targets."""

CHUNK = 4096
"""Rows that are standardised at a time: a whole data set in double precision would not fit into a
small machine."""
CHUNK_NUMBERS = 2**24
"""Most numbers of a chunk: large images come in fewer rows."""
IN_MEMORY = 2**26
"""Bytes up to which an array is in memory; larger ones are on disk."""


@dataclass(frozen=True, slots=True)
class Rows:
    """A data set before its split.

    Attributes:
        inputs: (n, features) of floats, or images (n, height, width, channels) of bytes or floats.
        targets: (n,) int64 classes, or float64 values.
        held_out: Number of last rows that are the publisher's test part.
    """

    inputs: NDArray[Any]
    targets: NDArray[Any]
    held_out: int = 0


def cut(rows: Rows, protocol: TrainingProtocol) -> Parts:
    """Return a protocol's parts, standardised.

    Raises:
        TrainingError: There are too few rows.
    """
    part_rows = choose(rows, protocol)
    mean, deviation = moments(rows.inputs, part_rows["train"])
    targets = rows.targets
    if not np.issubdtype(targets.dtype, np.integer):
        centre, spread = moments(targets[:, None], part_rows["train"])
        targets = ((targets - centre) / spread).astype(np.float32)

    parts: Parts = {}
    for name, indices in part_rows.items():
        parts[name] = (_standardise(rows.inputs, indices, mean, deviation), targets[indices])

    return parts


def scaling(rows: Rows, protocol: TrainingProtocol) -> Scaling:
    """Return how `cut` standardises a data set.

    Raises:
        TrainingError: There are too few rows.
    """
    train = choose(rows, protocol)["train"]
    mean, deviation = moments(rows.inputs, train)
    target = None
    if not np.issubdtype(rows.targets.dtype, np.integer):
        centre, spread = moments(rows.targets[:, None], train)
        target = float(centre[0]), float(spread[0])

    return Scaling(tuple(mean.tolist()), tuple(deviation.tolist()), target)


def choose(rows: Rows, protocol: TrainingProtocol) -> dict[str, NDArray[np.intp]]:
    """Return the rows of each part; the parts are disjoint.

    Raises:
        TrainingError: There are too few rows.
    """
    n = len(rows.targets)
    rest = n - rows.held_out
    sizes = (protocol.train, protocol.valid, protocol.test)
    if protocol.split == "held-out":
        fits = sum(sizes[:2]) <= rest and sizes[2] <= rows.held_out
    else:
        fits = sum(sizes) <= n

    if not fits:
        raise TrainingError(
            f"the parts of {protocol.name} need {sum(sizes)} rows, the data have {n}"
        )

    train, valid, test, _ = np.split(_order(rows, protocol, rest), np.cumsum(sizes))
    return {"train": train, "valid": valid, "test": test}


def _order(rows: Rows, protocol: TrainingProtocol, rest: int) -> NDArray[np.intp]:
    """Return an order of the rows in which the parts follow each other."""
    seed = protocol.split_seed
    targets = rows.targets
    stratified = np.issubdtype(targets.dtype, np.integer)
    if protocol.split == "given":
        return np.arange(len(targets))

    if protocol.split == "held-out":
        used = protocol.train + protocol.valid
        tests = rest + order(targets[rest:], seed, stratified)
        return np.concatenate((order(targets[:rest], seed, stratified)[:used], tests))

    return order(targets, seed, protocol.split == "stratified")


def order(targets: NDArray[Any], seed: int, stratified: bool) -> NDArray[np.intp]:
    """Return a fixed order of the rows; if stratified, with proportional classes everywhere."""
    # RandomState, since numpy guarantees its stream: a protocol's split must be the same in all
    # numpy versions.
    shuffled = np.random.RandomState(seed).permutation(len(targets))
    if not stratified:
        return shuffled

    rank = np.empty(len(targets))
    for label in np.unique(targets):
        rows = shuffled[targets[shuffled] == label]
        rank[rows] = (np.arange(len(rows)) + 0.5) / len(rows)

    return shuffled[np.argsort(rank[shuffled], kind="stable")]


def moments(
    inputs: NDArray[Any], rows: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and the deviation of each feature, or each channel, over some rows.

    The deviation of a constant is 1.
    """
    axes = tuple(range(inputs.ndim - 1))
    if inputs.dtype in (np.uint8, np.uint16):
        # Sums of integers are exact for any size of chunks.
        count = len(rows) * int(np.prod(inputs.shape[1:-1]))
        sums = squares = np.zeros(inputs.shape[-1], dtype=np.int64)
        for indices in _chunks(rows, inputs):
            chunk = inputs[indices].astype(np.int64)
            sums = sums + chunk.sum(axis=axes)
            squares = squares + (chunk**2).sum(axis=axes)

        mean = sums / count
        deviation = np.sqrt(squares / count - mean**2)
    else:
        mean = inputs[rows].mean(axis=axes)
        deviation = inputs[rows].std(axis=axes)

    # The computed deviation of a constant without an exact float is its rounding error.
    return mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)


def _standardise(
    inputs: NDArray[Any],
    rows: NDArray[np.intp],
    mean: NDArray[np.float64],
    deviation: NDArray[np.float64],
) -> NDArray[np.float32]:
    out: NDArray[np.float32] = allocate((len(rows), *inputs.shape[1:]), np.dtype(np.float32))
    start = 0
    for indices in _chunks(rows, inputs):
        out[start : start + len(indices)] = (inputs[indices] - mean) / deviation
        start += len(indices)

    return out


def _chunks(rows: NDArray[np.intp], inputs: NDArray[Any]) -> list[NDArray[np.intp]]:
    per_row = max(1, int(np.prod(inputs.shape[1:])))
    chunk = max(1, min(CHUNK, CHUNK_NUMBERS // per_row))
    return [rows[start : start + chunk] for start in range(0, len(rows), chunk)]


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array without content: in memory, or, if large, in a file without a name."""
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if size <= IN_MEMORY:
        return np.empty(shape, dtype)

    home = sources.home()
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home) as file:
            # A full disk would end the process at a write to the array.
            os.posix_fallocate(file.fileno(), 0, size)
            # The system frees the file with the last array on it.
            return np.memmap(file, dtype, "w+", shape=shape)
    except OSError:
        return np.empty(shape, dtype)
