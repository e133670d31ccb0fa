"""Groups of commands: unknown names in the archive's words, and groups with a default command.

`archive trainer --slots 2` is `archive trainer start --slots 2`.
"""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from archive.errors import UnknownNameError


class CommandGroup(click.Group):
    """A group that reports an unknown command as the archive reports every unknown name."""

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

        takes_arguments = any(
            isinstance(each, click.Argument) for each in self.commands[self.default].params
        )
        return first.startswith("-") or takes_arguments

    def _default_context(self, ctx: click.Context) -> click.Context:
        return self.commands[self.default].make_context(
            self.default, [], parent=ctx, resilient_parsing=True
        )
