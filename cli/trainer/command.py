"""`archive trainer`: starts a trainer."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Any, Literal

import click

from archive.cli.exit_codes import ExitCode
from archive.cli.groups import ConfiguredCommand, DefaultGroup
from archive.cli.names import RECIPE_LIST, STUDY
from archive.cli.parameters import Count, Duration, ExistingFolder, listed
from archive.cli.render import json_option, open_archive, print_json, print_message
from archive.cli.trainer.options import (
    check_devices,
    check_times,
    create_executor,
    create_observers,
    device_options,
    limit_options,
    observe_option,
    proxies_option,
    shortest,
    subtract_time,
    time_options,
)
from archive.cli.trainer.status import status

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.trainer.daemon.options import Tally
    from archive.trainer.daemon.trainer import Trainer
    from archive.trainer.observers.base import TrialObserver

log = logging.getLogger("archive.trainer")


@click.group(cls=DefaultGroup, default="start")
def trainer() -> None:
    """Run a trainer, or show the trainers of an archive.

    `archive trainer [OPTIONS]` without a command is `archive trainer start [OPTIONS]`, whose
    options are in `archive trainer start --help`.
    """


@trainer.command(
    cls=ConfiguredCommand,
    table="trainer",
    short_help="Train the proposals of search agents until stopped.",
)
@click.option(
    "--study", type=STUDY, show_default="any study", help="Train proposals of this study only."
)
@device_options
@click.option(
    "--threads", type=Count(1), show_default="cores / slots", help="CPU threads of each trial."
)
@click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bf16", "tf32"]),
    default="auto",
    help="Training precision. auto: bf16 on a GPU that supports it, otherwise float32.",
)
@click.option(
    "--latency",
    "latency_seconds",
    type=Duration(),
    default="0.5s",
    help="After each training, measure the latency of the network for this long at most; 0: do "
    "not measure it.",
)
@click.option(
    "--latency-batch", type=Count(1), default=1, help="Batch size of the measured latency."
)
@proxies_option
@click.option(
    "--checkpoint",
    "checkpoint_seconds",
    type=Duration(open_minimum=True),
    default="60s",
    help="Time between two checkpoints of a running trial: the most training that a kill can lose.",
)
@limit_options
@click.option(
    "--scratch-folder",
    "scratch",
    metavar="DIR",
    type=click.Path(file_okay=False),
    show_default="TMPDIR",
    help="Folder of the temporary files of trials, which are deleted after each trial.",
)
@click.option(
    "--scale",
    type=click.FloatRange(0),
    metavar="FACTOR",
    default=0.0,
    help="Tabular tasks: wait FACTOR x the recorded training time before answering; 0 answers at "
    "once.",
)
@click.option("--once", is_flag=True, help="Exit after one trial, or if no proposal is waiting.")
@click.option(
    "--drain",
    is_flag=True,
    help="On SIGTERM or Ctrl-C, finish running trials first; a second signal returns them.",
)
@click.option(
    "--data-folder",
    "data_folders",
    multiple=True,
    metavar="DIR",
    type=ExistingFolder(),
    help="Folder with files that studies may name as csv:, images:, npz:, parquet: or table:, in addition to "
    "ARCHIVE_DATA_DIR and to the "
    "files of searches on this machine. May be repeated.",
)
@click.option(
    "--recipes",
    type=RECIPE_LIST,
    metavar="NAME[,NAME…]",
    show_default="all on this machine",
    help="Recipes that trials may run (archive recipes). A proposal with another recipe is left "
    "to other trainers.",
)
@click.option(
    "--weights-from",
    multiple=True,
    metavar="DIR|URL",
    help="Folder or fsspec URL with weights of other trainers that networks may inherit, in "
    "addition to this "
    "trainer's own. May be repeated.",
)
@time_options
@click.option(
    "--trials-on",
    metavar="ray[:KEY=VALUE,…]|slurm",
    show_default="this machine",
    help="Run each trial on a node of a cluster, with these resources, such as "
    "ray:gpus=1,cpus=4; this trainer alone "
    "needs the database. --slots is the largest number of trials on the cluster. slurm: each trial "
    "has ranks on all nodes of the Slurm job that this trainer runs in.",
)
@click.option("--parent", type=int, hidden=True, help="Exit when the process of this id has ended.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Form of the log on stderr: lines of text, or one JSON object a line.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve Prometheus metrics; 0: any free port.",
)
@click.option(
    "--metrics-address",
    metavar="ADDRESS",
    default="127.0.0.1",
    help="Address that serves the metrics.",
)
@observe_option
@json_option
@click.pass_context
def start(
    ctx: click.Context,
    /,
    log_format: Literal["text", "json"],
    metrics_port: int | None,
    metrics_address: str,
    observe: tuple[str, ...],
    trials_on: str | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Start a trainer: train the proposals of search agents until stopped.

    The trainer claims proposals, trains each in a separate process, and stores the results. Any
    number of trainers can serve one archive, from any number of machines. The exit code is 3 where
    trials failed and none succeeded, and 4 after three trials in a row that could not begin: a GPU
    without driver, missing data, a full disk. Their proposals wait for other trainers, so that a
    service may start this one again, on another machine. Defaults of the options may stand in the
    table [trainer] of config.toml in the archive's folder.

    A TIME is 90s, 15min, 2h or 30d; a plain number counts seconds.
    """
    from archive.trainer.daemon import logs
    from archive.trainer.daemon.options import TrainerOptions
    from archive.trainer.daemon.trainer import Trainer

    check_times(values)
    check_devices(values)
    # Mistakes show before the wait for a database, which counts toward --max-time.
    began = time.monotonic()
    observers = create_observers(ctx, observe)
    with _wait_for_archive(
        ctx, shortest(values["wait_seconds"], values["max_seconds"]), values["parent"]
    ) as archive:
        values = subtract_time(values, time.monotonic() - began)
        study = None if values["study"] is None else archive.studies.get(values["study"])
        values["recipes"] = listed("--recipes", "names of recipes", values["recipes"])
        options = TrainerOptions(**values)
        daemon = Trainer(
            archive,
            options,
            executor=create_executor(archive, trials_on, options) if trials_on else None,
        )
        if study is not None:
            daemon.paths.check_study(study)

        logs.configure(log_format, worker=daemon.worker)
        if metrics_port is not None:
            _serve_metrics(daemon, metrics_port, metrics_address)

        tally = _run_observed(daemon, observers) if observers else daemon.run()

    if as_json:
        print_json(tally)
    elif log_format == "text":
        unsaved = f"; the weights of {tally.unsaved} could not be saved" if tally.unsaved else ""
        print_message(
            f"{tally.complete} evaluated, {tally.failed} failed, {tally.returned} "
            f"handed back{unsaved}"
        )

    if daemon.outcomes.unfit:
        # In one line, and the last one: it stands in the message of a search that gives up.
        reason = " ".join((daemon.outcomes.refusal or "").split())
        print_message(
            f"this machine cannot train, and the proposals wait for other trainers: {reason}"
        )
        ctx.exit(ExitCode.UNFIT_MACHINE)

    if tally.failed and not tally.complete:
        ctx.exit(ExitCode.NOTHING_SUCCEEDED)


def _run_observed(daemon: Trainer, observers: list[tuple[str, TrialObserver]]) -> Tally:
    """Run a trainer with observers of its trials, and return its tally."""
    from archive.trainer.daemon.observation import closing_seconds, observation

    def seconds() -> float:
        return closing_seconds(daemon.stop_signal, daemon.options.parting_seconds)

    with observation(observers, daemon.paths.home, seconds) as observe:
        daemon.observers.append(observe)
        return daemon.run()


def _wait_for_archive(ctx: click.Context, seconds: float | None, parent: int | None) -> Archive:
    """Connect to the archive as soon as its database answers.

    Raises:
        StoreUnavailableError: The database has not answered in time.
    """
    from archive.trainer.daemon.client.store_link import wait_for_store
    from archive.trainer.daemon.shutdown import StopSignal

    # The trainer rides out outages itself, and must react to signals while a connection would still
    # be waiting.
    gone = StopSignal(parent).parent_gone
    archive = wait_for_store(lambda: open_archive(ctx, patience=5.0), seconds, print_message, gone)
    if archive is None:
        sys.exit(0)

    return archive


def _serve_metrics(daemon: Trainer, port: int, address: str) -> None:
    from archive.trainer.daemon.prometheus import PrometheusMetrics
    from archive.values import in_url

    metrics = PrometheusMetrics(daemon)
    daemon.observers.append(metrics)
    port = metrics.serve(port, address)
    log.info("metrics served address=%s", f"http://{in_url(address)}:{port}/metrics")


trainer.add_command(status)
