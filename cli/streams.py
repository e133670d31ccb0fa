"""Output on a stream that is not UTF-8: drawn lines and signs become ASCII, other characters their
escape.
"""

from __future__ import annotations

import codecs
import io
import json
import sys

ERRORS = "archive.plain"
"""Name of the error handler of such a stream."""

_PLAIN = {
    **dict(zip("─━│┃┤├┴┬┼╇", "--||++++++", strict=True)),
    **dict(zip("╯╰└╮╭┌", "'''...", strict=True)),
    **dict(zip("●○◆", "*o@", strict=True)),
    **dict(zip("−–—·×’", "----x'", strict=True)),
    **dict(zip("…→←≤≥±", ("...", "->", "<-", "<=", ">=", "+-"), strict=True)),
}


def tolerate_other_encodings() -> None:
    """Let stdout replace what its encoding lacks, instead of failing; stderr does so of its own
    accord.
    """
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and codecs.lookup(out.encoding).name != "utf-8":
        codecs.register_error(ERRORS, _replacement)
        out.reconfigure(errors=ERRORS)


def _replacement(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error

    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter) or json.dumps(letter)[1:-1] for letter in missing), error.end
