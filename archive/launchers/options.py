"""Options of launchers: dataclass fields with values from commands, texts or `config.toml`."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from archive.errors import UnknownNameError, UsageError
from archive.launchers.base import Launcher
from archive.values import seconds, size_bytes

OptionKind = Literal["text", "count", "positive", "number", "truth", "duration", "size", "texts"]
"""Kind of a value: `str`, `int` >= 0, `int` >= 1, `float` >= 0, `bool`, seconds, bytes, or a tuple
of texts (an option that may be repeated)."""

_NEXT = re.compile(r",(?=\w+=)")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NUMBERS: Mapping[str, Callable[[str], float | None]] = {
    "count": int, "positive": int, "number": float, "duration": seconds, "size": size_bytes,
}  # fmt: skip
_ARTICLES = {
    "count": "a whole number >= 0", "positive": "a whole number >= 1", "number": "a number >= 0",
    "truth": "true or false", "duration": "a duration such as 90s, 15min, 8h or 2d",
    "size": "a size such as 500MB or 16GB",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LaunchOption:
    """An option of a launcher.

    Attributes:
        name: Name of the field.
        kind: Kind of its value.
        help: One sentence for a help text.
        default: Its default; None stands for none.
        shown: What a help text shows as the default; None shows the default itself.
    """

    name: str
    kind: OptionKind
    help: str
    default: Any
    shown: str | None


def launch_option(
    help: str, kind: OptionKind = "text", default: Any = None, shown: str | None = None
) -> Any:
    """Return the field of an option, for the body of a launcher."""
    return dataclasses.field(default=default, metadata={"help": help, "kind": kind, "shown": shown})


def options_of(launcher: type[Launcher]) -> dict[str, LaunchOption]:
    """Return the options of a launcher by name."""
    fields: Collection[dataclasses.Field[Any]] = getattr(
        launcher, "__dataclass_fields__", {}
    ).values()
    options = {}
    for field in fields:
        about = field.metadata
        if "kind" in about:
            options[field.name] = LaunchOption(
                field.name, about["kind"], about["help"], field.default, about["shown"]
            )

    return options


def values(launcher: Launcher) -> dict[str, Any]:
    """Return all options of a launcher as plain values, None for one that is not set."""
    return {name: getattr(launcher, name) for name in options_of(type(launcher))}


def parse(launcher: type[Launcher], text: str) -> dict[str, Any]:
    """Return the values in a text like `partition=gpu,gpus=1,time=4h`.

    A comma separates options where a name and `=` follow; any other is part of a value.

    Raises:
        UnknownNameError: There is no such option.
        UsageError: A value cannot be used, or an option is given twice.
    """
    pairs: dict[str, Any] = {}
    for pair in _NEXT.split(text) if text else []:
        key, separator, value = pair.partition("=")
        if not separator:
            raise UsageError(
                f"an option of the launcher {launcher.name} must be key=value, got {pair!r}"
            )

        option = _option(launcher, key)
        if option.kind == "texts":
            pairs.setdefault(key, []).append(value)
        elif key in pairs:
            raise UsageError(f"the option {key} of the launcher {launcher.name} is given twice")
        else:
            pairs[key] = value

    return convert(launcher, pairs)


def convert(launcher: type[Launcher], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options, each a text or a value of the right type.

    Raises:
        UnknownNameError: There is no such option.
        UsageError: A value cannot be used.
    """
    return {key: _convert(launcher, _option(launcher, key), value) for key, value in values.items()}


def _option(launcher: type[Launcher], key: str) -> LaunchOption:
    options = options_of(launcher)
    if key not in options:
        raise UnknownNameError(
            f"option of the launcher {launcher.name}",
            key,
            options,
            f"the launcher {launcher.name} has no options",
        )

    return options[key]


def _convert(launcher: type[Launcher], option: LaunchOption, value: Any) -> Any:
    try:
        return _value(option.kind, value)
    except ValueError:
        what = _ARTICLES.get(option.kind, "a text")
        name = launcher.name
        raise UsageError(
            f"the option {option.name} of the launcher {name} must be {what}, got {value!r}"
        ) from None


def _value(kind: OptionKind, value: Any) -> Any:
    """Return a converted value.

    Raises:
        ValueError: It cannot be converted.
    """
    if kind == "texts":
        return tuple(
            str(item) for item in ([value] if isinstance(value, str) or not _many(value) else value)
        )

    if _many(value) or (isinstance(value, bool) and kind != "truth"):
        raise ValueError

    text = str(value)
    if kind == "text":
        if not text or not text.isprintable():
            raise ValueError

        return text

    if kind == "truth":
        return _truth(text)

    number = _NUMBERS[kind](text)
    if number is None or not (1 if kind == "positive" else 0) <= number < math.inf:
        raise ValueError

    return number


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTHS:
        raise ValueError

    return _TRUTHS[text.lower()]


def _many(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)
