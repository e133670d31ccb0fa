"""The entry point `archive`: finds a command, loads only that one, and turns errors into one red line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from archive import __version__
from archive.errors import ArchiveError, QueryError, UnknownNameError

COMMANDS = {
    "search": (
        "archive.cli.search.command",
        "search",
        "Search for architectures: agent, trainer and archive in one command.",
    ),
    "trainer": ("archive.cli.trainer", "trainer", "Train what agents propose, until stopped."),
    "query": ("archive.cli.query", "query", "Ask the archive in Cypher; read-only unless --write."),
    "study": ("archive.cli.study.command", "study", "List studies, show one, or tell what happened in it."),
    "arch": ("archive.cli.architecture.command", "arch", "Show architectures, and how far apart they are."),
    "agents": ("archive.cli.agents", "agents", "List the search agents, and when to choose which."),
    "dump": ("archive.cli.dump", "dump", "Write the archive, or some studies, to one file."),
    "load": ("archive.cli.dump", "load", "Merge a file that dump wrote into the archive."),
    "import": ("archive.cli.imports", "imports", "Add results of others: tables, benchmark files, studies of Optuna."),
    "bench": ("archive.cli.bench", "bench", "Measure the product on this machine."),
    "db": ("archive.cli.db.command", "db", "Start, stop or look at the database server."),
    "doctor": ("archive.cli.doctor", "doctor", "Say what is installed, which server is used, and what to do."),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is called: `archive --help` loads none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:
                # A shell asks how a line goes on; click then expects no error.
                return None
            raise UnknownNameError("command", cmd_name, COMMANDS)
        module, name, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="archive")
@click.option("--home", metavar="DIR", help="Folder of the embedded archive and of weights [ARCHIVE_HOME, ~/.archive].")
@click.option("--db", "uri", metavar="URI", help="A Neo4j server, neo4j://host:7687 [ARCHIVE_DB; embedded if unset].")
@click.option("--user", metavar="NAME", help="User of the Neo4j server [ARCHIVE_USER, neo4j].")
@click.option("--database", metavar="NAME", help="Database on the Neo4j server [ARCHIVE_DATABASE].")
@click.pass_context
def archive(ctx: click.Context, /, **settings: str | None) -> None:
    """A graph database of every neural architecture ever evaluated, and search agents that live on it.

    Start with: archive search --agent nasbot
    """
    ctx.obj = {name: value for name, value in settings.items() if value is not None}
    if "home" in ctx.obj:
        ctx.with_resource(_environment("ARCHIVE_HOME", ctx.obj["home"]))


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable while a command runs: data sets and caches follow it to the folder of the archive."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a known error is one red line on stderr and a non-zero exit code."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        return int(archive.main(arguments, prog_name="archive", standalone_mode=False) or 0)
    except (KeyboardInterrupt, click.exceptions.Abort) as error:
        from archive.cli.search.interruption import caused

        # Click makes an Abort of a KeyboardInterrupt.
        return _interrupted(caused(error) or error)
    except click.exceptions.NoArgsIsHelpError as error:
        from archive.cli.render import printable

        click.echo(printable(error.format_message(), lines=True))
        return 2
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone (`archive query … | head`): not an error of ours.
        sys.stdout = open(os.devnull, "w")
        return 0
    except Exception as error:
        from archive.cli.search.interruption import caused

        if (interrupt := caused(error)) is not None:
            return _interrupted(interrupt)
        if isinstance(error, ArchiveError):
            # A server's message about a query points into it, on a line of its own.
            return _complain(str(error), error.exit_code, lines=isinstance(error, QueryError))
        raise


def _interrupted(error: BaseException) -> int:
    click.echo("interrupted: nothing that finished is lost; the same command goes on", err=True)
    # As a shell counts an end by a signal, so that a job manager can tell its own SIGTERM from a Ctrl-C.
    return 128 + int(getattr(error, "signal", signal.SIGINT))


def _complain(message: str, code: int, *, lines: bool = False) -> int:
    from archive.cli.render import print_message

    print_message((f"error: {message}", "red"), lines=lines)
    return code


def settings_of(ctx: click.Context) -> dict[str, Any]:
    """Return the settings given before the command's name."""
    return dict(ctx.find_root().obj or {})


if __name__ == "__main__":
    main()
