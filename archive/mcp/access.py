"""Lazy access to the archive of a server of tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.errors import StoreError


@dataclass(frozen=True)
class UnopenedArchive:
    """An archive that cannot be opened now, for tools that keep what they are told on disk.

    Attributes:
        home: Its home.
        error: Why it cannot be opened.
    """

    home: Path
    error: StoreError


class ArchiveAccess:
    """Lazy access to one archive, shared by threads.

    A client starts its servers when it starts, and lists their tools at once. The archive is opened
    later: a database that cannot be reached is then an error of one call, and the next call tries
    again.

    Args:
        connect: Opens the archive.
        home: Its home; None where nothing may be kept there.
    """

    def __init__(self, connect: Callable[[], Archive], home: Path | None = None) -> None:
        """Open nothing yet."""
        self.home = home
        self._connect = connect
        self._lock = Lock()
        self._archive: Archive | None = None

    def archive(self) -> Archive:
        """Return the archive.

        Raises:
            ArchiveError: It cannot be opened.
        """
        with self._lock:
            if self._archive is None:
                self._archive = self._connect()

            return self._archive

    def close(self) -> None:
        """Close the archive if it was opened; the next call opens it again."""
        with self._lock:
            if self._archive is not None:
                self._archive.close()

            self._archive = None
