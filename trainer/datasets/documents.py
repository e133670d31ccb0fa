"""Text as sequences of bytes: documents, their split, and packed sequences.

    documents ── shuffled, split by their bytes ──> train, valid, test
    a part's documents, each followed by a separator ── cut ──> sequences of `context` bytes

| file                                | documents                                          |
|-------------------------------------|----------------------------------------------------|
| `.jsonl`                            | the field `text` of each line                      |
| with marks `<|endoftext|>`          | the texts between them                             |
| any other                           | pieces of 4 KiB or more that end behind an empty   |
|                                     | line, else behind a line                           |
| `pydoc-topics`                      | the topics of Python's reference (`pydoc_data`)    |

A token is a byte. The separator is byte 0, which no text contains. A sequence's targets are its
bytes moved by one; sequences follow each other without gaps, and the rest of a part that fills no
sequence is left out. No document is in two parts: held-out text comes from documents that no
training has seen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archive.errors import UnusableFileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BYTES = 256
"""Number of different tokens."""
SEPARATOR = b"\0"
END = b"<|endoftext|>"
PIECE = 4096
HELD_OUT = 0.1
"""Share of the bytes in the validation part, and in the test part."""


class DocumentSplit(NamedTuple):
    """Documents of each part."""

    train: list[bytes]
    valid: list[bytes]
    test: list[bytes]


def read_documents(path: Path, raw: bytes) -> list[bytes]:
    """Return the documents of a file, without empty ones.

    Args:
        path: The file; its ending decides on the form.
        raw: Its content.

    Raises:
        UnusableFileError: The file is no text, or a line of a `.jsonl` has no text.
    """
    if path.suffix == ".jsonl":
        documents = _of_lines(path, raw)
    elif END in raw:
        documents = raw.split(END)
    else:
        documents = _cut(raw)

    documents = [document.strip() for document in documents]
    documents = [document for document in documents if document]
    if any(SEPARATOR in document for document in documents):
        raise UnusableFileError(f"{path} has bytes of value 0: it is no text")

    return documents


def topics() -> list[bytes]:
    """Return the topics of Python's language reference, which every Python has."""
    from pydoc_data.topics import topics as texts

    return [texts[name].encode() for name in sorted(texts)]


def split(documents: Sequence[bytes], seed: int) -> DocumentSplit:
    """Return shuffled documents in parts by their bytes: a tenth each is held out.

    Equal documents are in one part.

    Args:
        documents: The documents.
        seed: Seed of the order.
    """

    def digest(document: bytes) -> bytes:
        return hashlib.sha256(f"{seed} ".encode() + document).digest()

    total = sum(map(len, documents))
    parts = DocumentSplit([], [], [])
    test_bytes = 0
    valid_bytes = 0
    for _, equal in groupby(sorted(documents, key=digest)):
        copies = list(equal)
        size = sum(map(len, copies))
        if test_bytes < HELD_OUT * total:
            parts.test.extend(copies)
            test_bytes += size
        elif valid_bytes < HELD_OUT * total:
            parts.valid.extend(copies)
            valid_bytes += size
        else:
            parts.train.extend(copies)

    return parts


def count_sequences(documents: Sequence[bytes], context: int) -> int:
    """Return the number of packed sequences of some documents."""
    return max(0, sum(map(len, documents)) + len(documents) - 1) // context


def pack(documents: Sequence[bytes], context: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sequences of some documents, and the tokens that follow: (n, context) each."""
    import numpy as np

    stream = b"".join(document + SEPARATOR for document in documents)
    count = count_sequences(documents, context)
    tokens = np.frombuffer(stream, np.uint8)[: count * context + 1].astype(np.int64)
    inputs = tokens[:-1].reshape(count, context)
    targets = tokens[1:].reshape(count, context)
    return inputs, targets


def _of_lines(path: Path, raw: bytes) -> list[bytes]:
    documents = []
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue

        try:
            text = json.loads(line)["text"]
        except (ValueError, TypeError, KeyError, RecursionError):
            text = None

        if not isinstance(text, str):
            raise UnusableFileError(f'{path}: line {number} must be {{"text": "…"}}')

        # A lone surrogate has no bytes of its own.
        documents.append(text.encode("utf-8", "replace"))

    return documents


def _cut(raw: bytes) -> list[bytes]:
    """Return pieces of a text without marks, cut where paragraphs or lines end."""
    pieces = []
    start = 0
    while start < len(raw):
        end = _next_end(raw, start + PIECE)
        pieces.append(raw[start:end])
        start = end

    return pieces


def _next_end(raw: bytes, position: int) -> int:
    for mark in (b"\n\n", b"\n"):
        start = raw.find(mark, position, position + PIECE)
        if start >= 0:
            return start + len(mark)

    return min(position, len(raw))
