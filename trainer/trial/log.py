"""The log of one trial: all output of its process, in a file of bounded size.

    HOME/logs/STUDY%23NUMBER.log      one file per proposal; each attempt begins with a headline
    [rank 1] …                        lines of the ranks of a trial on several devices

What a rank prints from Python is marked. Native code and programs that it starts write into the
file themselves, without a mark.
`archive.trainer.storage.file_names` names the file. Reading logs needs no torch.
"""

from __future__ import annotations

import faulthandler
import io
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from archive.trainer.storage.file_names import TAIL_BYTES, last_lines

if TYPE_CHECKING:
    from archive.trainer.trial.ranks import Ranks

MOST_BYTES = 256 * 1024
"""Size beyond which the older half of a log is dropped."""
TAIL_LINES = 40

_WATCH_SECONDS = 1.0


_MARK = "[rank {}] "


def mark_of(ranks: Ranks) -> str:
    """Return the beginning of the lines of a rank; empty for a trial of one process."""
    return _MARK.format(ranks.rank) if ranks.world_size > 1 else ""


def tail(path: Path | None, lines: int = TAIL_LINES, mark: str = "") -> str:
    """Return the last lines of a log, at most 4,000 bytes long; empty if there is no log.

    Args:
        path: The log.
        lines: Largest number of lines.
        mark: Beginning of the lines of one rank; the lines of other ranks are left out.
    """
    if path is None:
        return ""

    try:
        lines_read = last_lines(path, lines if not mark else TAIL_BYTES)
    except OSError:
        return ""

    kept: list[str] = []
    for line in lines_read:
        if not mark or line.startswith(mark):
            kept.append(line.removeprefix(mark))
        elif not line.startswith(_MARK.partition("{")[0]):
            kept.append(line)

    return "\n".join(kept[-lines:])


def capture(path: Path, ranks: Ranks | None = None) -> None:
    """Redirect all output of this process, with the stacks of a crash, to a log until its end.

    If the log cannot be written, a warning goes to the present standard error, and the output stays
    where it is.

    Args:
        path: The log.
        ranks: The processes of the trial, and the position of this one; None for one process.
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

    mark = "" if ranks is None else mark_of(ranks)
    if mark:
        sys.stdout = MarkedStream(sys.stdout, mark)
        sys.stderr = MarkedStream(sys.stderr, mark)

    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        force=True,
    )
    # One process cuts the file of all.
    if ranks is None or ranks.local == 0:
        threading.Thread(target=_watch, args=(log,), daemon=True, name="log").start()


class MarkedStream(io.TextIOBase):
    """Standard output or error of a rank: each line begins with the rank's mark.

    Args:
        stream: The stream of the process.
        mark: The mark.
    """

    def __init__(self, stream: TextIO, mark: str) -> None:
        self._stream = stream
        self._mark = mark
        self._begins = True
        self._pending = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the stream."""
        return self._stream.encoding

    @property
    def buffer(self) -> BinaryIO:
        """The stream's bytes, which are not marked."""
        return self._stream.buffer

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Write whole lines at once, each with the mark; other ranks write into the same file."""
        lines, separator, rest = (self._pending + text).rpartition("\n")
        self._pending = rest
        if separator:
            self._emit(lines + separator)

        return len(text)

    def flush(self) -> None:
        """Write the unfinished line."""
        if self._pending:
            self._emit(self._pending)
            self._pending = ""

        self._stream.flush()

    def _emit(self, text: str) -> None:
        marked: list[str] = []
        for line in text.splitlines(keepends=True):
            marked.append(self._mark + line if self._begins else line)
            self._begins = line.endswith("\n")

        self._stream.write("".join(marked))


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
