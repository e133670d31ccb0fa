"""Output of a program, within a bound: its beginning, and its end.

    log.head    the first megabyte
    log.old     what came before the last part, at most `PART_BYTES`
    log.last    the last part, at most `PART_BYTES`

Whatever a program prints, the three files stay below 17 megabytes. Every write reaches the operating
system at once, so that a kill loses nothing. A full disk ends the log, and not the program.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import BinaryIO

HEAD_BYTES = 1 << 20
PART_BYTES = 8 << 20

END_LETTERS = 16_384
"""Letters of the end of a log that the archive keeps."""


class RunLog:
    """The log of one run, open for writing.

    Args:
        folder: Folder of the run.

    Attributes:
        error: Why the log has an end; None while it goes on.
    """

    def __init__(self, folder: Path) -> None:
        """Open the files."""
        self._folder = folder
        self._head: BinaryIO = (folder / "log.head").open("ab", buffering=0)
        self._last: BinaryIO | None = None
        self._room = HEAD_BYTES - self._head.tell()
        self._written = 0
        self.error: OSError | None = None

    def __enter__(self) -> RunLog:
        """Return the log."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files."""
        self._head.close()
        if self._last is not None:
            self._last.close()

    def write(self, content: bytes) -> None:
        """Append to the log; nothing more after an error of the disk, which `error` keeps."""
        if self.error is None:
            try:
                self._write(content)
            except OSError as error:
                self.error = error

    def _write(self, content: bytes) -> None:
        if self._room > 0:
            part = content[: self._room]
            self._head.write(part)
            self._room -= len(part)
            content = content[len(part) :]

        for begin in range(0, len(content), PART_BYTES):
            self._write_last(content[begin : begin + PART_BYTES])

    def _write_last(self, content: bytes) -> None:
        if self._last is None or self._written + len(content) > PART_BYTES:
            self._begin_part()

        assert self._last is not None
        self._last.write(content)
        self._written += len(content)

    def _begin_part(self) -> None:
        last = self._folder / "log.last"
        if self._last is not None:
            self._last.close()
            last.replace(self._folder / "log.old")

        self._last = last.open("wb", buffering=0)
        self._written = 0


def read_end(folder: Path, letters: int = END_LETTERS) -> str:
    """Return the end of the log of a run, from the begin of a line."""
    content = b""
    for name in ("log.last", "log.old", "log.head"):
        path = folder / name
        # A letter has four bytes at most.
        if len(content) < 4 * letters and path.exists():
            with path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size - 4 * letters))
                content = file.read() + content

    text = content.decode(errors="replace")
    if len(text) <= letters:
        return text

    end = text[-letters:]
    _, line_end, rest = end.partition("\n")
    return rest if line_end else end


def log_files(folder: Path) -> list[Path]:
    """Return the files of the log of a run, in the order in which they were written."""
    paths = [folder / name for name in ("log.head", "log.old", "log.last")]
    return [path for path in paths if path.exists()]
