"""`archive db`: the database server."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from archive.cli.db.shell import shell
from archive.cli.db.upkeep import gc, repair
from archive.cli.groups import CommandGroup
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_fields, print_json, print_line, show
from archive.errors import UsageError
from archive.settings import Settings, load

if TYPE_CHECKING:
    from archive.database.connection import Connection
    from archive.server.embedded import Status

_WIDTH = 20
"""Width of the names of fields."""


@dataclass(frozen=True)
class ServerDocument:
    """The database server; keys of the embedded server alone are null for Neo4j.

    Attributes:
        embedded: Whether the server is the embedded one.
        running: Whether clients can connect.
        server: Its address; null where it does not run.
        database: Name of the database; null for the default one of Neo4j.
        user: User that other clients log in as; it may change everything.
        password_file: File of its password; null where the password comes from the settings.
        reader: User of the embedded server that may only read.
        reader_password_file: File of the password of `reader`.
        folder: The embedded server's folder.
        state: `ready`, `not answering`, `starting`, `stopping`, `stopped`, `failed`, `none` (never
            started) or `foreign` (of another user).
        pid: Process id of the supervisor.
        java_pid: Process id of the database.
        port: Bolt port.
        uptime_seconds: Since the server was started.
        rss_bytes: Resident memory of both processes.
        disk_bytes: Size of the data on disk.
        restarts: How often the database died and was started again.
        error: Why it failed, or why an earlier database died.
    """

    embedded: bool
    running: bool
    server: str | None
    database: str | None
    user: str | None
    password_file: str | None
    reader: str | None
    reader_password_file: str | None
    folder: str | None
    state: str | None
    pid: int | None
    java_pid: int | None
    port: int | None
    uptime_seconds: float | None
    rss_bytes: int | None
    disk_bytes: int | None
    restarts: int | None
    error: str | None


@dataclass(frozen=True)
class ServerStop:
    """Whether the embedded server was stopped.

    Attributes:
        stopped: False where it was not running.
    """

    stopped: bool


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
        print_json(ServerStop(stopped))
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
        document = _external_server(connection)

    if as_json:
        print_json(document)
    else:
        names = ("running", "server", "database", "user")
        print_fields({name: getattr(document, name) for name in names}, _WIDTH)


def _external_server(connection: Connection) -> ServerDocument:
    """Return the Neo4j server of a connection."""
    return ServerDocument(
        embedded=False,
        running=True,
        server=connection.address,
        database=connection.database,
        user=connection.login[1],
        password_file=None,
        reader=None,
        reader_password_file=None,
        folder=None,
        state=None,
        pid=None,
        java_pid=None,
        port=None,
        uptime_seconds=None,
        rss_bytes=None,
        disk_bytes=None,
        restarts=None,
        error=None,
    )


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

    server = embedded.find(settings) if status.running else None
    if as_json:
        document = ServerDocument(
            embedded=True,
            running=status.running,
            server=None if server is None else server.uri,
            database=None if server is None else server.database,
            **_login(settings),
            folder=str(status.folder),
            state=status.state or None,
            # Zero stands for an unknown value, except for the number of restarts.
            pid=status.pid or None,
            java_pid=status.java_pid or None,
            port=status.port or None,
            uptime_seconds=status.uptime_seconds or None,
            rss_bytes=status.rss_bytes or None,
            disk_bytes=status.disk_bytes or None,
            restarts=status.restarts,
            error=status.error or None,
        )
        print_json(document)
        return

    shown = {}
    for name, value in asdict(status).items():
        if name == "running" or value not in (None, "", 0):
            shown[name] = _format(name, value)

    print_fields(shown, _WIDTH)
    if server is not None:
        login = {"server": server.uri, "database": server.database, **_login(settings)}
        print_fields({name: value for name, value in login.items() if value is not None}, _WIDTH)


_LOGIN_KEYS = ("user", "password_file", "reader", "reader_password_file")


def _login(settings: Settings) -> dict[str, str | None]:
    """Return the users of the embedded server with the files of their passwords, or null."""
    from archive.server.run_file import READER, USER, Folder

    folder = Folder(settings.home)
    users = (USER, folder.password), (READER, folder.reader_password)
    values: list[str | None] = []
    for name, path in users:
        values += [name, str(path)] if path.exists() else [None, None]

    return dict(zip(_LOGIN_KEYS, values, strict=True))


def _format(name: str, value: Any) -> str:
    """Return the value of a field with its unit."""
    if name.endswith("_bytes"):
        return f"{value / 2**20:.0f} MiB"

    if name.endswith("_seconds"):
        return f"{value:.0f} s"

    return show(value) if isinstance(value, bool) else str(value)
