"""The result spool: results that the store does not have yet, one JSON file each.

This is a transactional outbox. A result, or the reason of its absence, is written here before it is
sent: neither an outage of the store nor a kill of the daemon loses it; a proposal that was handed
back during an outage waits here, too. What a full disk rejects is held in memory, and written when
there is space.

Daemons of several machines may share the folder. Each delivers its own files. Files of a daemon
that is gone are adopted by renaming them, which one other daemon wins, so that after an outage each
result is delivered once. Delivering twice does no harm, since completion is idempotent.

    DIGEST.HOST-PID-START.json   a file of the process PID of a machine, started at START
    DIGEST.json                  a file without an owner: its daemon has ended in order

A process is looked up on its own machine only. On others, the age of its files tells: a living
daemon touches the files that it could not deliver yet.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import math
import os
import platform
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from archive.files import write_atomically
from archive.queue.causes import Cause, MemoryNeed
from archive.queue.updates import Completion, Failure, Release
from archive.server.run_file import process_alive
from archive.store.records import Result, Weights

REFRESH_SECONDS = 60.0
"""Time between two touches of a file that waits for delivery."""
SILENT_SECONDS = 600.0
"""Age at which a file of another machine counts as left behind; clocks of machines differ by
less."""

log = logging.getLogger("archive.trainer")
TerminalNotice = Completion | Failure | Release
"""A notice that ends a claim."""
PARTIAL_SECONDS = 600.0
"""Age at which a partial file counts as left behind by a kill."""
RETRY_SECONDS = 5.0
"""Pause between two attempts to write to a full disk."""


@dataclass(frozen=True)
class SpoolOwner:
    """A daemon's process.

    Attributes:
        host: Digest of the machine's name.
        pid: Id of the process.
        created: Start of the process, in whole seconds since 1970.
    """

    host: str
    pid: int
    created: int

    def __str__(self) -> str:
        """The part of a file's name."""
        return f"{self.host}-{self.pid}-{self.created}"

    @classmethod
    def of_file(cls, path: Path) -> SpoolOwner | None:
        """Return the owner of a file; None if it has none."""
        host, _, rest = path.name.split(".")[-2].partition("-")
        pid, _, created = rest.partition("-")
        if not (pid.isdecimal() and created.isdecimal()):
            return None

        return cls(host, int(pid), int(created))


@functools.cache
def this_process() -> SpoolOwner:
    """Return this process."""
    return SpoolOwner(
        host_digest(platform.node()), os.getpid(), int(psutil.Process().create_time())
    )


def host_digest(name: str) -> str:
    """Return the digest of a machine's name."""
    return f"{zlib.crc32(name.encode()):08x}"


def is_left_behind(path: Path, owner: SpoolOwner, seconds: float) -> bool:
    """Whether the daemon of a file will not deliver it, so that the owner may adopt it.

    Args:
        path: The file.
        owner: The process that asks.
        seconds: Least age of files of the asking process itself, and of files without an owner.

    Raises:
        OSError: There is no such file any more.
    """
    other = SpoolOwner.of_file(path)
    age = time.time() - path.stat().st_mtime
    if other is None or other == owner:
        return age >= seconds

    if other.host == owner.host:
        return not process_alive(other.pid, float(other.created))

    return age >= SILENT_SECONDS


class ResultSpool:
    """The undelivered notices to one archive.

    Args:
        folder: Folder of their files; created with the first one.
        archive: Name of the archive, without a login; one folder may serve several archives.
        owner: The process that owns its files; None stands for this one.
    """

    def __init__(self, folder: Path, archive: str, owner: SpoolOwner | None = None) -> None:
        self.folder = folder
        self.archive = archive
        self.owner = owner or this_process()
        self._refresh_at = time.monotonic() + REFRESH_SECONDS
        self._waiting: dict[Path, TerminalNotice] = {}
        self._unwritten: dict[Path, float] = {}  # time of the next attempt, by `time.monotonic`

    def __len__(self) -> int:
        """Number of notices that this daemon has to deliver."""
        return len(self._waiting)

    @property
    def waiting(self) -> list[TerminalNotice]:
        """Undelivered notices, in the order in which they were put or adopted."""
        return list(self._waiting.values())

    def put(self, notice: TerminalNotice) -> None:
        """Keep a notice until it is delivered; in memory alone, with a warning, on a full disk.

        A second call writes a notice that could not be written before.
        """
        path = self._path(notice.id, notice.token)
        is_new = path not in self._waiting
        self._waiting[path] = notice
        if is_new or self._unwritten.get(path, math.inf) <= time.monotonic():
            self._write(path, notice)

        self._refresh()

    def is_safe(self, id_: str, token: str) -> bool:
        """Whether a kill cannot lose the end of a claim: it is on disk, or already delivered."""
        return self._path(id_, token) not in self._unwritten

    def is_delivered(self, id_: str, token: str) -> bool:
        """Whether the archive knows the end of a claim."""
        return self._path(id_, token) not in self._waiting

    def adopt(self, seconds: float = 0.0) -> int:
        """Take over files of daemons that are gone, and return their number.

        Args:
            seconds: Least age of files without an owner, and of files of another daemon in this
                process.
        """
        adopted = 0
        self._remove_partial()
        for path in sorted(self.folder.glob("*.json")):
            try:
                if path in self._waiting or not is_left_behind(path, self.owner, seconds):
                    continue

                data: dict[str, Any] = json.loads(path.read_text("utf-8"))
                if data.pop("archive") != self.archive:
                    continue

                notice = _from_dict(data)
                adopted_path = self._path(notice.id, notice.token)
                os.utime(path)  # before it has this owner: an old file would be adopted from here
                path.rename(adopted_path)
                self._waiting[adopted_path] = notice
                adopted += 1
            except FileNotFoundError:
                continue  # another daemon has delivered or adopted it
            except (OSError, ValueError, KeyError, TypeError) as error:
                log.error("unreadable result file=%s reason=%r", path, str(error))

        return adopted

    def release(self) -> None:
        """Leave the undelivered files to any daemon: this one ends."""
        for path in self._waiting:
            with contextlib.suppress(OSError):
                path.rename(self.folder / f"{path.name.partition('.')[0]}.json")

    def discard(self, notice: TerminalNotice) -> None:
        """Remove a notice that was delivered."""
        path = self._path(notice.id, notice.token)
        # A notice that replaced this one is not delivered yet.
        if self._waiting.get(path) is notice:
            self._drop(path)
            # A file that cannot be removed is delivered again by the next daemon, without effect.
            with contextlib.suppress(OSError):
                path.unlink()

    def quarantine(self, notice: TerminalNotice) -> None:
        """Keep the file of a notice that the store will never accept; never send it again."""
        path = self._path(notice.id, notice.token)
        if self._waiting.get(path) is notice:
            self._drop(path)
            with contextlib.suppress(OSError):
                path.replace(path.with_suffix(".refused"))

    def _write(self, path: Path, notice: TerminalNotice) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(
                path, json.dumps({"archive": self.archive, **_as_dict(notice)}, indent=1).encode()
            )
        except OSError as error:
            if path not in self._unwritten:
                log.warning(
                    "result not written proposal=%s reason=%r",
                    notice.id,
                    error.strerror or str(error),
                )

            self._unwritten[path] = time.monotonic() + RETRY_SECONDS
        else:
            if self._unwritten.pop(path, None) is not None:
                log.info("result written after all proposal=%s", notice.id)

    def _drop(self, path: Path) -> None:
        del self._waiting[path]
        self._unwritten.pop(path, None)

    def _refresh(self) -> None:
        """Show daemons of other machines that this one lives, and will deliver its files."""
        if time.monotonic() < self._refresh_at:
            return

        self._refresh_at = time.monotonic() + REFRESH_SECONDS
        for path in self._waiting:
            with contextlib.suppress(OSError):
                os.utime(path)

    def _remove_partial(self) -> None:
        """Remove partial files of writers that were killed."""
        for path in self.folder.glob(".*.part"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - PARTIAL_SECONDS:
                    path.unlink()

    def _path(self, id_: str, token: str) -> Path:
        # Ids hold characters that are invalid in file names; the digest also keeps attempts and
        # archives apart.
        text = f"{self.archive} {id_} {token}"
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.{self.owner}.json"


def _as_dict(notice: TerminalNotice) -> dict[str, Any]:
    values = asdict(notice)
    return {"proposal": values.pop("id"), **values}


def _from_dict(data: dict[str, Any]) -> TerminalNotice:
    id_ = data.pop("proposal")
    token = data.pop("token")
    if "result" not in data:
        return _without_result(id_, token, **data)

    result = data.pop("result")
    # In files of earlier releases, the field for the weights is `checkpoint`.
    saved = result.pop("weights" if "weights" in result else "checkpoint")
    return Completion(
        id_, token, Result(**result, weights=Weights(**saved) if saved else None), **data
    )


def _without_result(
    id_: str,
    token: str,
    *,
    cause: str | None = None,
    memory: dict[str, Any] | None = None,
    **data: Any,
) -> Failure | Release:
    kind = None if cause is None else Cause(cause)
    if "retry" not in data:
        return Release(id_, token, cause=kind, **data)

    return Failure(id_, token, cause=kind, memory=MemoryNeed(**memory) if memory else None, **data)
