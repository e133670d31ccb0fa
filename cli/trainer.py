"""`archive trainer`: trains what agents propose, and says who does."""

from __future__ import annotations

import logging
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from archive.cli.render import json_option, open_archive, print_json, print_message, print_table, span
from archive.errors import StoreUnavailableError, UsageError

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.queue.workers import WorkerStatus
    from archive.trainer.daemon.trainer import Trainer

log = logging.getLogger("archive.trainer")


@click.group(invoke_without_command=True, subcommand_metavar="[COMMAND]")
@click.option("--study", help="Serve this study alone [any].")
@click.option("--slots", type=click.IntRange(1), default=1, show_default=True, help="Trials at a time.")
@click.option(
    "--device", default="auto", show_default=True, help="cpu, cuda, cuda:1 …; auto takes a GPU if there is one."
)
@click.option("--threads", type=click.IntRange(1), help="CPU threads of each trial [cores / slots].")
@click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bf16", "tf32"]),
    default="auto",
    show_default=True,
    help="Training precision. auto: bf16 on a GPU that supports it, otherwise float32.",
)
@click.option(
    "--checkpoint",
    "checkpoint_seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds between two saves of a trial: the most that a kill loses of it.",
)
@click.option(
    "--stall",
    "stall_seconds",
    type=click.FloatRange(0, min_open=True),
    default=1800.0,
    show_default=True,
    help="Seconds without progress after which a trial is taken to hang.",
)
@click.option(
    "--scale",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="A table's answer takes its recorded cost times this.",
)
@click.option("--once", is_flag=True, help="Leave after one trial, or when nothing waits.")
@click.option("--idle", "idle_seconds", type=click.FloatRange(0), help="Leave after so many seconds without work.")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(0),
    help="Seconds to wait for an archive that is away at the start [until it answers].",
)
@click.option("--drain", is_flag=True, help="Finish running trials on SIGTERM or Ctrl-C; a second one hands them back.")
@click.option(
    "--data-folder",
    "data_folders",
    multiple=True,
    metavar="PATH",
    type=click.Path(exists=True, file_okay=False),
    help="Folder with files that studies may name as csv:, npz: or table:, beside ARCHIVE_DATA_DIR and those that a "
    "search on this machine named; may be repeated.",
)
@click.option(
    "--weights-from",
    multiple=True,
    metavar="PLACE",
    help="Folder or fsspec URL with weights of other trainers that networks may begin with, beside this trainer's "
    "own; may be repeated.",
)
@click.option(
    "--grace",
    "parting_seconds",
    type=click.FloatRange(0),
    default=8.0,
    show_default=True,
    help="Seconds that running trials may take to save their state when the trainer is told to stop; keep it below "
    "what the system allows before it kills (docker stop: 10, Slurm: 30).",
)
@click.option("--parent", type=int, hidden=True, help="Leave when the process of this id is gone.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines for people, or one JSON object a line, on stderr.",
)
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Serve metrics for Prometheus here; 0 takes any.")
@click.option("--metrics-address", default="127.0.0.1", show_default=True, help="Where the metrics are served.")
@json_option
@click.pass_context
def trainer(
    ctx: click.Context,
    /,
    log_format: Literal["text", "json"],
    metrics_port: int | None,
    metrics_address: str,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Train what agents propose, until stopped.

    Claims proposals, trains each in a process of its own, and writes results back. Any number of trainers may serve
    one archive, on any number of machines. With the command status, say which there are.
    """
    if ctx.invoked_subcommand is not None:
        _refuse_options(ctx)
        return
    from archive.trainer.daemon import logs
    from archive.trainer.daemon.options import Options
    from archive.trainer.daemon.trainer import Trainer

    with _opened(ctx, chosen["wait_seconds"], chosen["parent"]) as archive:
        if chosen["study"] is not None:
            archive.studies.get(chosen["study"])
        daemon = Trainer(archive, Options(**chosen))
        logs.configure(log_format, worker=daemon.worker)
        if metrics_port is not None:
            _serve_metrics(daemon, metrics_port, metrics_address)
        tally = daemon.run()
    if as_json:
        print_json(asdict(tally))
    elif log_format == "text":
        print_message(f"{tally.complete} evaluated, {tally.failed} failed, {tally.returned} handed back")


def _opened(ctx: click.Context, seconds: float | None, parent: int | None) -> Archive:
    """Return the archive, once it answers.

    Raises:
        StoreUnavailableError: It does not.
    """
    from archive.trainer.daemon.retry import until_it_answers
    from archive.trainer.daemon.shutdown import Lifetime

    # The trainer rides outages out itself, and must not be deaf to signals for as long as a connection would wait.
    gone = Lifetime(parent).parent_gone
    found = until_it_answers(lambda: open_archive(ctx, patience=5.0), seconds, print_message, gone)
    if found is None:
        sys.exit(0)
    return found


def _refuse_options(ctx: click.Context) -> None:
    """See that nothing was asked of a daemon that is not started.

    Raises:
        UsageError: An option stands before the command.
    """
    for parameter in ctx.command.params:
        if ctx.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE:
            name = f"archive trainer {ctx.invoked_subcommand}"
            raise UsageError(f"options of {name} come after its name, got {parameter.opts[0]} before it")


def _serve_metrics(daemon: Trainer, port: int, address: str) -> None:
    from archive.trainer.daemon.prometheus import Metrics

    metrics = Metrics(daemon)
    daemon.observers.append(metrics)
    port = metrics.serve(port, address)
    log.info("metrics served address=%s", f"http://{address}:{port}/metrics")


@trainer.command()
@click.option("--all", "everyone", is_flag=True, help="Also those who left, or fell silent, more than a day ago.")
@click.option(
    "--stale",
    "stale_seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds of silence after which a trainer counts as stale.",
)
@click.option("--healthcheck", is_flag=True, help="Exit 1 unless a trainer of this machine is at work or ready.")
@json_option
@click.pass_context
def status(ctx: click.Context, everyone: bool, stale_seconds: float, healthcheck: bool, as_json: bool) -> None:
    """Show the trainers: what each of them runs, since when, and which have fallen silent.

    The clock of the database decides, whatever the machines' own say. An archive that does not answer is no fault
    of a trainer's, which rides that out: --healthcheck then finds it healthy.
    """
    from archive.queue import workers

    recent = 10 * 365 * 86_400.0 if everyone else workers.RECENT_SECONDS
    try:
        with open_archive(ctx, patience=5.0) as archive:
            found = workers.statuses(archive.connection, stale_seconds=stale_seconds, recent_seconds=recent)
    except StoreUnavailableError as error:
        if not healthcheck:
            raise
        print_message(f"nothing is known: {error}")
        return
    if healthcheck:
        found = [worker for worker in found if worker.host == platform.node()]
    _print_workers(found, as_json)
    if healthcheck and not any(worker.alive for worker in found):
        print_message(f"no trainer of {platform.node()} is at work")
        sys.exit(1)


def _print_workers(found: list[WorkerStatus], as_json: bool) -> None:
    if as_json:
        print_json([{**asdict(worker), "trials": [asdict(trial) for trial in worker.trials]} for worker in found])
        return
    if not found:
        print_message("no trainer was heard of within a day; start one with: archive trainer")
        return
    columns = ("worker", "state", "device", "for", "silent", "proposal", "attempt", "epochs", "trains for")
    print_table(columns, [row for worker in found for row in _rows(worker)])


def _rows(worker: WorkerStatus) -> Iterator[list[Any]]:
    """Yield a row a trial, with the worker in the first of them."""
    own = [worker.id, worker.state, worker.device, span(worker.seconds), span(worker.silent_seconds)]
    if not worker.trials:
        yield [*own, None, None, None, None]
    for place, trial in enumerate(worker.trials):
        about = own if place == 0 else [""] * len(own)
        yield [*about, trial.proposal, trial.attempt, trial.epochs, span(trial.seconds)]
