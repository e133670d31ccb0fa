"""Text of programs as plain text: without colours, and lines as a terminal would leave them."""

from __future__ import annotations

import re

# A sequence that selects a colour, moves the cursor, or sets a title.
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\n|$)|\x1b[@-_]|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain_text(text: str) -> str:
    r"""Return the text of a program without control sequences.

    Of a line that a program wrote over again (`\r`), the last state stays. Other control characters
    are named: `\x00`.
    """
    lines = []
    for line in _SEQUENCE.sub("", text).split("\n"):
        last = line.rstrip("\r").rpartition("\r")[2]
        lines.append(_CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", last))

    return "\n".join(lines)


def cut_line(line: str, letters: int) -> str:
    """Return a line of at most so many letters, which says how many are left out."""
    left_out = len(line) - letters
    return line if left_out <= 0 else f"{line[:letters]} … {left_out:,} letters more"
