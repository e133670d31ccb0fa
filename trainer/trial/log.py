"""The log of one trial: all output of its process, in a file of bounded size.

    HOME/logs/STUDY%23NUMBER.log      one file per proposal; each attempt begins with a headline

`archive.trainer.storage.file_names` names the file. Reading logs needs no torch.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from archive.trainer.storage.file_names import last_lines

MOST_BYTES = 256 * 1024
"""Size beyond which the older half of a log is dropped."""
TAIL_LINES = 40

_WATCH_SECONDS = 1.0


def tail(path: Path | None, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log, at most 4,000 bytes long; empty if there is no log."""
    if path is None:
        return ""

    try:
        return "\n".join(last_lines(path, lines))
    except OSError:
        return ""


def capture(path: Path) -> None:
    """Redirect all output of this process, with the stacks of a crash, to a log until its end.

    If the log cannot be written, a warning goes to the present standard error, and the output stays
    where it is.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Readable as well, since `cut` reads the log. O_APPEND: every write goes to the end after a
        # cut.
        log = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        logging.getLogger("archive.trainer").warning(
            "no log of the trial path=%s reason=%r", path, error.strerror
        )
        return

    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        stream.flush()
        os.dup2(log, descriptor)
        # A killed process does not flush its buffers.
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]

    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        force=True,
    )
    threading.Thread(target=_watch, args=(log,), daemon=True, name="log").start()


def show_stacks() -> None:
    """Print the stacks of all threads when native code crashes, or on SIGUSR1."""
    faulthandler.enable(file=2)
    faulthandler.register(signal.SIGUSR1, file=2)


def _watch(log: int) -> None:
    while True:
        cut(log)
        time.sleep(_WATCH_SECONDS)


def cut(log: int, most: int = MOST_BYTES) -> None:
    """Drop the older half of an open log that has outgrown its limit, up to the end of a line."""
    size = os.fstat(log).st_size
    if size <= most:
        return

    kept = os.pread(log, most // 2, size - most // 2).partition(b"\n")[2]
    os.ftruncate(log, 0)
    os.write(log, b"[older lines were dropped]\n" + kept)
