"""`archive agents`: which search agents there are, and when to choose which."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from archive.cli.render import json_option, print_fields, print_json, print_table

COLUMNS = ("agent", "summary", "paper", "cost", "when", "transfers")


@click.command()
@click.argument("name", required=False)
@json_option
def agents(name: str | None, as_json: bool) -> None:
    """List the search agents; with a NAME, show one with its settings."""
    if name is not None:
        _show(name, as_json)
        return
    from archive import agents as known

    rows = [_card(kind) for kind in known.names()]
    if as_json:
        print_json(rows)
    else:
        print_table(COLUMNS, [[row.get(column) for column in COLUMNS] for row in rows])


def _show(name: str, as_json: bool) -> None:
    from archive import agents as known

    settings = known.settings(name)
    if as_json:
        print_json({**_card(name), "settings": settings})
        return
    print_fields(_card(name), 8)
    if settings:
        print_table(("setting", "default"), list(settings.items()))


def _card(name: str) -> dict[str, Any]:
    """Return what is known of an agent; an agent of another package has no card."""
    from archive.agents.catalogue import CARDS

    return {"agent": name, **(asdict(CARDS[name]) if name in CARDS else {})}
