"""The persistent index of one kernel and space of an archive, in memory and in a file.

    archive ── architectures not seen before ──> prepared ──> index (archive.kernels.search.index)
                                                                 │  ^
                                                                 v  │
                                   a file for kernel, settings, space and archive (archive.cache)

Preparing takes some hundred microseconds an architecture and is done once. The file is a cache of
numbers and may be deleted at any time. Architectures are never removed from an archive: their
number changes exactly when there are new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive import cache
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError
from archive.kernels.base import Distance
from archive.kernels.search.index import Index, index

if TYPE_CHECKING:
    from archive.api import Archive

Keys = NDArray[np.bytes_]

KIND = "nearest"
"""Kind of the cached files."""

BLOCK = 5000
"""Number of architectures that are read and prepared at a time."""

CREATED = "MATCH (m:SchemaMigration) RETURN min(m.applied) AS created"
"""Time of creation, which distinguishes archives that existed at one address at different times."""

COUNT = "MATCH (a:Architecture) RETURN count(a) AS architectures"
"""Number of architectures. Without further clauses, both servers know it without counting."""

OF_SPACE = """
MATCH (a:Architecture {space: $space})
RETURN a.key AS key
"""


class IndexStore:
    """The index of one kernel and space, with the keys of its networks in order.

    Args:
        archive: The archive to index.
        identity: Kernel, settings and space as text.
        distance: The kernel.
        space: The space.
        notify: Called with a message before a slow step.

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
        """Start empty; `refresh` fills the index."""
        self._archive = archive
        self._identity = identity
        self._notify = notify
        self.distance = distance
        self.space = space
        self.index: Index = index(distance, space)
        self.keys: Keys = np.zeros(0, "S32")
        # Networks that the kernel is not defined on; they are prepared only once.
        self._refused: Keys = np.zeros(0, "S32")
        self._count = -1
        self._saved = 0
        self._place = ""

    def refresh(self) -> None:
        """Add the new architectures of the archive."""
        if self._count < 0:
            created = self._archive.connection.read(
                lambda tx: tx.run(CREATED).single(strict=True)["created"]
            )
            settings = self._archive.connection.settings
            # Each user of a shared server has a separate file.
            place = f"{settings.uri} {self._archive.connection.database} {created}"
            self._place = f"{self._identity} {vocabulary(self.space).digest} {place}"
            self._load()

        count = self._archive.connection.read(
            lambda tx: int(tx.run(COUNT).single(strict=True)["architectures"])
        )
        if count != self._count:
            self._add(self._new())
            self._count = count
            self._save()

    def allowed(self, own: str, within: list[str] | None) -> NDArray[np.int64]:
        """Return the positions to search: all but the network's own, or those of a study."""
        chosen = self.keys != own.encode()
        if within is not None:
            chosen &= np.isin(self.keys, np.array(within, "S32"))

        return np.flatnonzero(chosen)

    def left_out(self, own: str, within: list[str] | None) -> int:
        """Return the number of networks that `allowed` would search if the kernel were defined on
        them.
        """
        refused = self._refused[self._refused != own.encode()]
        return (
            len(refused) if within is None else int(np.isin(refused, np.array(within, "S32")).sum())
        )

    def forget(self) -> None:
        """Delete the file."""
        cache.delete(KIND, self._place, self._archive.connection.settings.home)

    def _new(self) -> list[str]:
        stored = self._archive.connection.read(
            lambda tx: [row[0] for row in tx.run(OF_SPACE, space=self.space)]
        )
        keys = np.array(sorted(stored), "S32")
        known = np.concatenate([self.keys, self._refused])
        return [key.decode() for key in keys[~np.isin(keys, known)]]

    def _add(self, keys: list[str]) -> None:
        if len(keys) > BLOCK and self._notify is not None:
            self._notify(
                f"preparing {len(keys)} architectures for {self._identity.split()[0]}, once"
            )

        for begin in range(0, len(keys), BLOCK):
            part = keys[begin : begin + BLOCK]
            networks = self._archive.architectures.get_many(part)
            prepared = []
            refused = []
            for key in part:
                try:
                    prepared.append((key, self.distance.prepare(networks[key])))
                except InvalidArchitectureError:
                    refused.append(key)

            if prepared:
                self.index.add([one for _, one in prepared])

            self.keys = np.concatenate([self.keys, np.array([key for key, _ in prepared], "S32")])
            self._refused = np.concatenate([self._refused, np.array(refused, "S32")])

    @property
    def _storable(self) -> bool:
        """Whether the index may be kept in a file, which is renewed when the code of this package
        alone changes.
        """
        return self.index.storable and type(self.distance).__module__.startswith("archive.")

    def _load(self) -> None:
        arrays = (
            cache.read(KIND, self._place, self._archive.connection.settings.home)
            if self._storable
            else None
        )
        # A file that is corrupt or of another format is ignored.
        with suppress(ValueError, KeyError):
            if arrays is not None:
                keys = arrays.pop("keys")
                refused = arrays.pop("refused")
                self.index = index(self.distance, self.space, arrays)
                self.keys = keys
                self._refused = refused
                self._saved = len(keys) + len(refused)

    def _save(self) -> None:
        count = len(self.keys) + len(self._refused)
        if not self._storable or count - self._saved < cache.WORTH:
            return

        arrays = {"keys": self.keys, "refused": self._refused, **self.index.arrays}
        cache.write(KIND, self._place, arrays, self._archive.connection.settings.home)
        self._saved = count
