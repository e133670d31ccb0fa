"""The command reference `docs/commands.md`, generated from `--help`.

`python -m archive.cli.reference docs/commands.md` writes it; a test fails when it is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from archive.cli.main import archive

HEAD = """# Commands

Generated from `archive COMMAND --help` by `python -m archive.cli.reference docs/commands.md`.
Errors are one line on stderr and a non-zero exit code; `--json` puts JSON on stdout.

A `TIME` is a number with a unit, such as `90s`, `15min`, `2h`, `30d` or `1h30m`; a plain number counts seconds unless
the option says otherwise. `archive completion bash|zsh|fish` prints the script by which a shell completes commands,
options and names; `archive completion --help` says where to put it.
"""


def reference() -> str:
    """Return the reference as Markdown: a heading and the help text of every command."""
    parts = (
        f"## `{ctx.command_path}`\n\n```text\n{ctx.get_help()}\n```\n" for ctx in contexts(100)
    )
    return "\n".join([HEAD, *parts])


def contexts(width: int) -> Iterator[click.Context]:
    """Yield the context of every command and group, for help texts of a width."""
    yield from _commands(
        click.Context(
            archive, info_name="archive", terminal_width=width, **archive.context_settings
        )
    )


def _commands(ctx: click.Context) -> Iterator[click.Context]:
    """Yield the contexts of a command and of its subcommands."""
    yield ctx
    if not isinstance(ctx.command, click.Group):
        return

    for name in ctx.command.list_commands(ctx):
        child = ctx.command.get_command(ctx, name)
        if child is not None and not child.hidden:
            yield from _commands(click.Context(child, info_name=name, parent=ctx))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(reference(), encoding="utf-8")
