"""`archive doctor`: what is installed, which server is used, whether it is healthy, and what to do."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click
from rich.table import Table

from archive.cli.main import settings_of
from archive.cli.render import json_option, out, print_json, show

MARKS = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "bad": "[red]bad[/]"}


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Say what is installed, which server is used, whether it is healthy, and what to do."""
    from archive.health import examine
    from archive.settings import load

    checks = list(examine(load(**settings_of(ctx))))
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        table = Table(show_edge=False, pad_edge=False, header_style="bold")
        for column in ("", "what", "found", "what to do"):
            table.add_column(column, overflow="fold")
        for check in checks:
            table.add_row(MARKS[check.state], check.name, show(check.found), show(check.remedy))
        out().print(table)
    if any(check.state == "bad" for check in checks):
        sys.exit(1)
