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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, UsageError

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
        matrix = []
        for index in range(0, n * n, n):
            matrix.append(list(map(int, self.adjacency[index : index + n])))

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
        where = f"record {number} of {path}"
        try:
            module, length, adjacency, labels, metrics = json.loads(data)
            if epochs is not None and length != epochs:
                continue

            if length not in LENGTHS:
                raise UsageError(f"its length must be one of {LENGTHS} epochs, got {length!r:.20}")

            training = _training(
                where,
                data,
                module,
                length,
                adjacency,
                labels,
                base64.b64decode(metrics, validate=True),
            )
        except (*_UNREADABLE, ArchiveError) as error:
            raise _no_record(where, error) from None

        yield training


def _no_record(where: str, error: Exception) -> UsageError:
    return UsageError(f"{where} is no record of NAS-Bench-101: {error}")


def _training(
    where: str, data: bytes, module: str, epochs: int, adjacency: str, labels: str, metrics: bytes
) -> CellTraining:
    n = math.isqrt(len(adjacency))
    if n * n != len(adjacency) or set(adjacency) - {"0", "1"}:
        raise UsageError(f"the adjacency must be n² digits 0 and 1, got {adjacency[:60]!r}")

    names = labels.split(",")
    if len(names) != n:
        raise UsageError(f"it has {len(names)} labels for {n} vertices")

    return CellTraining(where, data, str(module), epochs, adjacency, names, *_metrics(metrics))


def _metrics(data: bytes) -> tuple[list[dict[str, float]], int | None]:
    """Return the stages at which a training was evaluated, and the number of parameters."""
    stages: list[dict[str, float]] = []
    params: int | None = None
    for field, value in _fields(data):
        if field == 1 and isinstance(value, bytes):
            stage = {_FIELDS[field]: number for field, number in _fields(value) if field in _FIELDS}
            stages.append({name: float(stage.get(name, 0.0)) for name in _FIELDS.values()})
        elif field == 2 and isinstance(value, int):
            params = value

    if not stages:
        raise UsageError("it has no evaluation")

    return stages, params


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a message: an integer, a double or bytes."""
    offset = 0
    while offset < len(data):
        tag, offset = _varint(data, offset)
        kind = tag & 7
        value: Any
        if kind == 0:
            value, offset = _varint(data, offset)
        elif kind == 1:
            (value,), offset = struct.unpack_from("<d", _slice(data, offset, 8)), offset + 8
        elif kind == 2:
            length, offset = _varint(data, offset)
            value = _slice(data, offset, length)
            offset = offset + length
        elif kind == 5:
            (value,), offset = struct.unpack_from("<f", _slice(data, offset, 4)), offset + 4
        else:
            raise UsageError(f"its metrics have a field of the kind {kind}")

        yield tag >> 3, value


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = _slice(data, offset, 1)[0]
        value = value | (byte & 0x7F) << shift
        offset = offset + 1
        if not byte & 0x80 and value < 2**63:
            return value, offset

    raise UsageError("its metrics have a number without end, or beyond 63 bits")


def _slice(data: bytes, offset: int, length: int) -> bytes:
    if offset + length > len(data):
        raise UsageError("its metrics are cut off")

    return data[offset : offset + length]


_MOST_BYTES = 2**20
_LONG = 100
"""Minimum number of bytes for a compiled checksum: more than the head of a record."""
_CASTAGNOLI = 0x82F63B78
_MASK_DELTA = 0xA282EAD8


def records(path: Path) -> Iterator[bytes]:
    """Yield the data of the records of a TFRecord file, each checked against its checksum.

    Raises:
        UsageError: It cannot be read, is cut off or altered.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while head := file.read(12):
                yield _record(path, file, number, head)
                number += 1
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def masked_crc(data: bytes) -> int:
    """Return the checksum of TFRecord files: a CRC-32C, rotated by 15 bits, plus a constant."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Return the Castagnoli CRC of data."""
    table = _table()
    if len(data) > _LONG:
        return int(
            _compile()(np.frombuffer(data, dtype=np.uint8), np.array(table, dtype=np.uint32))
        )

    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)

    return crc ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    def entry(value: int) -> int:
        for _ in range(8):
            value = (value >> 1) ^ (_CASTAGNOLI if value & 1 else 0)

        return value

    return tuple(map(entry, range(256)))


@cache
def _compile() -> Callable[..., Any]:
    # Half a gigabyte of records takes a quarter of an hour in plain Python, and a second when
    # compiled.
    from numba import njit

    def step(data: Any, table: Any) -> Any:
        crc = np.uint32(0xFFFFFFFF)
        for byte in data:
            crc = table[(crc ^ byte) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))

        return crc ^ np.uint32(0xFFFFFFFF)

    made: Callable[..., Any] = njit(step, cache=True)
    return made


def _record(path: Path, file: IO[bytes], number: int, head: bytes) -> bytes:
    if len(head) < 12:
        raise UsageError(f"{path} is cut off in record {number}")

    length, check = struct.unpack("<QI", head)
    if masked_crc(head[:8]) != check or length > _MOST_BYTES:
        raise UsageError(
            f"{path} is no TFRecord file, or altered: record {number} does not begin as one"
        )

    data = file.read(length + 4)
    if len(data) < length + 4:
        raise UsageError(f"{path} is cut off in record {number}")

    if masked_crc(data[:length]) != struct.unpack("<I", data[length:])[0]:
        raise UsageError(f"{path} was altered: record {number} does not have its checksum")

    return data[:length]
