"""Checks of arguments with common error texts, and the parser of `NAME=VALUE`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from archive.errors import UsageError
from archive.values import in_line


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
