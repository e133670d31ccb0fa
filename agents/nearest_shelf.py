"""The index of one kernel and space of an archive, kept up to date, in memory and in a file.

    archive ── architectures not seen before ──> prepared ──> index (archive.kernels.index)
                                                                 │  ^
                                                                 v  │
                              ~/.archive/cache/nearest/<kernel, settings, space, archive>.npz

Preparing takes some hundred microseconds an architecture and is done once. The file holds numbers only, and is a copy:
it may be deleted at any time. Nothing is ever taken out of an archive, so that the number of its architectures says
whether there are new ones.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive import __version__
from archive.errors import InvalidArchitectureError
from archive.kernels.base import Distance
from archive.kernels.index import Index, index

if TYPE_CHECKING:
    from archive.archive import Archive

Keys = NDArray[np.bytes_]

FORMAT = 1
"""Of the files; another one is not read."""

SAVE = 500
"""Architectures that are prepared again each time rather than written down: less than half a second."""

BORN = "MATCH (m:SchemaMigration) RETURN min(m.applied) AS born"

# Alone in its query: both servers then know the number without counting.
COUNT = "MATCH (a:Architecture) RETURN count(a) AS architectures"

OF_SPACE = """
MATCH (a:Architecture {space: $space})
RETURN a.key AS key
"""


class Shelf:
    """The index of one kernel and space, with the keys of its networks in order.

    Args:
        archive: What is indexed.
        identity: Kernel, settings and space in words.
        distance: The kernel.
        space: The space.
        notify: Is told what takes long.

    Attributes:
        index: The index.
        keys: (n,) keys of its networks.
    """

    def __init__(
        self,
        archive: Archive,
        identity: str,
        distance: Distance[Any],
        space: str,
        notify: Callable[[str], None] | None,
    ) -> None:
        """Begin empty; `refresh` fills it."""
        self._archive, self._identity, self._notify = archive, identity, notify
        self.distance, self.space = distance, space
        self.index: Index = index(distance, space)
        self.keys: Keys = np.zeros(0, "S32")
        # What the kernel is not defined on is not asked about again.
        self._refused: Keys = np.zeros(0, "S32")
        self._count, self._saved = -1, 0
        self._file: Path | None = None

    def refresh(self) -> None:
        """Add what is new in the archive."""
        if self._count < 0:
            self._file = self._path(self._archive.connection.read(lambda tx: tx.run(BORN).single(strict=True)["born"]))
            self._load()
        count = self._archive.connection.read(lambda tx: int(tx.run(COUNT).single(strict=True)["architectures"]))
        if count != self._count:
            self._add(self._new())
            self._count = count
            self._save()

    def allowed(self, own: str, within: list[str] | None) -> NDArray[np.int64]:
        """Return the positions that count: all but the network's own, or those of a study."""
        chosen = self.keys != own.encode()
        if within is not None:
            chosen &= np.isin(self.keys, np.array(within, "S32"))
        return np.flatnonzero(chosen)

    def forget(self) -> None:
        """Delete the file."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink()

    def _new(self) -> list[str]:
        found = self._archive.connection.read(lambda tx: [row[0] for row in tx.run(OF_SPACE, space=self.space)])
        wanted = np.array(sorted(found), "S32")
        known = np.concatenate([self.keys, self._refused])
        return [key.decode() for key in wanted[~np.isin(wanted, known)]]

    def _add(self, keys: list[str]) -> None:
        if len(keys) > 10 * SAVE and self._notify is not None:
            self._notify(f"preparing {len(keys)} architectures for {self._identity.split()[0]}, once")
        for begin in range(0, len(keys), 10 * SAVE):
            part = keys[begin : begin + 10 * SAVE]
            networks = self._archive.architectures.get_many(part)
            prepared, refused = [], []
            for key in part:
                try:
                    prepared.append((key, self.distance.prepare(networks[key])))
                except InvalidArchitectureError:
                    refused.append(key)
            if prepared:
                self.index.add([one for _, one in prepared])
            self.keys = np.concatenate([self.keys, np.array([key for key, _ in prepared], "S32")])
            self._refused = np.concatenate([self._refused, np.array(refused, "S32")])

    def _path(self, born: Any) -> Path:
        settings = self._archive.connection.settings
        # Of a server that many share, each user keeps a copy of his own.
        where = f"{settings.uri} {self._archive.connection.database}"
        text = f"{FORMAT} {__version__} {self._identity} {where} {born}"
        return settings.home / "cache" / "nearest" / f"{blake2b(text.encode(), digest_size=16).hexdigest()}.npz"

    def _load(self) -> None:
        if self._file is None or not self.index.storable:
            return
        # A file that is missing, cut off or of another make is as good as none.
        with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            with self._file.open("rb") as opened:
                file = np.load(opened, allow_pickle=False)
                arrays: dict[str, Any] = {name: file[name] for name in file.files}
            keys, refused = arrays.pop("keys"), arrays.pop("refused")
            self.index = index(self.distance, self.space, arrays)
            self.keys, self._refused = keys, refused
            self._saved = len(keys) + len(refused)

    def _save(self) -> None:
        if self._file is None or not self.index.storable or len(self.keys) + len(self._refused) - self._saved < SAVE:
            return
        # A full disk, or a home that cannot be written to, costs time and nothing else.
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._file.parent, suffix=".part")
            try:
                arrays: dict[str, Any] = {"keys": self.keys, "refused": self._refused, **self.index.arrays}
                with os.fdopen(handle, "wb") as file:
                    np.savez(file, **arrays)
                Path(name).replace(self._file)
            except BaseException:
                with suppress(OSError):
                    Path(name).unlink()
                raise
            self._saved = len(self.keys) + len(self._refused)
