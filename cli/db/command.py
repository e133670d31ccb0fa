"""`archive db`: the database server."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import click

from archive.cli.db.gc import gc
from archive.cli.groups import CommandGroup
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_fields, print_json, print_line, show
from archive.errors import UsageError
from archive.settings import Settings, load

if TYPE_CHECKING:
    from archive.server.embedded import Status


@click.group(cls=CommandGroup)
def db() -> None:
    """Start, stop and inspect the database server."""


db.add_command(gc)


@db.command()
@json_option
@click.pass_context
def start(ctx: click.Context, as_json: bool) -> None:
    """Start the embedded server, unless it is running."""
    from archive.server import embedded

    settings = _embedded(ctx)
    _show(settings, embedded.start(settings), as_json)


@db.command()
@json_option
@click.pass_context
def stop(ctx: click.Context, as_json: bool) -> None:
    """Stop the embedded server; its data are kept."""
    from archive.server import embedded

    stopped = embedded.stop(_embedded(ctx))
    if as_json:
        print_json({"stopped": stopped})
    else:
        print_line("stopped" if stopped else "the embedded server was not running")


@db.command()
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show which server is used, and its state; never starts a server."""
    from archive.server import embedded

    settings = load(**settings_of(ctx))
    if settings.embedded:
        _show(settings, embedded.status(settings), as_json)
        return
    from archive.database.connection import Connection

    with Connection.open(settings) as connection:
        about = {"running": True, "server": connection.address, "database": connection.database}
    if as_json:
        print_json({"embedded": False, **dict.fromkeys(each.name for each in fields(embedded.Status)), **about})
    else:
        print_fields(about, 16)


def _embedded(ctx: click.Context) -> Settings:
    settings = load(**settings_of(ctx))
    if not settings.embedded:
        raise UsageError(f"only the embedded server can be started and stopped, and the archive is on {settings.uri}")
    return settings


def _show(settings: Settings, status: Status, as_json: bool) -> None:
    """Write the state of the embedded server."""
    from archive.server import embedded

    about = asdict(status)
    if as_json:
        server = embedded.find(settings) if status.running else None
        where = {"server": server and server.uri, "database": server and server.database}
        # Values that are zero or empty are unknown, except the number of restarts.
        known = {name: None if value in ("", 0) and name != "restarts" else value for name, value in about.items()}
        print_json({"embedded": True, **where, **known, "folder": str(status.folder), "running": status.running})
        return
    shown = {name: value for name, value in about.items() if value not in (None, "", 0) or name == "running"}
    print_fields({name: _readable(name, value) for name, value in shown.items()}, 16)


def _readable(name: str, value: Any) -> str:
    if name.endswith("_bytes"):
        return f"{value / 2**20:.0f} MiB"
    if name.endswith("_seconds"):
        return f"{value:.0f} s"
    return show(value) if isinstance(value, bool) else str(value)
