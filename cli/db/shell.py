"""`archive db shell`: an interactive prompt for Cypher."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from archive.cli.parameters import Count, Duration
from archive.cli.render import open_archive, print_block, print_data, print_message, print_table
from archive.database.read_only import split_statements
from archive.errors import ArchiveError
from archive.user_paths import expanded

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.database.user_query import QueryResult

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


@click.command(short_help="Open a prompt for Cypher.")
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

    from archive.cli.parameters import settings_of
    from archive.settings import load

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
