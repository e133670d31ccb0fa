"""`archive mcp`: the archive as tools of a language model."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module

import click

from archive.cli.parameters import settings_of
from archive.cli.render import print_message
from archive.errors import SettingsError

PATIENCE_SECONDS = 10.0
"""Longest outage of the server that a call waits for, unless the settings say less: clients give up
after a minute."""


@click.command()
@click.option(
    "--write",
    is_flag=True,
    help="Offer the tools that write: propose networks, wait for their results.",
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

    chosen = settings.load(**settings_of(ctx))
    check_sdk()
    from archive.api import connect
    from archive.mcp import server, transports
    from archive.mcp.access import ArchiveAccess

    patient = replace(chosen, patience=min(chosen.patience, PATIENCE_SECONDS))
    access = ArchiveAccess(lambda: connect(patient))
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
