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
    parts = []
    for path, command in _commands("archive", archive):
        with click.Context(command, info_name=path, max_content_width=100, terminal_width=100) as ctx:
            parts.append(f"### `{path}`\n\n```text\n{command.get_help(ctx)}\n```\n")
    return "\n".join(parts)


def replaced(text: str) -> str:
    """Return a README's text with the reference between its two marks."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{reference()}{END}{tail}"


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    with click.Context(command, info_name=path) as ctx:
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            if child is not None and not child.hidden:
                yield from _commands(f"{path} {name}", child)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = Path(name)
        file.write_text(replaced(file.read_text(encoding="utf-8")), encoding="utf-8")
