"""Finished results that the archive does not have yet: one JSON file each, until they are delivered.

A result is put here before it is sent, so that neither a server that is away nor a kill of the daemon loses it; the
next daemon with the same folder delivers what it finds. Delivering twice does no harm, for completion is idempotent.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from archive.errors import ArchiveError, StoreError
from archive.records import Checkpoint, Result
from archive.trainer.files import write_atomically

log = logging.getLogger("archive.trainer")

Deliver = Callable[[str, str, Result], bool]


@dataclass(frozen=True)
class Parcel:
    """A result on its way: whose it is, and the token of the lease that it was trained under."""

    proposal: str
    token: str
    result: Result


class Outbox:
    """The folder of results to be delivered to one archive.

    Args:
        folder: Where they are kept; made when the first one is.
        archive: Which archive they belong to, without a login; a folder may hold results for several.
    """

    def __init__(self, folder: Path, archive: str) -> None:
        """Keep nothing in memory but what the disk would not take."""
        self.folder, self.archive = folder, archive
        self._homeless: dict[str, Parcel] = {}

    def put(self, parcel: Parcel) -> None:
        """Keep a result until it is delivered; in memory alone, with a warning, when the disk takes no more."""
        content = json.dumps({"archive": self.archive, **asdict(parcel)}, indent=1).encode()
        try:
            write_atomically(self._path(parcel.proposal), content)
        except OSError as error:
            log.warning("result not on disk proposal=%s reason=%r", parcel.proposal, error.strerror)
            self._homeless[parcel.proposal] = parcel

    def deliver(self, send: Deliver) -> int:
        """Send everything, and forget what has arrived.

        Args:
            send: `Proposals.complete`.

        Returns:
            How many of them are the results on record; those of other workers may have been first.

        Raises:
            StoreError: The archive cannot take results now; what is left stays for the next time.
        """
        taken = 0
        for parcel in list(self._parcels()):
            try:
                first = send(parcel.proposal, parcel.token, parcel.result)
                log.info("complete proposal=%s value=%.6g first=%s", parcel.proposal, parcel.result.value, first)
                taken += first
                self._forget(parcel)
            except StoreError:
                raise
            except ArchiveError as error:
                log.error("result refused proposal=%s reason=%r", parcel.proposal, str(error))
                self._set_aside(parcel)
        return taken

    def _parcels(self) -> Iterator[Parcel]:
        yield from list(self._homeless.values())
        for path in sorted(self.folder.glob("*.json")):
            try:
                data: dict[str, Any] = json.loads(path.read_text("utf-8"))
                if data.pop("archive") == self.archive:
                    yield Parcel(data["proposal"], data["token"], _result_from(data["result"]))
            except FileNotFoundError:
                continue  # another daemon has delivered it
            except (OSError, ValueError, KeyError, TypeError) as error:
                log.error("no result in file=%s reason=%r", path, str(error))

    def _path(self, proposal: str) -> Path:
        # Ids hold characters that no file name may have; the digest also keeps equal names of two archives apart.
        return self.folder / f"{hashlib.sha256(f'{self.archive} {proposal}'.encode()).hexdigest()[:24]}.json"

    def _forget(self, parcel: Parcel) -> None:
        if self._homeless.pop(parcel.proposal, None) is None:
            self._path(parcel.proposal).unlink(missing_ok=True)

    def _set_aside(self, parcel: Parcel) -> None:
        path = self._path(parcel.proposal)
        if self._homeless.pop(parcel.proposal, None) is None and path.exists():
            path.rename(path.with_suffix(".refused"))


def _result_from(data: dict[str, Any]) -> Result:
    saved = data.pop("checkpoint")
    return Result(**data, checkpoint=Checkpoint(**saved) if saved else None)
