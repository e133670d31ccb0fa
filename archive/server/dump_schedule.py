"""Schedule of automatic dumps, kept by the supervisor.

A separate process of low priority makes them (`archive.exchange.dump`), so that no
command waits.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from archive.server.run_file import DATABASE, Folder

DUMPER = "archive.exchange.dump"
"""Module that makes one automatic dump."""
FIRST_SECONDS = 120.0
"""Time after the start of the server before which no dump begins: most commands are over by
then."""
RETRY_SECONDS = 3600.0
"""Time after an attempt before which there is no other one."""
_NICE = 19


class DumpSchedule:
    """Times of automatic dumps over one folder, and the process that makes one.

    Args:
        folder: Paths of the archive.
        seconds: Age of the last dump at which the next one is due; 0: never.
        kept: Number of dumps that are kept.
        share: Share of the free disk that they may take.
    """

    def __init__(self, folder: Folder, seconds: float, kept: int, share: float) -> None:
        """Wait for `FIRST_SECONDS`."""
        self.folder = folder
        self.seconds = seconds
        self.kept = kept
        self.share = share
        self.next_look = time.monotonic() + min(FIRST_SECONDS, seconds)
        self.next_attempt = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    @classmethod
    def parse(cls, folder: Folder, text: str) -> DumpSchedule:
        """Return the schedule of an argument `SECONDS,KEPT,SHARE`."""
        seconds, kept, share = text.split(",")
        return cls(folder, float(seconds), int(kept), float(share))

    def start(self, *, leaving: bool = False) -> bool:
        """Start a dump if one is due, and return whether one was started.

        Args:
            leaving: Whether the server is about to end because it is unused.
        """
        if self.process is not None and self.process.poll() is None:
            return False

        self.process = None
        now = time.monotonic()
        if (
            not self.seconds
            or now < self.next_attempt
            or (now < self.next_look and not leaving)
            or not self._due()
        ):
            return False

        self.next_attempt = now + min(RETRY_SECONDS, self.seconds)
        command = [
            sys.executable,
            "-P",
            "-m",
            DUMPER,
            str(self.folder.home),
            str(self.kept),
            str(self.share),
        ]
        with contextlib.suppress(OSError):
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_yield)

        return self.process is not None

    def end(self) -> None:
        """End a dump that is being made; its file never appears."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def _due(self) -> bool:
        last = max((path.stat().st_mtime for path in dumps(self.folder)), default=0.0)
        if 0 <= time.time() - last < self.seconds:
            return False

        database = self.folder.database / DATABASE
        changed = max((path.stat().st_mtime for path in database.glob("*.bucket")), default=0.0)
        return changed > last


def dumps(folder: Folder) -> list[Path]:
    """Return the automatic dumps, newest first."""
    return (
        sorted(folder.dumps.glob("automatic-*.jsonl.gz"), reverse=True)
        if folder.dumps.is_dir()
        else []
    )


def _yield() -> None:
    os.nice(_NICE)
