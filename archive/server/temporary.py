"""Archives in temporary folders, for measurements.

The server ends and the folder goes with the block.

Signals that arrive during the clean-up wait for its end. After a SIGKILL or a power cut, a server
and a folder are left behind; the next temporary archive of the same user removes them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from archive import settings
from archive.errors import ArchiveError
from archive.server import embedded
from archive.settings import Settings

PREFIX = "archive-bench-"
OWNER = "owner"
"""File in a temporary archive with the process that made it: its number and its start."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def temporary_archive() -> Iterator[Settings]:
    """Yield settings of an archive in a new folder; the block may start its embedded server.

    Raises:
        ServerStartError: The server does not end; its folder stays.
    """
    _remove_abandoned()
    home = Path(tempfile.mkdtemp(prefix=PREFIX))
    (home / OWNER).write_text(_identity(os.getpid()))
    try:
        yield settings.load(home=home, environment={})
    finally:
        with _signals_later():
            _remove(home)


def _remove(home: Path) -> None:
    embedded.stop(settings.load(home=home, environment={}))
    shutil.rmtree(home, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove the temporary archives of this user whose processes have been killed."""
    for home in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError, ArchiveError):
            owner = home / OWNER
            identity = owner.read_text()
            is_own = home.stat().st_uid == owner.stat().st_uid == os.getuid()
            if is_own and not home.is_symlink() and _identity(int(identity.split()[0])) != identity:
                _remove(home)


def _identity(pid: int) -> str:
    """Return the number and the start of a process.

    Another process of the same number has another start.
    """
    try:
        return f"{pid} {psutil.Process(pid).create_time()}"
    except psutil.Error:
        return f"{pid} ended"


@contextmanager
def _signals_later() -> Iterator[None]:
    """Deliver signals to the main thread after the block only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
