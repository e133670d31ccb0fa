"""Owners of spooled results: which daemon a file belongs to, and whether that daemon is gone.

    DIGEST.HOST-PID-START.json      a file of the process PID of a machine, started at START
    DIGEST.json                     a file without an owner: its daemon has ended in order, or is of an earlier release

Machines may share the folder. A process is looked up on its own machine only. Elsewhere its files
tell: a living daemon touches those that it could not deliver yet.
"""

from __future__ import annotations

import functools
import os
import platform
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

import psutil

from archive.server.run_file import process_alive

REFRESH_SECONDS = 60.0
"""Time between two touches of a file that waits for delivery."""
SILENT_SECONDS = 600.0
"""Age at which a file of another machine counts as left behind; clocks of machines differ by
less."""


@dataclass(frozen=True)
class SpoolOwner:
    """A daemon's process.

    Attributes:
        host: Digest of the machine's name.
        pid: Id of the process.
        created: Start of the process, in whole seconds since 1970.
    """

    host: str
    pid: int
    created: int

    def __str__(self) -> str:
        """The part of a file's name."""
        return f"{self.host}-{self.pid}-{self.created}"

    @classmethod
    def of_file(cls, path: Path) -> SpoolOwner | None:
        """Return the owner of a file; None if it has none."""
        host, _, rest = path.name.split(".")[-2].partition("-")
        pid, _, created = rest.partition("-")
        return (
            cls(host, int(pid), int(created)) if pid.isdecimal() and created.isdecimal() else None
        )


@functools.cache
def own() -> SpoolOwner:
    """Return this process."""
    return SpoolOwner(
        host_digest(platform.node()), os.getpid(), int(psutil.Process().create_time())
    )


def host_digest(name: str) -> str:
    """Return the digest of a machine's name."""
    return f"{zlib.crc32(name.encode()):08x}"


def is_left_behind(path: Path, owner: SpoolOwner, seconds: float) -> bool:
    """Whether the daemon of a file will not deliver it, so that the owner may adopt it.

    Args:
        path: The file.
        owner: The process that asks.
        seconds: Least age of files of the asking process itself, and of files without an owner.

    Raises:
        OSError: There is no such file any more.
    """
    other = SpoolOwner.of_file(path)
    age = time.time() - path.stat().st_mtime
    if other is None or other == owner:
        return age >= seconds

    if other.host == owner.host:
        return not process_alive(other.pid, float(other.created))

    return age >= SILENT_SECONDS
