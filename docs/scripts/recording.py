"""The recording of the README: from the first command to the picture of its best network.

    python docs/scripts/recording.py        runs the search, and writes docs/pictures/first-search.svg

The search is real, in a new archive, and takes a minute or two. The recording is an SVG that moves
by itself, with the thinned frames of a terminal (`terminal.py`). It stands still, at its end, where
the reader's system asks for less motion.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from terminal import Cell, Look, Row, Screen, Shot, run

from archive.drawing.palette import hue
from archive.drawing.svg import escape

PATH = Path(__file__).resolve().parents[1] / "pictures" / "first-search.svg"
SEARCH = "archive search --agent nasbot"
FILE = "best.svg"

WIDTH, HEIGHT = 92, 27
"""Letters of a row, and rows."""
LETTER, LINE, SIZE = 7.8, 18.0, 13
MARGIN, TITLE = 18, 30
FASTER = 7.0
"""How much faster the search is shown than it was."""
SHORTEST = 0.3
"""Seconds that a frame is shown at least."""
LAST = 7.0
"""Seconds that the picture of the network is shown."""
FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
HUES = {
    "black": "quiet",
    "red": "bad",
    "green": "green",
    "yellow": "yellow",
    "blue": "blue",
    "magenta": "pink",
    "cyan": "sky",
    "white": "ink",
}
PROMPT: Row = (("$", Look("green", True)), (" ", Look()))


@dataclass(frozen=True)
class Frame:
    """Rows of the terminal, how long they are shown, and whether the picture is in front."""

    rows: tuple[Row, ...]
    seconds: float
    picture: bool = False


def record(home: Path) -> tuple[list[Frame], str]:
    """Run the commands; return the frames, and the picture of the best network."""
    environment = {**os.environ, "ARCHIVE_HOME": str(home), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    screen = Screen(WIDTH, HEIGHT)
    frames = typed(screen, SEARCH)
    shots = list(run(SEARCH.split(), screen, environment, time.monotonic()))
    frames += thin(shots)
    words = " ".join(text_of(row) for row in shots[-1].rows)
    best = re.findall(r"archive arch show (\w+)", words)[-1]
    frames.append(Frame(screen.seen(), 2.5))
    draw = f"archive arch draw {best} -o {FILE}"
    frames += typed(screen, draw)
    command = [*draw.split()[:-1], str(home / FILE), "--theme", "light", "--force"]
    for _ in run(command, Screen(WIDTH, HEIGHT), environment, time.monotonic()):
        pass

    drawn = (home / FILE).read_text(encoding="utf-8")
    screen.write(f"\x1b[32mwrote {FILE}, {len(drawn.encode()):,} bytes\x1b[0m")
    frames.append(Frame(screen.seen(), LAST, picture=True))
    return frames, drawn


def typed(screen: Screen, command: str) -> list[Frame]:
    """Type a command behind a prompt, in a few frames."""
    screen.write("\r\n" if screen.row or screen.column else "")
    for letter, look in PROMPT:
        screen.write(f"\x1b[1;32m{letter}\x1b[0m" if look.bold else letter)

    frames = [Frame(screen.seen(), 0.6)]
    for word in re.findall(r"\S+\s*", command):
        screen.write(word)
        frames.append(Frame(screen.seen(), 0.25))

    screen.write("\r\n")
    return frames


def thin(shots: Sequence[Shot]) -> list[Frame]:
    """Return the frames of a search: those that stay long enough to be seen."""
    frames: list[Frame] = []
    begin = 0.0
    rows = shots[0].rows
    for shot in shots[1:]:
        seconds = (shot.seconds - begin) / FASTER
        if seconds >= SHORTEST and shot.rows != rows:
            frames.append(Frame(rows, seconds))
            begin = shot.seconds
            rows = shot.rows

    return frames


def text_of(row: Row) -> str:
    """Return the letters of a row."""
    return "".join(letter for letter, _ in row)


def animate(frames: Sequence[Frame], drawn: str) -> str:
    """Return the frames as an SVG that shows them one after another."""
    width = round(WIDTH * LETTER + 2 * MARGIN)
    height = round(HEIGHT * LINE + TITLE + MARGIN)
    whole = sum(frame.seconds for frame in frames)
    names: dict[Row, str] = {}
    rules = ""
    body = ""
    begin = 0.0
    for number, frame in enumerate(frames):
        end = begin + frame.seconds
        start_share = f"{100 * begin / whole:.2f}%"
        end_share = f"{100 * end / whole:.2f}%"
        hidden = "0%{visibility:hidden}" if number else ""
        after = f"{end_share}{{visibility:hidden}}" if end < whole - 0.01 else ""
        rules += f"@keyframes k{number}{{{hidden}{start_share}{{visibility:visible}}{after}}}"
        rules += f".k{number}{{animation-name:k{number}}}"
        rows = ""
        for line, row in enumerate(frame.rows):
            if row:
                name = names.setdefault(row, f"r{len(names)}")
                rows += f'<use href="#{name}" y="{_n(TITLE + (line + 1) * LINE)}"/>'

        picture = _in_front(drawn, width, height) if frame.picture else ""
        last = " last" if number == len(frames) - 1 else ""
        body += f'<g class="f k{number}{last}">{rows}{picture}</g>'
        begin = end

    letters = "".join(f'<g id="{name}">{_row(row)}</g>' for row, name in names.items())
    dots = ""
    for number, name in enumerate(("bad", "yellow", "green")):
        dots += f'<circle cx="{20 + 18 * number}" cy="16" r="5.5" fill="{hue(name, dark=True)}"/>'

    style = (
        f"text{{font:{SIZE}px {FONT};white-space:pre}}"
        f".f{{visibility:hidden;animation:{whole:.1f}s step-end infinite}}.last{{visibility:visible}}"
        f"{rules}@media (prefers-reduced-motion:reduce){{.f{{animation:none}}}}"
    )
    title = "A search in a terminal, from its first command to the picture of its best network"
    ground = f'fill="{hue("card", dark=True)}" stroke="{hue("line", dark=True)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{title}"><title>{title}</title>'
        f"<style>{style}</style><defs>{letters}</defs>"
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" {ground}/>'
        f"{dots}{body}</svg>\n"
    )


def _row(row: Row) -> str:
    """Return a row as texts, one for each look; their widths do not depend on the font."""
    parts = ""
    start = 0
    while start < len(row):
        end = start
        while end < len(row) and row[end][1] == row[start][1]:
            end += 1

        parts += _text(row[start:end], start)
        start = end

    return parts


def _text(cells: Sequence[Cell], column: int) -> str:
    words = "".join(letter for letter, _ in cells)
    if not words.strip():
        return ""

    look = cells[0][1]
    name = "quiet" if look.dim and not look.colour else HUES.get(look.colour, "ink")
    weight = ' font-weight="bold"' if look.bold else ""
    place = f'x="{_n(MARGIN + column * LETTER)}" textLength="{_n(len(words) * LETTER)}"'
    return f'<text {place} fill="{hue(name, dark=True)}"{weight}>{escape(words)}</text>'


def _in_front(drawn: str, width: float, height: float) -> str:
    """Return a picture in front of the terminal, above the command that drew it."""
    own_width, own_height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)[0])
    free = height - 2 * TITLE - 4 * LINE
    scale = min(free / own_height, 0.94 * width / own_width, 1.3)
    place = (
        f'x="{_n((width - own_width * scale) / 2)}" '
        f'y="{_n(TITLE + MARGIN / 2 + (free - own_height * scale) / 2)}" '
        f'width="{_n(own_width * scale)}" height="{_n(own_height * scale)}"'
    )
    inner = re.sub(r' width="[\d.]+" height="[\d.]+"', f" {place}", drawn, count=1)
    edge = f'fill="{hue("card")}" stroke="{hue("quiet", dark=True)}" stroke-width="6"'
    return f'<rect {place} rx="8" {edge}/>{inner}'


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="archive-") as folder:
        recorded, best_network = record(Path(folder))

    PATH.write_text(animate(recorded, best_network), encoding="utf-8")
    print(f"{PATH}: {PATH.stat().st_size:,} bytes, {len(recorded)} frames")
