"""The result spool: results that the store does not have yet, one JSON file each.

This is a transactional outbox. A result, or the reason of its absence, is written here before it is
sent: neither an outage of the store nor a kill of the daemon loses it; a proposal that was handed
back during an outage waits here, too. What a full disk rejects is held in memory, and written when
there is space.

Daemons of several machines may share the folder. Each delivers its own files. Files of a daemon
that is gone (`archive.trainer.daemon.spool_owner`) are adopted by renaming them, which one other
daemon wins, so that after an outage each result is delivered once. Delivering twice does no harm,
since completion is idempotent.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from archive.files import write_atomically
from archive.queue.causes import Cause, MemoryNeed
from archive.queue.updates import Completion, Failure, Release
from archive.store.records import Result, Weights
from archive.trainer.daemon import spool_owner
from archive.trainer.daemon.spool_owner import SpoolOwner

log = logging.getLogger("archive.trainer")

TerminalNotice = Completion | Failure | Release
"""A notice that ends a claim."""

PARTIAL_SECONDS = 600.0
"""Age at which a partial file counts as left behind by a kill."""
RETRY_SECONDS = 5.0
"""Pause between two attempts to write to a full disk."""


class ResultSpool:
    """The undelivered notices to one archive.

    Args:
        folder: Folder of their files; created with the first one.
        archive: Name of the archive, without a login; one folder may serve several archives.
        owner: The process whose files it writes; None stands for this one.
    """

    def __init__(self, folder: Path, archive: str, owner: SpoolOwner | None = None) -> None:
        self.folder = folder
        self.archive = archive
        self.owner = owner or spool_owner.own()
        self._refresh_at = time.monotonic() + spool_owner.REFRESH_SECONDS
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
        """Keep a notice until it is delivered; in memory alone, with a warning, if the disk is
        full.

        A second call writes a notice that could not be written before.
        """
        path = self._path(notice.id, notice.token)
        known = path in self._waiting
        self._waiting[path] = notice
        if not known or self._unwritten.get(path, math.inf) <= time.monotonic():
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
                if path in self._waiting or not spool_owner.is_left_behind(
                    path, self.owner, seconds
                ):
                    continue

                data: dict[str, Any] = json.loads(path.read_text("utf-8"))
                if data.pop("archive") != self.archive:
                    continue

                notice = _from_dict(data)
                own = self._path(notice.id, notice.token)
                os.utime(path)  # before it has this owner: an old file would be adopted from here
                path.rename(own)
                self._waiting[own] = notice
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
        """Keep the file of a notice that the store will never accept, for inspection, and never
        send it again.
        """
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

        self._refresh_at = time.monotonic() + spool_owner.REFRESH_SECONDS
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
    # A trainer of an earlier release may have left a file, whose field for the weights is
    # `checkpoint`.
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
