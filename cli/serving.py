"""Commands that serve the archive: `archive dashboard`, `archive mcp` and `archive metrics`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archive.cli.parameters import Count, Duration, settings_of
from archive.cli.render import open_archive, print_line, print_message
from archive.errors import SettingsError

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.dashboard.application import Extension
    from archive.dashboard.server import DashboardServer

TOKEN = "ARCHIVE_DASHBOARD_TOKEN"
"""Variable with the token of access."""
PATIENCE_SECONDS = 10.0
"""Longest outage of the database for which a page or a call of MCP waits: MCP clients give up after
a minute."""
SCRAPE_SECONDS = 3.0
"""Longest wait of a scrape for the database; Prometheus gives up after 10 s."""


@click.command(short_help="Serve a page that shows the archive, live.")
@click.option(
    "--host", metavar="ADDRESS", default="127.0.0.1", help="Address to listen on; 0.0.0.0 for all."
)
@click.option("--port", type=Count(0, 65535), default=8765, help="Port; 0 for a free one.")
@click.option(
    "--allow-host",
    "names",
    metavar="NAME",
    multiple=True,
    help="Further host name by which browsers reach the page, behind a proxy say. May be repeated.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    show_default=f"{TOKEN}, else a random token",
    help="File of mode 0600 with the token that the page asks for.",
)
@click.option(
    "--write",
    is_flag=True,
    help="Let the page stop studies, cancel, retry, prioritise and enqueue proposals, and write "
    "notes.",
)
@click.option("--mcp", "tools", is_flag=True, help="Serve the tools of `archive mcp` at /mcp, too.")
@click.option(
    "--query-timeout",
    "query_seconds",
    type=Duration(0.1),
    default="30s",
    help="End a query of the page after this long.",
)
@click.pass_context
def dashboard(
    ctx: click.Context,
    host: str,
    port: int,
    names: tuple[str, ...],
    token_file: Path | None,
    write: bool,
    tools: bool,
    query_seconds: float,
) -> None:
    """Serve a page that shows the archive, live, until Ctrl-C.

    The printed address opens it. Studies, networks, comparisons, queries, workers and the queue; it
    loads nothing from elsewhere. Read-only unless --write is given. The token gives access to
    the whole archive.

    Example: archive dashboard

    Example: archive --db neo4j://host:7687 dashboard --host 0.0.0.0 --token-file token
    """
    check_installed()
    from archive.dashboard.application import Options
    from archive.dashboard.server import DashboardServer

    token = _token(token_file)
    with open_archive(ctx, patience=PATIENCE_SECONDS) as archive:
        options = Options(write=write, query_seconds=query_seconds)
        lowered = tuple(name.lower() for name in names)
        extensions = (language_models(archive, write),) if tools else ()
        server = DashboardServer(
            archive,
            host=host,
            port=port,
            token=token,
            names=lowered,
            options=options,
            extensions=extensions,
        )
        _announce(server, own_token=token is not None)
        server.run()


def check_installed() -> None:
    """Check that the extra `dashboard` is installed.

    Raises:
        SettingsError: It is not.
    """
    if any(find_spec(name) is None for name in ("jinja2", "starlette", "uvicorn")):
        raise SettingsError("the dashboard is not installed: pip install 'nas-archive[dashboard]'")


def language_models(archive: Archive, write: bool) -> Extension:
    """Return the tools of language models, as routes of the page.

    Raises:
        SettingsError: The extra `mcp` is not installed.
    """
    check_sdk()
    from archive.dashboard.application import Extension
    from archive.mcp import server, transports
    from archive.mcp.access import ArchiveAccess

    tools = server.create(ArchiveAccess(lambda: archive), write=write)
    # The page checks Host, Origin and token of each request.
    return Extension(
        transports.application(tools, hosts=()).routes, lambda: transports.running(tools)
    )


def _token(file: Path | None) -> str | None:
    from archive import settings

    return (
        settings.read_secret(file, "token file")
        if file is not None
        else os.environ.get(TOKEN) or None
    )


def _announce(server: DashboardServer, *, own_token: bool) -> None:
    if own_token:
        print_line(server.address)
        print_message("the page asks for the token that you chose; Ctrl-C ends it")
    else:
        print_line(server.address_with_token)
        print_message("the address contains the token: do not share it; Ctrl-C ends the page")

    if not server.access.on_loopback:
        print_message(
            (
                "other machines reach this page, without encryption: put a TLS proxy in front",
                "yellow",
            )
        )

    sys.stdout.flush()


@click.command()
@click.option(
    "--write",
    is_flag=True,
    help="Offer the tools that write: propose networks, wait for their results, record runs.",
)
@click.pass_context
def mcp(ctx: click.Context, write: bool) -> None:
    """Serve the archive to a language model, by the Model Context Protocol over stdin and stdout.

    An MCP client starts this command; the guide "Language models" has the configuration of common
    ones. All tools only read unless --write is given.

    It needs an extra: pip install 'nas-archive[mcp]'

    Example: claude mcp add archive -- archive mcp
    """
    from archive import settings

    loaded = settings.load(**settings_of(ctx))
    check_sdk()
    from archive.api import connect
    from archive.mcp import server, transports
    from archive.mcp.access import ArchiveAccess

    patient = replace(loaded, patience=min(loaded.patience, PATIENCE_SECONDS))
    access = ArchiveAccess(lambda: connect(patient), loaded.home)
    if sys.stdin.isatty():
        print_message(
            "serving MCP on stdin and stdout, for a client that starts this command; Ctrl-C ends it"
        )

    try:
        transports.serve_stdio(server.create(access, write=write))
    finally:
        access.close()


def check_sdk() -> None:
    """Check that the extra `mcp` is installed.

    Raises:
        SettingsError: It is not.
    """
    try:
        import_module("mcp")
    except ModuleNotFoundError:
        raise SettingsError(
            "the MCP SDK is not installed: pip install 'nas-archive[mcp]'"
        ) from None


@click.command(short_help="Serve the length of the queue to Prometheus and autoscalers.")
@click.option("--port", type=Count(0, 65535), default=9465, help="Port; 0 for a free one.")
@click.option(
    "--address",
    metavar="ADDRESS",
    default="127.0.0.1",
    help="Address to listen on; 0.0.0.0 for all.",
)
@click.option(
    "--wait",
    "wait_seconds",
    type=Duration(),
    show_default="forever",
    help="At startup, wait this long for a database that does not answer.",
)
@click.pass_context
def metrics(ctx: click.Context, port: int, address: str, wait_seconds: float | None) -> None:
    """Serve the length of the queue to Prometheus and autoscalers, until Ctrl-C or SIGTERM.

    /metrics has waiting and running proposals of each study and the trainers by state, for
    Prometheus. /queue, or /queue?study=NAME, has the totals as JSON: {"waiting": 12, "running": 3,
    "open": 15}, for KEDA and other autoscalers. No login is needed, and no trainer has to run.

    Example: archive metrics

    Example: archive --db neo4j://host:7687 metrics --address 0.0.0.0
    """
    from archive.metrics.reading import ArchiveReader
    from archive.metrics.server import MetricsServer
    from archive.trainer.daemon.client.store_link import wait_for_store

    with _exit_at_signals():
        archive = wait_for_store(
            lambda: open_archive(ctx, patience=SCRAPE_SECONDS), wait_seconds, print_message
        )
        assert archive is not None
        with archive:
            server = MetricsServer(ArchiveReader(archive.connection), address, port)
            print_line(server.url)
            sys.stdout.flush()
            server.run()


@contextmanager
def _exit_at_signals() -> Iterator[None]:
    """End the block with exit code 0 at SIGTERM or Ctrl-C: nothing is left unfinished."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
