"""Write lock of an embedded server: turns of its writers, which are all on one machine.

    short writers     | | || | |                  | ||  |       shared access; after a conflict they run again
    a long writer                [==============]               exclusive access

ArcadeDB's concurrency is optimistic: of two transactions that change the same record, or one page
of a file in ways that cannot be merged, the one that commits later fails and has to run again.
Beside many short transactions, a long one would fail for ever. So it waits for the running ones to
finish, and then has exclusive access. A short transaction that has failed twice gets exclusive
access, too.

Two file locks make a turnstile: every writer passes the gate, and a writer that needs exclusive
access holds the gate while it waits for the others to finish. Writers that would all change the
same records, such as claims of proposals, form a lane with an additional lock, and run one after
the other. The system releases the locks of a killed process. Turns save time and are not needed for
safety: a writer that waits too long, because a process was suspended during its turn, proceeds
without the lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from archive.backoff import Backoff
from archive.files import lock_file, unlock_file

PATIENCE_SECONDS = 5.0
"""Maximum waiting time for a lock, far longer than any turn."""
LONG = 4
"""Number of proposals above which a transaction gets exclusive access: otherwise it would conflict
and run again."""
_PAUSE_SECONDS = 0.002
_LONGEST_PAUSE_SECONDS = 0.01
_SHORT_PAUSE_SECONDS = 0.0007
"""Polling interval of the writer that holds the gate."""


class WriteLock:
    """Write lock of one server. Safe to share between threads.

    Args:
        folder: Folder of the lock files, one for each server.
    """

    def __init__(self, folder: Path) -> None:
        """Keep the folder; the files are opened for each turn."""
        self._folder = folder

    @contextmanager
    def turn(self, *, alone: bool, lane: str | None = None) -> Iterator[None]:
        """Wait for a turn, and hold it for the duration of the block.

        Args:
            alone: Whether the turn needs exclusive access.
            lane: Name of a group of writers that run one after the other; None for no group.
        """
        handles: list[int | None] = []
        try:
            # If a lock file cannot be opened, on a full disk for example, the transaction itself
            # reports the cause.
            for name in ("gate", "lock", lane):
                handles.append(_open(self._folder / f"turn.{name}") if name else None)

            gate, lock, lane_lock = handles
            deadline = time.monotonic() + PATIENCE_SECONDS
            if lane_lock is not None:
                _lock(lane_lock, deadline)

            if gate is not None and lock is not None and _lock(gate, deadline):
                _lock(lock, deadline, shared=not alone, longest=_SHORT_PAUSE_SECONDS)
                unlock_file(gate)

            yield
        finally:
            for handle in reversed(handles):
                if handle is not None:
                    # A process forked within the turn holds the handle, too; closing it would not
                    # release the lock.
                    with suppress(OSError):
                        unlock_file(handle)

                    os.close(handle)


def _open(path: Path) -> int | None:
    # Opened for each turn, because locks belong to the opened file: threads exclude each other as
    # processes do.
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _lock(
    handle: int, deadline: float, *, shared: bool = False, longest: float = _LONGEST_PAUSE_SECONDS
) -> bool:
    """Lock a file; return False after the deadline, or on a file system without locks."""
    backoff = Backoff(_PAUSE_SECONDS, longest, factor=1.5)
    while True:
        with suppress(OSError):
            if lock_file(handle, shared=shared):
                return True

        if time.monotonic() > deadline:
            return False

        time.sleep(backoff.next_pause())
