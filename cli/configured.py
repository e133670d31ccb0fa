"""Commands whose options have defaults in a table of `config.toml`."""

from __future__ import annotations

import difflib
from typing import Any

import click

from archive import settings
from archive.cli.parameters import settings_of
from archive.errors import SettingsError

NOT_CONFIGURABLE = ("help", "json", "once", "parent")
"""Options that belong to one call."""


class ConfiguredCommand(click.Command):
    """A command whose options take defaults from the table of its name in `config.toml`; an option
    precedes them.

    Args:
        *args: As of `click.Command`.
        table: Name of the table.
        **attributes: As of `click.Command`.
    """

    def __init__(self, *args: Any, table: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.table = table

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the table before the options."""
        if not ctx.resilient_parsing and "--help" not in args and "-h" not in args:
            ctx.default_map = self._defaults(ctx)

        return super().parse_args(ctx, args)

    def _defaults(self, ctx: click.Context) -> dict[str, Any]:
        """Return the values of the table by the names of the parameters.

        Raises:
            SettingsError: The table has an entry that is no option, or has the wrong type.
        """
        own = settings.load(**settings_of(ctx))
        options = {
            name.removeprefix("--"): parameter
            for parameter in self.params
            if isinstance(parameter, click.Option)
            for name in parameter.opts
            if name.startswith("--") and name.removeprefix("--") not in NOT_CONFIGURABLE
        }
        defaults: dict[str, Any] = {}
        for name, value in own.trainer.items():
            where = f"{name!r} in [{self.table}] of {own.home / settings.CONFIG_NAME}"
            written = name.replace("_", "-")
            if written in NOT_CONFIGURABLE:
                raise SettingsError(
                    f"{where} belongs to one call: give --{written} to archive {self.table}"
                )

            option = options.get(written)
            if option is None:
                near = difflib.get_close_matches(name, options, n=1)
                way_out = (
                    f"did you mean {near[0]}?"
                    if near
                    else (f"the options of archive {self.table} are known")
                )
                raise SettingsError(f"unknown option {where}: {way_out}")

            defaults[str(option.name)] = _checked(ctx, option, value, where)

        return defaults


def _checked(ctx: click.Context, option: click.Option, value: Any, where: str) -> Any:
    """Return the value of an option from the file.

    Raises:
        SettingsError: The option does not take it.
    """
    if option.is_flag != isinstance(value, bool) or option.multiple != isinstance(value, list):
        form = "true or false" if option.is_flag else "a list" if option.multiple else "one value"
        raise SettingsError(f"{where} must be {form}, got {value!r}")

    if isinstance(value, float) and isinstance(option.type, type(click.INT)):
        # click would cut its decimals off
        raise SettingsError(f"{where} must be an integer, got {value!r}")

    try:
        option.type_cast_value(ctx, value)
    except click.BadParameter as error:
        raise SettingsError(f"{where}: {error.message}") from None

    return value
