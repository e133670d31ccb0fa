"""`archive metrics`: the queue and the trainers, for Prometheus and autoscalers."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from archive.cli.parameters import Count, Duration
from archive.cli.render import open_archive, print_line, print_message

PATIENCE_SECONDS = 3.0
"""Longest wait of a scrape for the database; Prometheus gives up after 10 s."""


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
    from archive.trainer.daemon.retry import wait_for_store

    with _ended_by_signals():
        archive = wait_for_store(
            lambda: open_archive(ctx, patience=PATIENCE_SECONDS), wait_seconds, print_message
        )
        assert archive is not None
        with archive:
            server = MetricsServer(ArchiveReader(archive.connection), address, port)
            print_line(server.url)
            sys.stdout.flush()
            server.run()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """End the block with exit code 0 at SIGTERM or Ctrl-C: it serves until then, and nothing is
    left unfinished.
    """
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
