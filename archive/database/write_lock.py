"""Turns: how writers of an embedded server, all of them on one machine, keep out of each other's way.

    short works     | | || | |                  | ||  |       many at a time; those that collide run again
    a long one                 [==============]               alone

The embedded server is optimistic: of two transactions that change the same record, or one page of a file in ways that
it cannot merge, the one that commits later fails and has to run again. A long transaction beside many short ones would
fail for ever. So it waits until those that are under way are through, and has the server to itself; a short one that
has failed twice runs again in the same way.

Two locks on files make a turnstile: everyone passes the gate, and whoever is to be alone holds it while he waits for
the others to leave. Those who would all change the same records, as claims of proposals do, form a lane, with a lock of
its own, and go through one after the other. What holds a lock and is killed lets go of it. Turns only save time:
transactions are as safe without them, and whoever waits too long, because a process was stopped within its turn, goes
ahead.
"""

from __future__ import annotations

import fcntl
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE_SECONDS = 5.0
"""Far longer than any turn lasts."""
LONG = 4
"""A transaction of more proposals than this has the server alone: beside others it would collide, and run again."""
_PAUSE_SECONDS = 0.002
_LONGEST_PAUSE_SECONDS = 0.01
_SHORT_PAUSE_SECONDS = 0.0007
"""Of the one who has passed the gate, and is next."""


class Turns:
    """The turns of everyone who writes to one server. Safe to share between threads.

    Args:
        folder: Where the two lock files are, one folder a server.
    """

    def __init__(self, folder: Path) -> None:
        """Keep where the locks are; nothing is opened yet."""
        self._folder = folder

    @contextmanager
    def turn(self, *, alone: bool, lane: str | None = None) -> Iterator[None]:
        """Wait for one's turn, and have it for the time of the block.

        Args:
            alone: Whether nobody else may have one at the same time.
            lane: Name of those who go one after the other, whatever the others do; None for who belongs to no such.
        """
        handles: list[int | None] = []
        try:
            # Where no lock can be had, on a disk that is full, say, the transaction itself is to say so.
            names = ["gate", "lock", *([lane] if lane else [])]
            handles += (_opened(self._folder / f"turn.{name}") for name in names)
            gate, floor, *own = handles
            deadline = time.monotonic() + PATIENCE_SECONDS
            if own and own[0] is not None:
                _locked(own[0], fcntl.LOCK_EX, deadline)
            if gate is not None and floor is not None and _locked(gate, fcntl.LOCK_EX, deadline):
                _locked(floor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, deadline, _SHORT_PAUSE_SECONDS)
                fcntl.flock(gate, fcntl.LOCK_UN)
            yield
        finally:
            for handle in reversed(handles):
                if handle is not None:
                    # A process that was forked meanwhile has the handle, too: closing it here ends no lock.
                    with suppress(OSError):
                        fcntl.flock(handle, fcntl.LOCK_UN)
                    os.close(handle)


def _opened(path: Path) -> int | None:
    # Opened for each turn: locks belong to the opened file, so threads keep each other out as processes do.
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _locked(handle: int, kind: int, deadline: float, longest: float = _LONGEST_PAUSE_SECONDS) -> bool:
    """Lock a file; False when that took too long."""
    pause = min(_PAUSE_SECONDS, longest)
    while True:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
        time.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(1.5 * pause, longest)
