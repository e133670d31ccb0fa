"""`archive db`: the database server."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import click

from archive.cli.db.gc import gc
from archive.cli.db.repair import repair
from archive.cli.db.shell import shell
from archive.cli.groups import CommandGroup
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_fields, print_json, print_line, show
from archive.errors import UsageError
from archive.settings import Settings, load

if TYPE_CHECKING:
    from archive.server.embedded import Status

_WIDTH = 20
"""Width of the names of fields."""


@click.group(cls=CommandGroup)
def db() -> None:
    """Start, stop and inspect the database server."""


db.add_command(gc)
db.add_command(shell)
db.add_command(repair)


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
        about["user"] = connection.login[1]

    if as_json:
        absent = dict.fromkeys([*_LOGIN_KEYS, *(each.name for each in fields(embedded.Status))])
        print_json({"embedded": False, **absent, **about})
    else:
        print_fields(about, _WIDTH)


def _embedded(ctx: click.Context) -> Settings:
    settings = load(**settings_of(ctx))
    if not settings.embedded:
        raise UsageError(
            "only the embedded server can be started and stopped, and the archive "
            f"is on {settings.uri}"
        )

    return settings


def _show(settings: Settings, status: Status, as_json: bool) -> None:
    """Write the state of the embedded server."""
    from archive.server import embedded

    about = asdict(status)
    server = embedded.find(settings) if status.running else None
    if as_json:
        where = {
            "server": server and server.uri,
            "database": server and server.database,
            **_login(settings),
        }
        # Values that are zero or empty are unknown, except the number of restarts.
        known = {
            name: None if value in ("", 0) and name != "restarts" else value
            for name, value in about.items()
        }
        print_json(
            {
                "embedded": True,
                **where,
                **known,
                "folder": str(status.folder),
                "running": status.running,
            }
        )
        return

    shown = {
        name: value
        for name, value in about.items()
        if value not in (None, "", 0) or name == "running"
    }
    print_fields({name: _readable(name, value) for name, value in shown.items()}, _WIDTH)
    if server is not None:
        login = {"server": server.uri, "database": server.database, **_login(settings)}
        print_fields({name: value for name, value in login.items() if value is not None}, _WIDTH)


_LOGIN_KEYS = ("user", "password_file", "reader", "reader_password_file")


def _login(settings: Settings) -> dict[str, str | None]:
    """Return the users of the embedded server, each with the file of its password; null where it
    has none yet.
    """
    from archive.server.run_file import READER, USER, Folder

    folder = Folder(settings.home)
    users = (USER, folder.password), (READER, folder.reader_password)
    values: list[str | None] = []
    for name, path in users:
        values += [name, str(path)] if path.exists() else [None, None]

    return dict(zip(_LOGIN_KEYS, values, strict=True))


def _readable(name: str, value: Any) -> str:
    if name.endswith("_bytes"):
        return f"{value / 2**20:.0f} MiB"

    if name.endswith("_seconds"):
        return f"{value:.0f} s"

    return show(value) if isinstance(value, bool) else str(value)
