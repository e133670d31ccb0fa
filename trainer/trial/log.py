"""The log of one trial: whatever its process prints, from Python or from native code, in a file of bounded size.

    HOME/logs/STUDY%23NUMBER.log      one file a proposal; each attempt begins with a line of its own

Reading and naming logs needs no torch.
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

from archive.trainer.storage.file_names import file_name

MOST_BYTES = 256 * 1024
"""Size beyond which the older half of a log goes."""
TAIL_LINES, TAIL_BYTES = 40, 4000

_WATCH_SECONDS = 1.0


def path_of(home: Path, proposal: str) -> Path:
    """Return the file with the log of a proposal's trials."""
    return home / "logs" / f"{file_name(proposal)}.log"


def tail(path: Path | None, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a log, at most `TAIL_BYTES` long; empty where there is none."""
    if path is None:
        return ""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            last = file.read()
    except OSError:
        return ""
    return "\n".join(last.decode(errors="replace").splitlines()[-lines:])


def capture(path: Path) -> None:
    """Send all that this process prints, and the stacks of a crash, to a log, for as long as the process lives.

    A log that cannot be written is said on the old standard error, and does without.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Reads, too: cutting the log down does. Appending, every writer finds the end that there is then.
        log = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        logging.getLogger("archive.trainer").warning("no log of the trial path=%s reason=%r", path, error.strerror)
        return
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        stream.flush()
        os.dup2(log, descriptor)
        # A process that is killed does not flush what it holds back.
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", force=True
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
    """Drop the older half of an open log that has grown beyond its most, from the start of a line."""
    size = os.fstat(log).st_size
    if size <= most:
        return
    kept = os.pread(log, most // 2, size - most // 2).partition(b"\n")[2]
    os.ftruncate(log, 0)
    os.write(log, b"[older lines were dropped]\n" + kept)
