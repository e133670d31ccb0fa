"""NAS-Bench-101's `nasbench_only108.tfrecord` and `nasbench_full.tfrecord`.

    record    JSON: [module_hash, epochs, adjacency as n² digits, labels with commas between, metrics in base64]
    metrics   protocol buffer: 1 repeated {1 epoch, 2 seconds, 3 train, 4 validation, 5 test accuracy}, 2 parameters,
              3 total seconds; doubles, but for the parameters

Source: Ying et al., "NAS-Bench-101" (2019), https://github.com/google-research/nasbench,
`nasbench/api.py` and `model_metrics.proto`. Each record is one training: a cell has three of each
length. Accuracies are fractions.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, UsageError
from archive.exchange.releases.tfrecord import records

LENGTHS = (4, 12, 36, 108)
"""Epochs of the trainings."""

_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    RecursionError,
    OverflowError,
    binascii.Error,
)
_FIELDS = {1: "epoch", 2: "seconds", 3: "train_accuracy", 4: "valid_accuracy", 5: "test_accuracy"}


class CellTraining(NamedTuple):
    """One training of a cell.

    Attributes:
        place: Record and file, for messages.
        data: The bytes of the record.
        module: Hash of the cell in the release.
        epochs: Length of the training.
        adjacency: n² digits 0 and 1, row by row.
        labels: n operations, `input` first and `output` last.
        stages: Epoch, seconds and accuracies at each evaluation, the last one at the end.
        params: Number of trained weights; None if unknown.
    """

    place: str
    data: bytes
    module: str
    epochs: int
    adjacency: str
    labels: Sequence[str]
    stages: Sequence[Mapping[str, float]]
    params: int | None

    def architecture(self) -> Architecture:
        """Return the cell.

        Raises:
            UsageError: The record describes none.
        """
        n = len(self.labels)
        matrix = [
            [int(digit) for digit in self.adjacency[at : at + n]] for at in range(0, n * n, n)
        ]
        try:
            return codec.from_nasbench101(matrix, self.labels)
        except ArchiveError as error:
            raise _no_record(self.place, error) from None


def trainings(path: Path, epochs: int | None = None) -> Iterator[CellTraining]:
    """Yield the trainings of a release in the order of the file.

    Args:
        path: The file.
        epochs: Length of the trainings, one of `LENGTHS`; None for all.

    Raises:
        UsageError: The file has another format, or is damaged; the message names the record.
    """
    for number, data in enumerate(records(path)):
        place = f"record {number} of {path}"
        try:
            module, length, adjacency, labels, metrics = json.loads(data)
            if epochs is not None and length != epochs:
                continue

            if length not in LENGTHS:
                raise UsageError(f"its length must be one of {LENGTHS} epochs, got {length!r:.20}")

            found = _training(
                place,
                data,
                module,
                length,
                adjacency,
                labels,
                base64.b64decode(metrics, validate=True),
            )
        except (*_UNREADABLE, ArchiveError) as error:
            raise _no_record(place, error) from None

        yield found


def _no_record(place: str, error: Exception) -> UsageError:
    return UsageError(f"{place} is no record of NAS-Bench-101: {error}")


def _training(
    place: str, data: bytes, module: str, epochs: int, adjacency: str, labels: str, metrics: bytes
) -> CellTraining:
    n = math.isqrt(len(adjacency))
    if n * n != len(adjacency) or set(adjacency) - {"0", "1"}:
        raise UsageError(f"the adjacency must be n² digits 0 and 1, got {adjacency[:60]!r}")

    names = labels.split(",")
    if len(names) != n:
        raise UsageError(f"it has {len(names)} labels for {n} vertices")

    return CellTraining(place, data, str(module), epochs, adjacency, names, *_metrics(metrics))


def _metrics(data: bytes) -> tuple[list[dict[str, float]], int | None]:
    """Return the stages at which a training was evaluated, and the number of parameters."""
    stages: list[dict[str, float]] = []
    params: int | None = None
    for field, value in _fields(data):
        if field == 1 and isinstance(value, bytes):
            stage = {_FIELDS[at]: number for at, number in _fields(value) if at in _FIELDS}
            stages.append({name: float(stage.get(name, 0.0)) for name in _FIELDS.values()})
        elif field == 2 and isinstance(value, int):
            params = value

    if not stages:
        raise UsageError("it has no evaluation")

    return stages, params


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a message: an integer, a double or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        value: Any
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            (value,), at = struct.unpack_from("<d", _slice(data, at, 8)), at + 8
        elif kind == 2:
            length, at = _varint(data, at)
            value = _slice(data, at, length)
            at = at + length
        elif kind == 5:
            (value,), at = struct.unpack_from("<f", _slice(data, at, 4)), at + 4
        else:
            raise UsageError(f"its metrics have a field of the kind {kind}")

        yield tag >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = _slice(data, at, 1)[0]
        value = value | (byte & 0x7F) << shift
        at = at + 1
        if not byte & 0x80 and value < 2**63:
            return value, at

    raise UsageError("its metrics have a number without end, or beyond 63 bits")


def _slice(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise UsageError("its metrics are cut off")

    return data[at : at + length]
