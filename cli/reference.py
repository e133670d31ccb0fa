"""The command reference in the README, generated from `--help`.

`python -m archive.cli.reference README.md` writes it anew; a test fails when it is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from archive.cli.main import archive

BEGIN, END = "<!-- commands -->", "<!-- /commands -->"


def reference() -> str:
    """Return the reference as Markdown: a heading and the help text of every command."""
    root = click.Context(archive, info_name="archive", terminal_width=100, **archive.context_settings)
    parts = [f"### `{ctx.command_path}`\n\n```text\n{ctx.get_help()}\n```\n" for ctx in _commands(root)]
    return "\n".join(parts)


def replaced(text: str) -> str:
    """Return a README's text with the reference between its two marks."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{reference()}{END}{tail}"


def _commands(ctx: click.Context) -> Iterator[click.Context]:
    """Yield the context of every command that does something by itself, as if each had been typed."""
    if not isinstance(ctx.command, click.Group):
        yield ctx
        return
    if ctx.command.invoke_without_command:
        yield ctx
    for name in ctx.command.list_commands(ctx):
        child = ctx.command.get_command(ctx, name)
        if child is not None and not child.hidden:
            yield from _commands(click.Context(child, info_name=name, parent=ctx))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = Path(name)
        file.write_text(replaced(file.read_text(encoding="utf-8")), encoding="utf-8")
