"""Deletion of expired history: workers in the store (`archive.queue.cleanup`), logs and checkpoints
on this machine.

A file is deleted when its proposal ended so long ago, and the file has not been written for as
long: a folder may hold the logs of several archives, whose studies may have the same names.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from archive.errors import UsageError
from archive.queue import cleanup
from archive.trainer.storage import checkpoints, file_names, remote_files
from archive.trainer.storage.locations import local_folder, printable

if TYPE_CHECKING:
    from archive.api import Archive


@dataclass
class ClearedHistory:
    """Expired history.

    Attributes:
        workers: Ids of the workers.
        files: Bytes of each file.
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


def observer_logs(home: Path) -> Path:
    """Return the folder with what the observers of trainers print."""
    return home / "logs" / "observers"


def clear(
    archive: Archive,
    home: Path,
    seconds: float,
    *,
    checkpoints_at: Path | str | None = None,
    dry_run: bool = False,
) -> ClearedHistory:
    """Delete the history that is older than an age.

    Args:
        archive: The store of workers and proposals.
        home: Folder of the trainers on this machine.
        seconds: Age beyond which history expires.
        checkpoints_at: Folder or fsspec URL of the checkpoints; None stands for `checkpoints` in
            the home.
        dry_run: Delete nothing.

    Raises:
        UsageError: The age is negative.
        SettingsError: The location of the checkpoints cannot be read or written.
        StoreError: The store cannot be used.
    """
    if not seconds >= 0:
        raise UsageError(f"the age of expired history must be >= 0, got {seconds:g} s")

    workers = cleanup.gone(archive.connection, seconds)
    cleared = ClearedHistory(
        workers if dry_run else cleanup.forget(archive.connection, workers, seconds)
    )
    place = (
        home / "checkpoints"
        if checkpoints_at is None
        else local_folder(checkpoints_at) or str(checkpoints_at)
    )
    remote = (
        {} if isinstance(place, Path) else {file.name: file for file in remote_files.listed(place)}
    )
    folders = [home / "logs", *([place] if isinstance(place, Path) else [])]
    before = time.time() - seconds
    # Most archives have more proposals than a machine has files.
    if remote or any(folder.is_dir() and any(folder.iterdir()) for folder in folders):
        for id_ in cleanup.ended(archive.connection, seconds):
            _remove(file_names.trial_log_path(home, id_), before, cleared, dry_run=dry_run)
            checkpoint = checkpoints.path_of(place, id_)
            if isinstance(checkpoint, Path):
                _remove(checkpoint, before, cleared, dry_run=dry_run)
            elif (file := remote.get(checkpoint.rpartition("/")[2])) is not None:
                _remove_remotely(file, before, cleared, dry_run=dry_run)

    for path in sorted([*trainer_logs(home).glob("*.log*"), *observer_logs(home).glob("*.log")]):
        _remove(path, before, cleared, dry_run=dry_run)

    return cleared


def _remove(path: Path, before: float, cleared: ClearedHistory, *, dry_run: bool) -> None:
    try:
        status = path.stat()
        if status.st_mtime > before:
            return

        if not dry_run:
            path.unlink()
    except OSError:
        return  # not on this machine, or deleted by another collection

    cleared.files[str(path)] = status.st_size


def _remove_remotely(
    file: remote_files.RemoteFile, before: float, cleared: ClearedHistory, *, dry_run: bool
) -> None:
    if file.modified is None or file.modified > before:
        return

    if not dry_run:
        remote_files.remove(file.uri)

    cleared.files[printable(file.uri)] = file.bytes
