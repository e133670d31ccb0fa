"""Parameters of several commands, and the settings before a command's name."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from archive import values
from archive.errors import UsageError
from archive.files import expanded

if TYPE_CHECKING:
    SecondsType = click.ParamType[float]
    SizeType = click.ParamType[int]
else:
    # Generic from click 8.4 on.
    SecondsType = SizeType = click.ParamType

Command = TypeVar("Command", bound=Callable[..., Any])
"""A command, to which a decorator adds options."""


class Count(click.IntRange):
    """An integer in a range, shown as N in help texts."""

    name = "integer"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return N for an option; None leaves an argument its name."""
        return None if isinstance(param, click.Argument) else "N"


class ExistingFolder(click.Path):
    """A folder that exists; `~` in its path is expanded, also in config.toml."""

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return the path.

        Raises:
            BadParameter: There is no such folder.
            SettingsError: `~name` names no user.
        """
        return super().convert(os.fspath(expanded(value)), param, ctx)


class Duration(SecondsType):
    """A length of time: `90s`, `15min`, `2h`, `30d`, a sum such as `1h30m`, or a plain number.

    Gives seconds.

    Args:
        minimum: The shortest duration, in seconds.
        open_minimum: Whether the minimum itself is too short.
        unit: Unit of a plain number.
    """

    name = "duration"

    def __init__(
        self, minimum: float = 0.0, *, open_minimum: bool = False, unit: str = "s"
    ) -> None:
        self.minimum = minimum
        self.open_minimum = open_minimum
        self.unit = unit

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return TIME."""
        return "TIME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds of a duration.

        Raises:
            BadParameter: The text is no duration, or the duration is too short.
        """
        seconds = values.seconds(str(value), self.unit)
        if seconds is None or math.isnan(seconds):
            plain = f"a plain number counts {_PLURALS[self.unit]}"
            self.fail(
                f"{value!r} is no duration: write 90s, 15min, 2h or 30d ({plain})", param, ctx
            )

        if seconds < self.minimum or (self.open_minimum and seconds == self.minimum):
            bound = f"{'>' if self.open_minimum else '>='} {self.minimum:g}s"
            self.fail(f"a duration must be {bound}, got {value!r}", param, ctx)

        return seconds


class Size(SizeType):
    """A size on disk: `500MB`, `20GB`, `4GiB`, or a plain number of bytes. Gives bytes."""

    name = "size"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """Return SIZE."""
        return "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes of a size.

        Raises:
            BadParameter: The text is no size, or the size is 0.
        """
        size = values.size_bytes(str(value))
        if size is None:
            self.fail(
                f"{value!r} is no size: write 500MB, 20GB or 4GiB (a plain number counts bytes)",
                param,
                ctx,
            )

        if size == 0:
            self.fail(f"a size must be > 0, got {value!r}", param, ctx)

        return size


class AliasedOption(click.Option):
    """An option with further spellings, which help and completions leave out.

    Args:
        declarations: As of `click.Option`.
        aliases: The further spellings.
        **attributes: As of `click.Option`.
    """

    def __init__(self, declarations: list[str], *, aliases: list[str], **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.aliases = aliases

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser know all spellings."""
        shown = self.opts
        self.opts = [*shown, *self.aliases]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


def listed(option: str, what: str, text: str | None) -> tuple[str, ...] | None:
    """Return the comma-separated names in an option's value; None without the option.

    Raises:
        UsageError: There are none.
    """
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    if text is not None and not names:
        raise UsageError(f"{option} takes {what}, got {text!r}")

    return None if text is None else names


_PLURALS = {
    "s": "seconds",
    "m": "minutes",
    "min": "minutes",
    "h": "hours",
    "d": "days",
    "w": "weeks",
}


def output_option(default: str, help: str = "File.") -> Callable[[Command], Command]:
    """Return the option of the file that a command writes, with its `default` in words."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option(
        "-o", "--output", "path", type=kind, metavar="FILE", show_default=default, help=help
    )


force_option = click.option("--force", is_flag=True, help="Overwrite an existing file.")


def settings_of(ctx: click.Context) -> dict[str, Any]:
    """Return the settings before the name of the command: home, address, login."""
    return dict(ctx.find_root().obj or {})
