"""`archive completion`: the script that teaches a shell the commands, options and names of the
archive.
"""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from archive.cli.render import print_data

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
VARIABLE = "_ARCHIVE_COMPLETE"
"""Variable by which the script asks `archive` for completions."""


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options, and names of agents, tasks, studies and
    more.

    \b
    bash (4.4 or later):  echo 'eval "$(archive completion bash)"' >> ~/.bashrc
    zsh:                  echo 'eval "$(archive completion zsh)"' >> ~/.zshrc
    fish:                 archive completion fish > ~/.config/fish/completions/archive.fish

    The names of studies are completed while the archive's server runs; a completion never starts
    one.
    """  # noqa: D301 - click reads \b as: keep the lines
    root = ctx.find_root()
    print_data(SHELLS[shell](root.command, {}, "archive", VARIABLE).source())
