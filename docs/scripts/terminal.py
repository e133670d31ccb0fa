"""A terminal that programs believe in: runs commands and keeps what its screen showed, and when.

It knows what `archive` writes: text, line ends, colours, cursor moves, and erased lines.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_CODE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[()].")


@dataclass(frozen=True, slots=True)
class Look:
    """How a letter looks."""

    colour: str = ""
    bold: bool = False
    dim: bool = False


Cell = tuple[str, Look]
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Shot:
    """A screen at a time, in seconds after the start."""

    seconds: float
    rows: tuple[Row, ...]


@dataclass
class Screen:
    """The rows of a terminal, of which the last ones are seen.

    Attributes:
        width: Letters of a row.
        height: Rows that are seen.
    """

    width: int
    height: int
    rows: list[list[Cell]] = field(default_factory=lambda: [[]])
    row: int = 0
    column: int = 0
    look: Look = field(default_factory=Look)
    rest: str = ""

    def write(self, text: str) -> None:
        """Take what a program writes; an incomplete code waits for its end."""
        text = self.rest + text
        start = text.rfind("\x1b")
        if start >= 0 and not _CODE.match(text, start):
            text, self.rest = text[:start], text[start:]
        else:
            self.rest = ""

        end = 0
        for code in _CODE.finditer(text):
            self._letters(text[end : code.start()])
            end = code.end()
            if code[2]:
                self._obey(code[2], code[1])

        self._letters(text[end:])

    def seen(self) -> tuple[Row, ...]:
        """Return the rows that are seen, without spaces at their ends."""
        rows = []
        for row in self.rows[max(0, len(self.rows) - self.height) :]:
            cells = list(row)
            while cells and cells[-1][0] == " ":
                cells.pop()

            rows.append(tuple(cells))

        return tuple(rows)

    def _letters(self, text: str) -> None:
        for letter in text:
            if letter == "\n":
                self._go(self.row + 1)
            elif letter == "\r":
                self.column = 0
            elif letter >= " ":
                if self.column >= self.width:
                    self._go(self.row + 1)
                    self.column = 0

                row = self.rows[self.row]
                row += [(" ", Look())] * (self.column + 1 - len(row))
                row[self.column] = (letter, self.look)
                self.column += 1

    def _go(self, row: int) -> None:
        self.row = max(0, row)
        while len(self.rows) <= self.row:
            self.rows.append([])

    def _obey(self, name: str, text: str) -> None:
        number = int(text) if text.isdigit() else 1
        if name == "m":
            self._colour(text)
        elif name == "A":
            self._go(self.row - number)
        elif name == "B":
            self._go(self.row + number)
        elif name == "G":
            self.column = number - 1
        elif name == "K":
            keep = 0 if text == "2" else self.column
            del self.rows[self.row][keep:]
        elif name == "J":
            del self.rows[self.row][self.column :]
            del self.rows[self.row + 1 :]

    def _colour(self, text: str) -> None:
        for part in text.split(";"):
            code = int(part or 0)
            if code == 0:
                self.look = Look()
            elif code == 1:
                self.look = Look(self.look.colour, True, self.look.dim)
            elif code == 2:
                self.look = Look(self.look.colour, self.look.bold, True)
            elif code == 22:
                self.look = Look(self.look.colour)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.look = Look(COLOURS[code % 10], self.look.bold, self.look.dim)
            elif code == 39:
                self.look = Look("", self.look.bold, self.look.dim)


def run(
    command: Sequence[str], screen: Screen, environment: Mapping[str, str], begin: float
) -> Iterator[Shot]:
    """Run a command on a screen; yield the screen after each piece of its output."""
    leader, follower = pty.openpty()
    size = struct.pack("HHHH", screen.height, screen.width, 0, 0)
    fcntl.ioctl(follower, termios.TIOCSWINSZ, size)
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env=dict(environment)
    )
    os.close(follower)
    while True:
        try:
            piece = os.read(leader, 65_536)
        except OSError:
            # The program has ended.
            break

        screen.write(piece.decode(errors="replace"))
        yield Shot(time.monotonic() - begin, screen.seen())

    os.close(leader)
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, command)
