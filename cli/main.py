"""The command line `archive`: loads the called command, turns errors into one line."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module

import click

from archive import __version__
from archive.cli import entry, exit_codes
from archive.cli.entry import tolerate_other_encodings
from archive.cli.groups import CommandGroup
from archive.database.driver import hide_arrays, hide_optional_packages
from archive.errors import ArchiveError, QueryError, UnknownNameError
from archive.searches.interruption import InterruptedBySignal, caused

COMMANDS = {
    "search": (
        "archive.cli.search.command",
        "search",
        "Search for architectures: agent, trainers and archive in one command.",
    ),
    "init": (
        "archive.cli.init",
        "init",
        "Write a small project of your own, which runs at once.",
    ),
    "trainer": (
        "archive.cli.trainer.command",
        "trainer",
        "Run a trainer, or show the trainers of an archive.",
    ),
    "launch": (
        "archive.cli.launch.command",
        "launch",
        "Start trainers on this machine or a cluster; list and stop them.",
    ),
    "record": (
        "archive.cli.runs.record",
        "record",
        "Run any program, and keep what it was given and what it brought.",
    ),
    "compare": (
        "archive.cli.runs.compare",
        "compare",
        "Compare two runs, and say whether they differ by more than noise.",
    ),
    "tried": (
        "archive.cli.runs.tried",
        "tried",
        "Show what was tried, by words in reasons, changes and output.",
    ),
    "agent-instructions": (
        "archive.cli.runs.agent_instructions",
        "agent_instructions",
        "Write what a language model in a loop of runs should call, and when.",
    ),
    "leaderboard": (
        "archive.cli.runs.leaderboard",
        "leaderboard",
        "Rank what was tried on a task, and say what is more than noise.",
    ),
    "query": ("archive.cli.query", "query", "Query the archive in Cypher, or by a saved query."),
    "study": (
        "archive.cli.study.command",
        "study",
        "List, show, watch, plot, export and delete studies; follow their logs.",
    ),
    "report": (
        "archive.cli.study.export",
        "report",
        "Write a study as one HTML file, with pictures, plots and a table.",
    ),
    "proposal": ("archive.cli.proposal", "proposal", "Show, cancel and retry proposals."),
    "weights": (
        "archive.cli.weights",
        "weights",
        "Export trained networks as files for other programs.",
    ),
    "arch": (
        "archive.cli.architecture.command",
        "arch",
        "Show, draw and compare architectures.",
    ),
    "effects": (
        "archive.cli.effects",
        "effects",
        "Show what a kind of edit brings: wider, other activation, other recipe.",
    ),
    "predict": (
        "archive.cli.predict",
        "predict",
        "Predict the result of a network before it is trained.",
    ),
    "scaling": (
        "archive.cli.scaling",
        "scaling",
        "Forecast the losses of larger trainings from smaller ones.",
    ),
    "dashboard": (
        "archive.cli.serving",
        "dashboard",
        "Serve a page that shows the archive, live.",
    ),
    "metrics": (
        "archive.cli.serving",
        "metrics",
        "Serve the length of the queue to Prometheus and autoscalers.",
    ),
    "agents": (
        "archive.cli.catalogues",
        "agents",
        "List the search agents, and when to choose which.",
    ),
    "tasks": ("archive.cli.training_catalogues", "tasks", "List the tasks."),
    "protocols": (
        "archive.cli.training_catalogues",
        "protocols",
        "List the training protocols of the tasks.",
    ),
    "recipes": (
        "archive.cli.training_catalogues",
        "recipes",
        "List the recipes, by which networks are trained.",
    ),
    "spaces": ("archive.cli.catalogues", "spaces", "List the search spaces."),
    "observers": (
        "archive.cli.training_catalogues",
        "observers",
        "List the observers, which receive metrics of trials.",
    ),
    "kernels": (
        "archive.cli.catalogues",
        "kernels",
        "List the kernels, the distances of architectures.",
    ),
    "dump": (
        "archive.cli.exchange.dump",
        "dump",
        "Write the archive, or some studies, to one file.",
    ),
    "publish": (
        "archive.cli.exchange.dump",
        "publish",
        "Write results to a file to pass on, without hosts, paths and notes.",
    ),
    "load": ("archive.cli.exchange.dump", "load", "Merge a dumped file into the archive."),
    "import": (
        "archive.cli.exchange.imports",
        "imports",
        "Import results and models: tables, Optuna studies, PyTorch.",
    ),
    "table": (
        "archive.cli.exchange.tables",
        "tables",
        "List the built-in tables; make them of official releases.",
    ),
    "bench": (
        "archive.cli.bench.command",
        "bench",
        "Measure speed and search quality on this machine.",
    ),
    "mcp": ("archive.cli.serving", "mcp", "Serve the archive to a language model (MCP)."),
    "db": ("archive.cli.db.command", "db", "Start, stop and inspect the database server."),
    "doctor": (
        "archive.cli.installation",
        "doctor",
        "Check the installation and the server, and suggest remedies.",
    ),
    "completion": (
        "archive.cli.installation",
        "completion",
        "Print the completion script of a shell.",
    ),
}

VARIABLES = ("ARCHIVE_HOME", "ARCHIVE_PLAIN", "NO_COLOR")
"""Variables that the options before the command's name set."""

READERS = ("query", "study", "proposal", "db", "doctor")
"""Commands that pass no array and no number of numpy to the database."""


class LazyGroup(CommandGroup):
    """A group that imports a command when it is called; `archive --help` imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; None if no command has this name."""
        if cmd_name not in COMMANDS:
            return None

        if cmd_name in READERS:
            hide_arrays()

        module, name, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        entry.begin_command()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a full disk or an exhausted quota."""

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}
"""Settings of click for every command."""


def _set_variable(name: str, ctx: click.Context, option: click.Parameter, value: bool) -> bool:
    """Set a variable for a flag, which also holds for an error in the name of a command."""
    if value:
        os.environ[name] = "1"

    return value


@click.group(cls=LazyGroup, context_settings=CONTEXT, epilog=exit_codes.epilog())
@click.version_option(__version__, prog_name="archive")
@click.option(
    "--home",
    metavar="DIR",
    show_default="ARCHIVE_HOME, else ~/.archive",
    help="Folder of the embedded archive and of weights.",
)
@click.option(
    "--db",
    "uri",
    metavar="URI",
    show_default="ARCHIVE_DB, else the embedded server",
    help="Neo4j server, neo4j://host:7687.",
)
@click.option(
    "--user",
    metavar="NAME",
    show_default="ARCHIVE_USER, else neo4j",
    help="User of the Neo4j server.",
)
@click.option(
    "--database",
    metavar="NAME",
    show_default="ARCHIVE_DATABASE, else the user's own",
    help="Database on the Neo4j server.",
)
@click.option(
    "--no-colour",
    "--no-color",
    is_flag=True,
    callback=partial(_set_variable, "NO_COLOR"),
    help="Write without colours, as with NO_COLOR=1.",
)
@click.option(
    "--plain",
    is_flag=True,
    callback=partial(_set_variable, "ARCHIVE_PLAIN"),
    help="Write plain lines for a screen reader, as with ARCHIVE_PLAIN=1: no colours, no drawn "
    "tables, no animations.",
)
@click.pass_context
def archive(ctx: click.Context, /, **settings: str | bool | None) -> None:
    """A graph database of every neural architecture you evaluate, and search agents that learn from
    it.

    Start with: archive search --agent nasbot
    """
    ctx.obj = {name: value for name, value in settings.items() if isinstance(value, str)}
    if "home" in ctx.obj:
        # Data sets and caches are found by it.
        os.environ["ARCHIVE_HOME"] = ctx.obj["home"]


@contextmanager
def _own_variables() -> Iterator[None]:
    """Let a command set variables, which end with it: a test or a notebook calls several."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit; a known error is one red line on stderr."""
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    tolerate_other_encodings()
    hide_optional_packages()
    with entry.ended_by_signals(), _own_variables():
        return _call(arguments)


def _call(arguments: list[str] | None) -> int:
    """Run the command line, and return the exit code; known errors become one line."""
    try:
        return int(archive.main(arguments, prog_name="archive", standalone_mode=False) or 0)
    except (KeyboardInterrupt, click.exceptions.Abort) as error:
        # Click turns a KeyboardInterrupt into an Abort.
        return _report_interrupt(caused(error) or error)
    except click.exceptions.NoArgsIsHelpError as error:
        from archive.cli.render import printable

        click.echo(printable(error.format_message(), lines=True))
        return 2
    except click.NoSuchOption as error:
        return _complain(_describe_unknown(error), error.exit_code)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except BrokenPipeError:
        # The reader of the output has ended (`archive query … | head`), which is no error.
        sys.stdout = open(os.devnull, "w")
        return 0
    except OSError as error:
        if error.errno == errno.EIO and isinstance(error.__context__, InterruptedBySignal):
            # The terminal of a SIGHUP is gone.
            return _report_interrupt(error.__context__)

        if error.errno not in FULL:
            raise

        sys.stdout = open(os.devnull, "w")
        return _complain(
            f"nothing more can be written: {error.strerror}", exit_codes.ExitCode.ERROR
        )
    except Exception as error:
        if (interrupt := caused(error)) is not None:
            return _report_interrupt(interrupt)

        refused = error.__cause__ if isinstance(error, ArchiveError) else error
        if (
            isinstance(refused, UnicodeEncodeError)
            and "\udc80" <= refused.object[refused.start] <= "\udcff"
        ):
            # Python's form of a byte of the command line that is no UTF-8.
            return _complain(
                "a name on the command line is not UTF-8 text", exit_codes.ExitCode.USAGE
            )

        if isinstance(error, ArchiveError):
            # The server's message points at a place in the query's text, on a separate line.
            return _complain(str(error), error.exit_code, lines=isinstance(error, QueryError))

        raise


def _describe_unknown(error: click.NoSuchOption) -> str:
    """Return the message on an unknown option, in the words for every unknown name."""
    command = None if error.ctx is None else error.ctx.command
    options: list[str] = []
    for parameter in [] if command is None else command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            options += parameter.opts

    return str(UnknownNameError("option", error.option_name, options, "see --help"))


def _report_interrupt(error: BaseException) -> int:
    from archive.cli.render import print_message

    # The terminal of a SIGHUP is gone, and so may be the reader of the messages.
    with suppress(OSError):
        print_message(getattr(error, "message", "") or entry.INTERRUPTED)

    # The exit code by which shells report a signal, so that a job manager can tell its own SIGTERM
    # from a Ctrl-C.
    return 128 + int(getattr(error, "signal", signal.SIGINT))


def _complain(message: str, code: int, *, lines: bool = False) -> int:
    from archive.cli.render import print_message

    print_message((f"error: {message}", "red"), lines=lines)
    return code


if __name__ == "__main__":
    entry.collect_later()
    main()
