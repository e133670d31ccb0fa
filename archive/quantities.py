"""Durations, sizes and counts as people write them: `90s`, `2h30m`, `500MB`, `4GiB`, `0.3M`."""

from __future__ import annotations

import re

UNIT_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
"""Units of a duration, in seconds."""

_PART = r"(\d+(?:\.\d*)?|\.\d+)(min|[smhdw])"
_MOST_DIGITS = 40
"""Python refuses to read a number of thousands of digits."""
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKMGT]i?)?B?\s*")


def seconds(text: str, unit: str = "s") -> float | None:
    """Return the seconds of a duration; None where the text is none.

    Args:
        text: A number with a unit, a sum of these such as `1h30m`, or a plain number.
        unit: Unit of a plain number.
    """
    try:
        return float(text) * UNIT_SECONDS[unit]
    except ValueError:
        pass
    if not re.fullmatch(rf"(?:{_PART}\s*)+", text.strip()):
        return None
    return sum(float(number) * UNIT_SECONDS[each] for number, each in re.findall(_PART, text))


def size_bytes(text: str) -> int | None:
    """Return the bytes of a size; None where the text is none.

    Args:
        text: A number with a unit, of powers of 1000 (`MB`) or 1024 (`MiB`), or a plain number of bytes.
    """
    match = _SIZE.fullmatch(text)
    return None if match is None else round(_product(match))


def number(text: str) -> float | None:
    """Return a number; None where the text is none.

    Args:
        text: A plain number, also negative or as `1e6`, or one with a unit as a size has.
    """
    try:
        return float(text)
    except ValueError:
        match = _SIZE.fullmatch(text)
        return None if match is None else _product(match)


def whole_number(text: str) -> int | None:
    """Return a number of digits alone; None for other text, and for a number that no server stores (2^63 or more)."""
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        return None
    number = int(text)
    return number if number < 2**63 else None


def decimal(text: str) -> float:
    """Return the number in an entry of a file. Python's `float` alone would read 1_000 as 1000.

    Raises:
        ValueError: The text is no number.
    """
    if "_" in text:
        raise ValueError(f"no number: {text!r}")
    return float(text)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, whose plural ends with s."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _product(match: re.Match[str]) -> float:
    base = 1024 if (match[2] or "").endswith("i") else 1000
    power = " KMGT".index((match[2] or " ")[0].upper())
    return float(match[1]) * float(base**power)
