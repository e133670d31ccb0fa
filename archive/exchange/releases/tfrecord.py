"""TFRecord files, read without TensorFlow.

record    length (8 bytes, little-endian), its masked CRC-32C (4), the data, their masked CRC-32C (4)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from archive.errors import UsageError

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
            _compiled()(np.frombuffer(data, dtype=np.uint8), np.array(table, dtype=np.uint32))
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

    return tuple(entry(byte) for byte in range(256))


@cache
def _compiled() -> Callable[..., Any]:
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
