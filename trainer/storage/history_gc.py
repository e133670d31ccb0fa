"""Deletion of expired history: workers in the store (`archive.queue.cleanup`), logs and states of trials here.

A file goes when the archive knows its proposal as ended so long ago, and nobody has written to it for as long: a
folder may hold the logs of several archives, whose studies may have the same names.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from archive.errors import UsageError
from archive.queue import cleanup
from archive.trainer.storage import checkpoints
from archive.trainer.trial import log

if TYPE_CHECKING:
    from archive.api import Archive


@dataclass
class Cleared:
    """What was cleared away, or would be.

    Attributes:
        workers: Ids of workers.
        files: Logs and states of trials, and logs of a search's own trainers, with their bytes.
    """

    workers: list[str] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)

    @property
    def freed(self) -> int:
        """Bytes of all files."""
        return sum(self.files.values())


def trainer_logs(home: Path) -> Path:
    """Return the folder with the logs of the trainers that searches start beside themselves."""
    return home / "logs" / "trainers"


def clear(archive: Archive, home: Path, seconds: float, *, dry_run: bool = False) -> Cleared:
    """Clear away what has been over for so long.

    Args:
        archive: Where workers and proposals are.
        home: Folder of the trainers on this machine.
        seconds: Age of what may go.
        dry_run: Say what would go, and leave it.

    Raises:
        UsageError: The age is negative.
        StoreError: The archive cannot be asked.
    """
    if not seconds >= 0:
        raise UsageError(f"the age of what is long past must be >= 0, got {seconds:g} s")
    workers = cleanup.gone(archive.connection, seconds)
    found = Cleared(workers if dry_run else cleanup.forget(archive.connection, workers, seconds))
    folders = [home / "logs", home / "states"]
    # Most archives have more proposals than a machine has files.
    if any(folder.is_dir() and any(folder.iterdir()) for folder in folders):
        for id_ in cleanup.ended(archive.connection, seconds):
            for path in (log.path_of(home, id_), checkpoints.path_of(home / "states", id_)):
                _remove(path, time.time() - seconds, found, dry_run=dry_run)
    for path in sorted(trainer_logs(home).glob("*.log*")):
        _remove(path, time.time() - seconds, found, dry_run=dry_run)
    return found


def _remove(path: Path, before: float, found: Cleared, *, dry_run: bool) -> None:
    try:
        about = path.stat()
        if about.st_mtime > before:
            return
        if not dry_run:
            path.unlink()
    except OSError:
        return  # it is not on this machine, or another collection was faster
    found.files[str(path)] = about.st_size
