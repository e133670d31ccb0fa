"""Values from outside and for readers: numbers, texts and JSON.

| from           | functions                                                                     |
|----------------|-------------------------------------------------------------------------------|
| text           | durations (`90s`, `2h30m`), sizes (`500MB`, `4GiB`), counts (`0.3M`)          |
| other packages | numbers as floats; checked seconds and sizes                                  |
| the archive    | one line for messages, settings by name, nouns with their number, JSON,       |
|                | docstrings, hosts                                                             |
| callers        | checked arguments, with one wording of their errors; `NAME=VALUE`             |

A clock that was set back, a marker such as -1 and an overflow give numbers without a meaning: one
of them in a sum makes the sum meaningless. `checked_seconds` and `checked_size` refuse them;
importers leave such a number out, and say so.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from archive.errors import UsageError

LARGEST = 2**63
"""No server holds a whole number as large as this."""

LATEST = 253_402_214_400_000
"""Milliseconds from 1970 to the last day but one of the year 9999, which every time zone can
show."""

UNIT_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
"""Units of a duration, in seconds."""

_PART = r"(\d+(?:\.\d*)?|\.\d+)(min|[smhdw])"
_MOST_DIGITS = 40
"""Python refuses to read a number of thousands of digits."""
_AMBIGUOUS = re.compile(r"[\s=\"]")
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKMGT]i?)?B?\s*")


def seconds(text: str, unit: str = "s") -> float | None:
    """Return the seconds of a duration; None for other text.

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

    return sum(float(count) * UNIT_SECONDS[part] for count, part in re.findall(_PART, text))


def size_bytes(text: str) -> int | None:
    """Return the bytes of a size; None for other text.

    Args:
        text: A number with a unit, of powers of 1000 (`MB`) or 1024 (`MiB`), or a plain number of
            bytes.
    """
    match = _SIZE.fullmatch(text)
    return None if match is None else round(_product(match))


def number(text: str) -> float | None:
    """Return a number; None for other text.

    Args:
        text: A plain number, also negative or as `1e6`, or one with a unit as a size has.
    """
    try:
        return float(text)
    except ValueError:
        match = _SIZE.fullmatch(text)
        return None if match is None else _product(match)


def whole_number(text: str) -> int | None:
    """Return a number of digits alone.

    None for other text, and for a number that no server stores (2^63 or more).
    """
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        return None

    number = int(text)
    return number if number < LARGEST else None


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


def is_number(value: object) -> bool:
    """Return whether a value is an int or a float; a boolean is no number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_duration(seconds: float | None) -> bool:
    """Return whether a number can be a length of time: finite and not negative; None is none."""
    return seconds is not None and 0.0 <= seconds < math.inf


def is_size(number: float | None) -> bool:
    """Return whether a number can count weights or operations.

    It is at least 0, and a server can store it.
    """
    return number is not None and 0 <= number < LARGEST


def as_float(value: Any) -> float | None:
    """Return a number of any package as a float, also an array or a tensor of one.

    None if the value is no number.
    """
    try:
        return float(value.item() if hasattr(value, "item") else value)
    # A tensor may raise RuntimeError, and a number of another package its package's error.
    except Exception:
        return None


def shown(value: Any, most: int = 80) -> str:
    """Return a wrong value for a message, in one line; its type where it has no text."""
    try:
        return repr(value)[:most].replace("\n", " ")
    # Python prints no integer of thousands of digits, and a text may fail by any error.
    except Exception:
        return f"a value of the type {type(value).__name__}"


def checked_seconds(seconds: Any) -> float | None:
    """Return the seconds of a training as a float; None where they are unknown.

    Raises:
        UsageError: They are no finite number >= 0.
    """
    if seconds is None:
        return None

    number = as_float(seconds)
    if number is None or not is_duration(number):
        raise UsageError(f"seconds must be a finite number >= 0, got {shown(seconds)}")

    return number


def checked_size(name: str, number: Any) -> int | None:
    """Return a size of a network as an integer; None where it is unknown.

    Raises:
        UsageError: It is no number from 0 to 2^63 - 1.
    """
    if number is None:
        return None

    if not is_size(number):
        raise UsageError(f"{name} must be a whole number from 0 to 2^63 - 1, got {shown(number)}")

    return round(float(number)) if isinstance(number, float) else int(number)


def brief(value: Any, most: int = 80) -> str:
    """Return a value of any type and size as ASCII text of limited length, for an error."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        # An integer of more than 4,300 digits, or lists nested without end.
        return f"a huge {type(value).__name__}"

    return text if len(text) <= most else text[: most - 3] + "..."


def in_line(name: str) -> str:
    """Return a name for a message of one line, with codes for characters that cannot be printed."""
    return name if name.isprintable() else ascii(name)


def rounded(value: float, error: float | None = None) -> str:
    """Return a number with the decimals that its error permits, or four significant digits.

    An error keeps its first digit, or its first two where the first is 1: 0.9547 with an error of
    0.0031 is 0.955, with 0.0012 it is 0.9547.

    Args:
        value: The number.
        error: Its standard error; None, 0 and NaN permit four significant digits.
    """
    if error is None or not 0.0 < error < math.inf or not math.isfinite(value):
        return f"{value:.4g}"

    power = math.floor(math.log10(error))
    if error / 10.0**power < 2.0:
        power -= 1

    return f"{round(value, -power) + 0.0:.{max(-power, 0)}f}"


def setting_text(value: Any) -> str:
    """Return the value of a setting for a reader: numbers with four significant digits.

    A text stands as it is, unless its end could not be seen; other values are JSON.
    """
    if isinstance(value, float):
        return f"{value:.4g}"

    if isinstance(value, str) and value and not _AMBIGUOUS.search(value):
        return value

    return json.dumps(value, ensure_ascii=False, default=str)


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings in one line, `depth=4 lr=0.0003 act=relu`; empty without settings."""
    return " ".join(f"{name}={setting_text(value)}" for name, value in settings.items())


MOST_SETTINGS = 8
"""Most settings that a cell of a table or a line of an event shows."""


def short_settings(rows: Sequence[Mapping[str, Any]], most: int = MOST_SETTINGS) -> list[str]:
    """Return the settings of several rows in one line each, long ones cut.

    Where a row has more settings than `most`, each row shows the first of those that differ among
    the rows, and how many settings it has beside them.

    Args:
        rows: Settings of each row.
        most: Most settings that a row shows.
    """
    if all(len(settings) <= most for settings in rows):
        return [settings_text(settings) for settings in rows]

    first = rows[0]
    names: dict[str, bool] = {}
    for settings in rows:
        for name, value in settings.items():
            same = name in first and first[name] == value
            names[name] = names.get(name, False) or not same

    for name in first:
        names[name] = names[name] or any(name not in settings for settings in rows)

    # A single row differs from none: its first settings stand for it.
    differing = [name for name, differs in names.items() if differs] or list(names)
    texts = []
    for settings in rows:
        shown = {name: settings[name] for name in differing if name in settings}
        shown = dict(list(shown.items())[:most])
        left_out = len(settings) - len(shown)
        text = settings_text(shown)
        texts.append(f"{text} … {left_out} more".strip() if left_out else text)

    return texts


def mapped(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return nested records, mappings and collections as JSON objects and arrays.

    Each value in them is converted.

    A record is an instance of a dataclass: its attributes are the keys of its object.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: mapped(getattr(value, field.name), convert)
            for field in dataclasses.fields(value)
        }

    if isinstance(value, Mapping):
        return {str(name): mapped(item, convert) for name, item in value.items()}

    if isinstance(value, list | tuple | set | frozenset):
        return [mapped(item, convert) for item in value]

    return convert(value)


def finite_or_null(value: Any) -> Any:
    """Return None for NaN and infinities, and any other value as it is."""
    return None if is_non_finite(value) else value


def is_non_finite(value: Any) -> bool:
    """Return whether a value is NaN or an infinity, the numbers that JSON does not have."""
    return isinstance(value, float) and not math.isfinite(value)


def read_summary(documented: object) -> str:
    """Return the first paragraph of a docstring as one line; an empty text without a docstring."""
    paragraph = (inspect.getdoc(documented) or "").partition("\n\n")[0]
    return " ".join(paragraph.split())


def family_of(host: str) -> socket.AddressFamily:
    """Return the address family of a host name or an address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def in_url(host: str) -> str:
    """Return a host as a URL has it: an address of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def _product(match: re.Match[str]) -> float:
    base = 1024 if (match[2] or "").endswith("i") else 1000
    power = " KMGT".index((match[2] or " ")[0].upper())
    return float(match[1]) * float(base**power)


def require_at_least(least: float, **arguments: float | None) -> None:
    """Check that arguments are not smaller than a number; None, an omitted argument, passes.

    Raises:
        UsageError: An argument is smaller, or NaN.
    """
    for name, value in arguments.items():
        if value is not None and not value >= least:
            raise UsageError(f"{name} must be >= {least:g}, got {value}")


def check_flag(name: str, value: Any) -> bool:
    """Return a boolean setting after a check of its type.

    Raises:
        UsageError: The value is not a boolean.
    """
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be true or false, got {value!r}")

    return value


def check_whole(name: str, value: Any, most: int | None = None) -> int:
    """Return an integer setting after a check of its type and range: >= 0, and at most `most`.

    Raises:
        UsageError: The value is no integer, or out of range.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < 0
        or (most is not None and value > most)
    ):
        limits = ">= 0" if most is None else f"from 0 to {most}"
        raise UsageError(f"{name} must be a whole number {limits}, got {value!r}")

    return value


MOST_NAME = 480
"""Most characters of a name: dumps limit names that are derived from it, such as `STUDY#00000`, to
500."""


def check_length(what: str, name: str) -> None:
    """Check that a name is at most `MOST_NAME` characters long, and that a server can hold them.

    Raises:
        UsageError: It is longer, or has half of a character.
    """
    if any("\ud800" <= mark <= "\udfff" for mark in name):
        raise UsageError(f"{what} has half of a character, which no server holds: {name!a:.80}")

    if len(name) > MOST_NAME:
        raise UsageError(
            f"{what} must be at most {MOST_NAME} characters long, got {len(name)}: "
            f"{in_line(name[:40])}…"
        )


def storable(reason: str) -> str:
    """Return a text of another program in a form that a server can store.

    Halves of characters, as in odd file names, become codes.

    Raises:
        UsageError: It is no text.
    """
    if not isinstance(reason, str):
        raise UsageError(f"a reason must be text, got a value of the type {type(reason).__name__}")

    return reason.encode("utf-8", "backslashreplace").decode()


def assignments(texts: Iterable[str], what: str) -> dict[str, Any]:
    """Return values by name. Values are parsed as JSON; a value that is no JSON is a string.

    Args:
        texts: Strings `NAME=VALUE`, each name once.
        what: Name of the kind, for the error (`"a parameter"`).

    Raises:
        UsageError: A string has another form, or a name has two values.
    """
    values: dict[str, Any] = {}
    written: dict[str, str] = {}
    for text in texts:
        name, value = assignment(text, what)
        if name in written:
            raise UsageError(f"{what} must have one value, got {written[name]:.60} and {text:.60}")

        written[name] = text
        values[name] = value

    return values


def assignment(text: str, what: str) -> tuple[str, Any]:
    """Return one name and its value; see `assignments`."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"{what} is written NAME=VALUE, got {text!r}")

    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} cannot be read: {name}={value[:40]}… ({error})") from None


def timestamp(milliseconds: int | None) -> str | None:
    """Return a time of the database as ISO 8601 in UTC."""
    time = moment(milliseconds)
    return None if time is None else time.isoformat(timespec="milliseconds")[:-6] + "Z"


def moment(milliseconds: int | None) -> datetime | None:
    """Return a time of the database; None where it is unknown, or in no calendar."""
    if milliseconds is None or not 0 <= milliseconds < LATEST:
        return None

    return datetime.fromtimestamp(milliseconds / 1000, UTC)
