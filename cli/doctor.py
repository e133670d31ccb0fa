"""`archive doctor`: checks of the installation and the server, with remedies."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_json, print_table

COLOURS = {"ok": "green", "note": "yellow", "bad": "red"}


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check the installation and the database server, and suggest remedies.

    Exit with 1 if a check fails.
    """
    from archive.agents.registry import registry as agents
    from archive.doctor import examine, plug_ins
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
        print_json({"checks": [asdict(check) for check in checks]})
    else:
        rows = [(check.state, check.name, check.found, check.remedy) for check in checks]
        print_table(("", "what", "found", "what to do"), rows, styles=COLOURS)

    if any(check.state == "bad" for check in checks):
        sys.exit(1)
