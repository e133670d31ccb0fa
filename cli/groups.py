"""Classes of commands: groups, default commands, defaults from `config.toml`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

import click
from click.shell_completion import CompletionItem

from archive import settings
from archive.cli.parameters import settings_of
from archive.errors import SettingsError, UnknownNameError

NOT_CONFIGURABLE = ("help", "json", "once", "parent")
"""Options that belong to one call."""


class CommandGroup(click.Group):
    """A group that reports an unknown command as the archive reports every unknown name.

    Args:
        *args: As of `click.Group`.
        modules: Commands that are imported when they are called: name to module; a module names the
            command as the group does.
        **attributes: As of `click.Group`.
    """

    def __init__(
        self, *args: Any, modules: Mapping[str, str] = MappingProxyType({}), **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, alphabetically."""
        return sorted({*self.commands, *self.modules})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return one command, imported if necessary; None if no command has this name."""
        if cmd_name in self.modules and cmd_name not in self.commands:
            self.add_command(getattr(import_module(self.modules[cmd_name]), cmd_name), cmd_name)

        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of a command, the command and its arguments.

        Raises:
            UnknownNameError: There is no such command.
        """
        name = args[0]
        is_option = name.startswith("-")
        if not is_option and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            raise UnknownNameError("command", name, self.list_commands(ctx))

        return super().resolve_command(ctx, args)


class DefaultGroup(CommandGroup):
    """A group that runs one of its commands where none is named.

    The default command runs when the first word is one of its options; if it takes arguments, also
    when the first word is no command of the group, or missing. Only `--help` is an option of the
    group itself.

    Args:
        *args: As of `click.Group`.
        default: Name of the default command.
        **attributes: As of `click.Group`.
    """

    def __init__(self, *args: Any, default: str, **attributes: Any) -> None:
        attributes |= {"subcommand_metavar": "[COMMAND] [ARGS]...", "no_args_is_help": False}
        super().__init__(*args, **attributes)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command's name before its arguments."""
        if self._is_for_default(ctx, args):
            args = [self.default, *args]

        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the commands of the group, and the options of the default one."""
        items = super().shell_complete(ctx, incomplete)
        with self._default_context(ctx) as default:
            options = default.command.shell_complete(default, incomplete)

        offered = {item.value for item in items}
        return [*items, *(option for option in options if option.value not in offered)]

    def _is_for_default(self, ctx: click.Context, args: list[str]) -> bool:
        if not args:
            return not ctx.resilient_parsing

        first = args[0]
        if first in ctx.help_option_names or first in self.commands:
            return False

        parameters = self.commands[self.default].params
        takes_arguments = any(isinstance(parameter, click.Argument) for parameter in parameters)
        return first.startswith("-") or takes_arguments

    def _default_context(self, ctx: click.Context) -> click.Context:
        return self.commands[self.default].make_context(
            self.default, [], parent=ctx, resilient_parsing=True
        )


class ConfiguredCommand(click.Command):
    """A command with defaults of its options in a table of `config.toml`.

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
        loaded = settings.load(**settings_of(ctx))
        options = self._configurable_options()
        defaults: dict[str, Any] = {}
        for name, value in loaded.trainer.items():
            where = f"{name!r} in [{self.table}] of {loaded.home / settings.CONFIG_NAME}"
            written = name.replace("_", "-")
            if written in NOT_CONFIGURABLE:
                raise SettingsError(
                    f"{where} belongs to one call: give --{written} to archive {self.table}"
                )

            option = options.get(written)
            if option is None:
                advice = f"the options of archive {self.table} are known"
                if near := difflib.get_close_matches(name, options, n=1):
                    advice = f"did you mean {near[0]}?"

                raise SettingsError(f"unknown option {where}: {advice}")

            defaults[str(option.name)] = _check_value(ctx, option, value, where)

        return defaults

    def _configurable_options(self) -> dict[str, click.Option]:
        """Return the options that the table may have, by name."""
        options = {}
        for parameter in self.params:
            if not isinstance(parameter, click.Option):
                continue

            for flag in parameter.opts:
                name = flag.removeprefix("--")
                if flag.startswith("--") and name not in NOT_CONFIGURABLE:
                    options[name] = parameter

        return options


def _check_value(ctx: click.Context, option: click.Option, value: Any, where: str) -> Any:
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
