"""`archive agents`: the search agents, and when to choose which."""

from __future__ import annotations

from dataclasses import asdict

import click

from archive.cli.catalogues.registered import report_unused
from archive.cli.names import AGENT
from archive.cli.render import json_option, print_fields, print_json, print_table

COLUMNS = {"agent": "agent", "summary": "method", "when": "choose it for"}
"""Columns of the list; `archive agents NAME` shows the rest."""


@click.command()
@click.argument("name", type=AGENT, required=False)
@json_option
def agents(name: str | None, as_json: bool) -> None:
    """List the search agents, or show the agent NAME: its paper, its cost, its settings and their
    defaults.
    """
    if name is not None:
        _show(name, as_json)
        return

    from archive.agents.catalogue import infos
    from archive.agents.registry import registry

    report_unused(registry)
    rows = [{"agent": kind, **asdict(info)} for kind, info in infos().items()]
    if as_json:
        print_json({"agents": rows})
    else:
        print_table(list(COLUMNS.values()), [[row[column] for column in COLUMNS] for row in rows])


def _show(name: str, as_json: bool) -> None:
    from archive import agents as known
    from archive.agents.catalogue import info

    settings = known.settings(name)
    shown = {"agent": name, **asdict(info(name))}
    if as_json:
        print_json({**shown, "settings": settings})
        return

    print_fields({name: value for name, value in shown.items() if value not in ("", ())}, 9)
    if settings:
        print_table(("setting", "default"), list(settings.items()))
