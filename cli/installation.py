"""`archive doctor` and `archive completion`: checks, and shell completion."""

from __future__ import annotations

import sys

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_data, print_json, print_table

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
VARIABLE = "_ARCHIVE_COMPLETE"
"""Variable by which the script asks `archive` for completions."""
COLOURS = {"ok": "green", "note": "yellow", "bad": "red"}


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check the installation and the database server, and suggest remedies.

    Exit with 1 if a check fails.
    """
    from archive.agents.registry import registry as agents
    from archive.doctor import CheckList, examine, plug_ins
    from archive.kernels import registry as kernels
    from archive.launchers.registry import registry as launchers
    from archive.settings import load
    from archive.spaces import registry as spaces
    from archive.trainer.nn.builders import registry as builders
    from archive.trainer.observers.registry import registry as observers
    from archive.trainer.proxies.registry import registry as proxies
    from archive.trainer.recipes.registry import registry as recipes
    from archive.trainer.tasks.registry import registry as tasks

    registries = (agents, builders, kernels, launchers, observers, proxies, recipes, spaces, tasks)
    checks = [*examine(load(**settings_of(ctx))), *plug_ins(registries)]
    if as_json:
        print_json(CheckList(checks))
    else:
        rows = [(check.state, check.name, check.found, check.remedy) for check in checks]
        print_table(("", "what", "found", "what to do"), rows, styles=COLOURS)

    if any(check.state == "bad" for check in checks):
        sys.exit(1)


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
