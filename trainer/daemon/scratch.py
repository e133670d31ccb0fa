"""Scratch folders of trials: temporary files that end with the trial, and how much space they take.

    ROOT/archive-scratch-HOST-PID-…/7      one folder a trial; ROOT is a setting, or the system's
                                           temporary folder

A trial's folder is its working directory and its temporary folder, so that files that a recipe
leaves are deleted. The daemon deletes them in the background when it has the result. The trial
itself deletes nothing, because that would delay its result. Folders of trainers that were killed
are deleted by the next trainer on the machine.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import platform
import shutil
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from archive.errors import TrainingError

log = logging.getLogger("archive.trainer")

_PREFIX = "archive-scratch"
MEASURE_SECONDS = 1.0
"""Pause between two measurements of a folder."""
SLICE_SECONDS = 0.02
"""Longest time of a measurement before the daemon turns to other work; the next call continues
it."""


class ScratchFolders:
    """The scratch folders of one daemon.

    Args:
        root: Folder of them all; None stands for the system's temporary folder.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = Path(tempfile.gettempdir()) if root is None else root
        self._prefix = f"{_PREFIX}-{zlib.crc32(platform.node().encode()):08x}"
        self._own: Path | None = None
        self._numbers = itertools.count()

    def create(self) -> ScratchFolder:
        """Return a new folder, which only this user can read.

        Raises:
            TrainingError: It cannot be created.
        """
        try:
            if self._own is None:
                self.root.mkdir(parents=True, exist_ok=True)
                self._own = Path(
                    tempfile.mkdtemp(prefix=f"{self._prefix}-{os.getpid()}-", dir=self.root)
                )

            path = self._own / str(next(self._numbers))
            path.mkdir(mode=0o700, parents=True)
        except OSError as error:
            reason = error.strerror or str(error)
            raise TrainingError(
                f"no scratch folder could be created in {self.root}: {reason}"
            ) from error

        return ScratchFolder(path)

    def remove_stale(self) -> int:
        """Delete the folders of trainers of this machine that have ended; return their number."""
        count = 0
        for path in list(self.root.glob(f"{self._prefix}-*")):
            if _is_stale(path, self._prefix):
                _delete(path)
                count += 1

        return count

    def close(self) -> None:
        """Delete all folders of this daemon."""
        if self._own is not None:
            _delete(self._own)
            self._own = None


class ScratchFolder:
    """The scratch folder of one trial.

    Attributes:
        path: The folder.
        bytes: Space that its files take on the disk, by the last complete measurement.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        self._scan: Iterator[int] = iter(())
        self._counted = 0
        self._next_at = 0.0

    def measure(self) -> int:
        """Continue the measurement for a moment.

        Returns:
            The last complete measurement, or the present one if it is already larger; in bytes.
        """
        deadline = time.monotonic() + SLICE_SECONDS
        if time.monotonic() >= self._next_at:
            for size in self._scan:
                self._counted += size
                if time.monotonic() > deadline:
                    break
            else:
                self.bytes = self._counted
                self._counted = 0
                self._scan = _sizes(self.path)
                self._next_at = time.monotonic() + MEASURE_SECONDS

        return max(self.bytes, self._counted)

    def delete(self) -> None:
        """Delete the folder with all that is in it."""
        _delete(self.path)

    def delete_in_background(self) -> None:
        """Delete the folder in a separate thread: many files take long.

        `ScratchFolders.close` deletes the rest.
        """
        in_background(self.delete, "scratch deletion")


def _sizes(folder: Path) -> Iterator[int]:
    """Yield the space of each file below a folder; links are not followed."""
    waiting = [str(folder)]
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:  # It is gone, or the recipe has closed it.
            continue

        with entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)

                    yield entry.stat(follow_symlinks=False).st_blocks * 512
                except OSError:
                    continue


def _is_stale(path: Path, prefix: str) -> bool:
    pid = path.name.removeprefix(f"{prefix}-").partition("-")[0]
    try:
        is_ours = path.stat().st_uid == os.geteuid()
    except OSError:
        return False

    return is_ours and pid.isdigit() and not psutil.pid_exists(int(pid))


def _delete(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        # A recipe may have taken away its own right to write.
        with contextlib.suppress(OSError):
            path.chmod(0o700)
            for folder, names, _ in os.walk(path):
                for name in names:
                    os.chmod(os.path.join(folder, name), 0o700)

        shutil.rmtree(path, ignore_errors=True)

    if path.exists():
        log.warning("scratch folder not deleted path=%s", path)


def in_background(work: Callable[[], object], name: str) -> None:
    """Do work in a separate thread, which does not delay the end of the process.

    Args:
        work: A function; it may be cut off at any point when the process ends.
        name: Name of the thread.
    """
    try:
        threading.Thread(target=work, daemon=True, name=name).start()
    except RuntimeError:  # The system starts no further thread.
        work()
