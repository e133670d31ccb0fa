"""Messages from the process of a trial to its daemon, and their frames on the pipe.

    magic (4 bytes) | length of the rest (4 bytes) | {"kind": "EpochReport", "metrics": {…}, …}

A recipe runs in the process that writes the pipe, and native code may write anything into any open
file. Nothing of a message is therefore executed, as unpickling would, and the daemon never waits
for the rest of one. Reading messages needs no torch, so the daemon never loads it.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from typing import Any, Final

from archive.queue.causes import Cause, MemoryNeed
from archive.store.records import Result, Weights

_MAGIC: Final = b"\x93ATM"
_HEADER = struct.Struct(">4sI")
MOST_BYTES = 1 << 27
"""Largest message: a curve of the largest size takes less."""


@dataclass(frozen=True, slots=True)
class EpochReport:
    """An epoch is over.

    Attributes:
        metrics: Its entries of the curve.
        resumed: Whether it was trained before the trial was resumed.
    """

    metrics: dict[str, float]
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class TrialFinished:
    """Training ended normally, and the weights are on disk."""

    result: Result


@dataclass(frozen=True, slots=True)
class TrialFailed:
    """There is no result.

    Attributes:
        reason: Why.
        retry: Whether another attempt may succeed.
        log_tail: Last lines of the trial's log, if it has one.
        cause: Kind of the reason.
        refused: Whether the training could not begin here: the proposal goes to another worker,
            untouched.
        memory: Memory of a trial that ran out of it.
    """

    reason: str
    retry: bool = False
    log_tail: str = ""
    cause: Cause = Cause.TRAINING
    refused: bool = False
    memory: MemoryNeed | None = None


@dataclass(frozen=True, slots=True)
class TrialInterrupted:
    """The trial ended because the daemon interrupted it.

    Attributes:
        saved: Whether there is a checkpoint to resume from.
        epoch: Number of whole epochs.
    """

    saved: bool
    epoch: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life during a long epoch; `TrialProcess` consumes it."""


Message = EpochReport | TrialFinished | TrialFailed | TrialInterrupted
"""Messages from a trial: any number of `EpochReport`, then exactly one of the others."""

_KINDS: dict[str, Any] = {
    "EpochReport": EpochReport,
    "Heartbeat": Heartbeat,
    "TrialFailed": TrialFailed,
    "TrialFinished": TrialFinished,
    "TrialInterrupted": TrialInterrupted,
}


class UnreadableFrameError(Exception):
    """Bytes on the pipe are no message."""


def encode(message: Message | Heartbeat) -> bytes:
    """Return the frame of a message."""
    content = json.dumps({"kind": type(message).__name__, **asdict(message)}).encode()
    return _HEADER.pack(_MAGIC, len(content)) + content


class FrameReader:
    """Reads messages from bytes as they arrive."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, content: bytes) -> None:
        """Add bytes that have arrived."""
        self._bytes += content

    def next(self) -> Message | Heartbeat | None:
        """Return the next message that is complete, or None.

        Raises:
            UnreadableFrameError: The next bytes are no message.
        """
        begin = bytes(self._bytes[: len(_MAGIC)])
        if not _MAGIC.startswith(begin):
            raise UnreadableFrameError(f"it begins with {begin!r}")

        if len(self._bytes) < _HEADER.size:
            return None

        length = _HEADER.unpack_from(self._bytes)[1]
        if length > MOST_BYTES:
            raise UnreadableFrameError(f"it has {length} bytes, more than {MOST_BYTES}")

        end = _HEADER.size + length
        if len(self._bytes) < end:
            return None

        content = bytes(self._bytes[_HEADER.size : end])
        del self._bytes[:end]
        try:
            return _message(json.loads(content))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableFrameError(f"{type(error).__name__}: {error}") from None


def _message(values: dict[str, Any]) -> Message | Heartbeat:
    kind = _KINDS[values.pop("kind")]
    if kind is TrialFinished:
        result = values.pop("result")
        saved = result.pop("weights")
        values["result"] = Result(**result, weights=None if saved is None else Weights(**saved))

    if kind is TrialFailed:
        values["cause"] = Cause(values["cause"])
        values["memory"] = None if values["memory"] is None else MemoryNeed(**values["memory"])

    message: Message | Heartbeat = kind(**values)
    return message
