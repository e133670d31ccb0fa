"""`archive db`: the database server, and a prompt for Cypher."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from archive.cli.db.upkeep import gc, repair
from archive.cli.groups import CommandGroup
from archive.cli.parameters import Count, Duration, settings_of
from archive.cli.render import (
    json_option,
    open_archive,
    print_block,
    print_data,
    print_fields,
    print_json,
    print_line,
    print_message,
    print_table,
    show,
)
from archive.database.read_only import split_statements
from archive.errors import ArchiveError, UsageError
from archive.files import expanded
from archive.settings import Settings, load

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.database.connection import Connection
    from archive.database.user_query import QueryResult
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


PROMPT = "archive> "
CONTINUED = "    ...> "
HISTORY_LENGTH = 1000

HELP = """\
A statement ends with ; and may take several lines. Ctrl-C ends a running query, or drops the
statement.

  :help    show this text
  :clear   drop the statement that was begun
  :quit    leave; so does Ctrl-D
"""


@db.command(short_help="Open a prompt for Cypher.")
@click.option("--write", is_flag=True, help="Allow statements to change the archive.")
@click.option(
    "--limit", type=Count(1), default=1000, help="Maximum number of rows of each statement."
)
@click.option(
    "--timeout", type=Duration(0.1), default="60s", help="Give up on a statement after this long."
)
@click.pass_context
def shell(ctx: click.Context, write: bool, limit: int, timeout: float) -> None:
    """Open a prompt for Cypher; statements from a pipe are run one after the other.

    A statement ends with `;` and may take several lines. Statements are read-only unless --write is
    given. Ctrl-C ends a running query. The first error in a pipe ends it.

    Example: archive db shell

    Example: echo "MATCH (s:Study) RETURN s.name; MATCH (e:Evaluation) RETURN count(e);" | archive
    db shell
    """
    with open_archive(ctx) as archive:
        session = _Shell(archive, write, limit, timeout)
        if sys.stdin.isatty():
            with _history(ctx):
                session.converse()
        else:
            session.run_all(sys.stdin.read())


class _Shell:
    def __init__(self, archive: Archive, write: bool, limit: int, timeout: float) -> None:
        self.archive = archive
        self.write = write
        self.limit = limit
        self.timeout = timeout

    def converse(self) -> None:
        """Run typed statements until the end of the input."""
        mode = (
            "statements may change the archive"
            if self.write
            else ("read-only; --write allows changes")
        )
        print_message(f"{self.archive.connection.address}: {mode}. :help for help, :quit to leave.")
        begun = ""
        while True:
            try:
                line = input(CONTINUED if begun else PROMPT)
            except EOFError:
                print_message("")
                return
            except KeyboardInterrupt:
                print_message("")
                begun = ""
                continue

            if line.strip().startswith(":"):
                begun = ""
                if not self._obey(line.strip()):
                    return

                continue

            statements, begun = split_statements(f"{begun}\n{line}" if begun else line)
            for statement in statements:
                if not self._try(statement):
                    break

    def run_all(self, text: str) -> None:
        """Run the statements of a text; the last one needs no mark of its end.

        Raises:
            ArchiveError: A statement failed; further ones are not run.
        """
        statements, rest = split_statements(text)
        for statement in [*statements, rest]:
            if statement.strip():
                self._show(self._run(statement))

    def _obey(self, command: str) -> bool:
        """Carry out a command, and return whether to continue."""
        if command in (":quit", ":exit", ":q"):
            return False

        if command == ":help":
            print_block(HELP)
        elif command != ":clear":
            print_message((f"unknown command {command}: :help lists them", "red"))

        return True

    def _try(self, statement: str) -> bool:
        """Run a statement, and return whether it succeeded."""
        try:
            self._show(self._run(statement))
        except ArchiveError as error:
            print_message(("error: ", "bold red"), str(error))
            return False
        except KeyboardInterrupt:
            print_message("interrupted: the query was ended")
            return False

        return True

    def _run(self, statement: str) -> QueryResult:
        return self.archive.query(
            statement, write=self.write, limit=self.limit, timeout=self.timeout
        )

    def _show(self, answer: QueryResult) -> None:
        if answer.rows:
            print_table(answer.columns, answer.rows)
            print_data("\n")
        else:
            print_message("no rows")

        if answer.truncated:
            print_message(
                (
                    f"cut off after {self.limit} rows: raise --limit, or add LIMIT to the query",
                    "yellow",
                )
            )


@contextlib.contextmanager
def _history(ctx: click.Context) -> Iterator[None]:
    """Edit lines with readline, and keep them in a private file of the archive's folder."""
    try:
        import readline
    except ImportError:
        yield
        return

    path = expanded(load(**settings_of(ctx)).home) / "shell_history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)

    try:
        yield
    finally:
        readline.set_history_length(HISTORY_LENGTH)
        with contextlib.suppress(OSError):
            path.touch(mode=0o600)
            readline.write_history_file(path)
