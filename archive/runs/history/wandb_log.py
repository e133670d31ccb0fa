"""Records of a `.wandb` file, which Weights & Biases writes beside a run.

The file is a log of LevelDB's form (https://github.com/google/leveldb/blob/main/doc/log_format.md)
after a header of 7 bytes: blocks of 32 KiB with fragments, each with its checksum, its length and
its place in a record. Releases of wandb before 0.19 have a reader in Python, later ones have none. A
record is a message of Protocol Buffers, whose class the package has.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archive.errors import UnusableFileError
from archive.runs.history.external_run import missing_package

HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 32_768
FRAGMENT_HEADER = 7
MOST_RECORD_BYTES = 64 << 20

_WHOLE = 1
_FIRST = 2
_LAST = 4


def read_records(path: Path) -> Iterator[Any]:
    """Yield the records of a file, up to its end or to the first damage.

    Raises:
        SettingsError: wandb is not installed.
        UnusableFileError: The file is no log of Weights & Biases.
        OSError: It cannot be read.
    """
    try:
        from google.protobuf.message import DecodeError
        from wandb.proto import wandb_internal_pb2
    except ImportError:
        raise missing_package("files of Weights & Biases", "wandb") from None

    # The module makes its classes when it is imported.
    message: Any = vars(wandb_internal_pb2)["Record"]
    for content in _read_contents(path):
        try:
            yield message.FromString(content)
        except DecodeError:
            return


def _read_contents(path: Path) -> Iterator[bytes]:
    """Yield the content of each record."""
    parts: list[bytes] = []
    for part, fragment in _read_fragments(path):
        if part in (_WHOLE, _FIRST):
            parts = []

        parts.append(fragment)
        if sum(map(len, parts)) > MOST_RECORD_BYTES:
            return

        if part in (_WHOLE, _LAST):
            yield b"".join(parts)


def _read_fragments(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield which part of a record each fragment is, and its content, up to the first with a wrong checksum."""
    with path.open("rb") as file:
        block = file.read(BLOCK)
        if not block.startswith(HEADER[:4]):
            raise UnusableFileError(f"{path.name} is no log of Weights & Biases")

        begin = len(HEADER)
        while block:
            while begin + FRAGMENT_HEADER <= len(block):
                checksum = int.from_bytes(block[begin : begin + 4], "little")
                length = int.from_bytes(block[begin + 4 : begin + 6], "little")
                content_begin = begin + FRAGMENT_HEADER
                fragment = block[content_begin : content_begin + length]
                part = block[begin + 6]
                if part == 0:
                    # A block that was made before it was filled.
                    break

                if zlib.crc32(block[begin + 6 : content_begin] + fragment) != checksum:
                    return

                yield part, fragment
                begin = content_begin + length

            begin = 0
            block = file.read(BLOCK)
