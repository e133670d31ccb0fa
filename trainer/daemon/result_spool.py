"""How trials ended, as far as the archive does not know it yet: one JSON file each, until they are delivered.

A result, or the reason why there is none, is put here before it is sent, so that neither a server that is away nor a
kill of the daemon loses it; what was handed back while the server was away waits here, too. What a full disk does not
take is held in memory, and written as soon as there is space. Another daemon with the same folder delivers what is
left behind. Delivering twice does no harm, for completion is idempotent.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from archive.queue.updates import Completion, Failure, Release
from archive.store.records import Checkpoint, Result
from archive.trainer.storage.atomic import write_atomically

log = logging.getLogger("archive.trainer")

Ending = Completion | Failure | Release

REST_SECONDS = 600.0
"""Age at which a file that is still being written is taken for the rest of a kill."""
RETRY_SECONDS = 5.0
"""Pause after the disk took no more, before it is tried again."""


class Outbox:
    """The folder of endings to be delivered to one archive.

    Args:
        folder: Where they are kept; made when the first one is.
        archive: Which archive they belong to, without a login; a folder may hold those for several.
    """

    def __init__(self, folder: Path, archive: str) -> None:
        self.folder, self.archive = folder, archive
        self._waiting: dict[Path, Ending] = {}
        self._unwritten: dict[Path, float] = {}  # and when to try again, by `time.monotonic`

    def __len__(self) -> int:
        """How many endings wait for delivery by this daemon."""
        return len(self._waiting)

    @property
    def waiting(self) -> list[Ending]:
        """What is to be delivered, in the order in which it was put or found."""
        return list(self._waiting.values())

    def put(self, ending: Ending) -> None:
        """Keep an ending until it is delivered; in memory alone, with a warning, when the disk takes no more.

        Put again, it is written if it could not be before.
        """
        path = self._path(ending.id, ending.token)
        known = path in self._waiting
        self._waiting[path] = ending
        if not known or self._unwritten.get(path, math.inf) <= time.monotonic():
            self._write(path, ending)

    def is_safe(self, id_: str, token: str) -> bool:
        """Whether no kill loses how a claim ended: it is on the disk, or not here any more."""
        return self._path(id_, token) not in self._unwritten

    def adopt(self, seconds: float = 0.0) -> int:
        """Take over what other daemons left behind and nobody has delivered for so long; return how much that is."""
        adopted, before = 0, time.time() - seconds
        self._sweep()
        for path in sorted(self.folder.glob("*.json")):
            try:
                if path in self._waiting or path.stat().st_mtime > before:
                    continue
                data: dict[str, Any] = json.loads(path.read_text("utf-8"))
                if data.pop("archive") == self.archive:
                    self._waiting[path] = _from_dict(data)
                    adopted += 1
            except FileNotFoundError:
                continue  # another daemon has delivered it
            except (OSError, ValueError, KeyError, TypeError) as error:
                log.error("no result in file=%s reason=%r", path, str(error))
        return adopted

    def forget(self, ending: Ending) -> None:
        """Drop what has arrived."""
        for path in [path for path, held in self._waiting.items() if held is ending]:
            self._drop(path)
            # What cannot be removed is delivered again by the next daemon, and changes nothing.
            with contextlib.suppress(OSError):
                path.unlink()

    def set_aside(self, ending: Ending) -> None:
        """Keep what the archive will never take for a person to look at, and try it no more."""
        for path in [path for path, held in self._waiting.items() if held is ending]:
            self._drop(path)
            with contextlib.suppress(OSError):
                path.replace(path.with_suffix(".refused"))

    def _write(self, path: Path, ending: Ending) -> None:
        try:
            write_atomically(path, json.dumps({"archive": self.archive, **_as_dict(ending)}, indent=1).encode())
        except OSError as error:
            if path not in self._unwritten:
                log.warning("result not on disk proposal=%s reason=%r", ending.id, error.strerror or str(error))
            self._unwritten[path] = time.monotonic() + RETRY_SECONDS
        else:
            if self._unwritten.pop(path, None) is not None:
                log.info("result on disk after all proposal=%s", ending.id)

    def _drop(self, path: Path) -> None:
        del self._waiting[path]
        self._unwritten.pop(path, None)

    def _sweep(self) -> None:
        """Remove the rests of writes that a kill cut off."""
        for path in self.folder.glob(".*.part"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - REST_SECONDS:
                    path.unlink()

    def _path(self, id_: str, token: str) -> Path:
        # Ids hold characters that no file name may have; the digest also keeps attempts and archives apart.
        text = f"{self.archive} {id_} {token}"
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def _as_dict(ending: Ending) -> dict[str, Any]:
    kept = asdict(ending)
    return {"proposal": kept.pop("id"), **kept}


def _from_dict(data: dict[str, Any]) -> Ending:
    id_, token = data.pop("proposal"), data.pop("token")
    if "result" not in data:
        return Failure(id_, token, **data) if "reason" in data else Release(id_, token, **data)
    result = data.pop("result")
    saved = result.pop("checkpoint")
    return Completion(id_, token, Result(**result, checkpoint=Checkpoint(**saved) if saved else None), **data)
