"""`archive record`: runs any program, and keeps what it was given and what it brought."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from archive.cli.parameters import Duration
from archive.cli.render import json_option, print_json, print_message

if TYPE_CHECKING:
    from archive.runs.known_runs import KnownRun
    from archive.runs.recorded_command import PreparedRun
    from archive.runs.run_folder import RunRecord


@dataclass(frozen=True)
class RecordedRun:
    """A run that was recorded.

    Attributes:
        run: Its id.
        study: Name of its study; before the archive has it, the study that it is for, or NAME-runs
            if that is a search that cannot have it.
        proposal: Id of its proposal; null where the archive has it later.
        status: Exit status of the program, negative for a signal.
        metrics: Its last metrics by name.
        reason: Why it failed; null where it did not.
        earlier: Ids of the runs of the same program, source files and values.
        is_skipped: Whether the program was not started, as `--skip-known` says: the document is of
            the last earlier run with this seed.
    """

    run: str
    study: str
    proposal: str | None
    status: int | None
    metrics: dict[str, float]
    reason: str | None
    earlier: list[str]
    is_skipped: bool = False


@click.command(
    short_help="Run a program, and keep what it was given and what it brought.",
    # What follows the program belongs to it.
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--study", metavar="NAME", show_default="the repository or the folder", help="Study of the run."
)
@click.option(
    "--parent",
    metavar="RUN",
    help="Run that this one is a change of: STUDY#NUMBER, a number, best or last.",
)
@click.option("--why", metavar="TEXT", help="Reason for the run.")
@click.option("--minimise", metavar="METRIC", help="Metric to judge runs by, smaller is better.")
@click.option("--maximise", metavar="METRIC", help="Metric to judge runs by, larger is better.")
@click.option("--task", metavar="NAME", show_default="the study's name", help="Task of the study.")
@click.option(
    "--metrics",
    "pattern",
    metavar="REGEX",
    show_default="name: value",
    help="Pattern of lines with metrics, with a named group for each.",
)
@click.option("--keep", metavar="GLOB", multiple=True, help="Files to keep. May be repeated.")
@click.option("--limit", type=Duration(), help="Longest time of the program.")
@click.option("--skip-known", is_flag=True, help="Do not run what ran before with a result.")
@click.option("--wait", is_flag=True, help="Wait until the archive has the run.")
@json_option
@click.pass_context
def record(ctx: click.Context, /, command: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Run COMMAND, and keep arguments, source files, output, metrics and outcome as a run.

    Metrics are read from lines as "val_loss: 0.52" or {"step": 3, "val_loss": 0.52}, from
    metrics.jsonl, metrics.json and results.json in the folder, and from archive.record in a Python
    program. The exit status is the program's. The archive gets the run from a process of its own.

    Example: archive record --why "wider" --parent best -- python train.py --width 256
    """
    from archive.cli.parameters import settings_of
    from archive.runs import life_cycle
    from archive.runs.life_cycle import RunRequest, check_objective
    from archive.runs.program import ERRORS, OUTPUT
    from archive.runs.recorded_command import PreparedRun
    from archive.settings import load

    objective, direction = check_objective(options["minimise"], options["maximise"])
    request = RunRequest(
        study=options["study"],
        parent=options["parent"],
        motivation=options["why"],
        objective=objective,
        direction=direction,
        task=options["task"],
        pattern=options["pattern"],
        keep=options["keep"],
        limit=options["limit"],
    )
    configuration = load(**settings_of(ctx))
    prepared = PreparedRun(command, request, configuration)
    for earlier_run in prepared.earlier[-3:]:
        print_message(f"the same program, source files and arguments ran before: {earlier_run}")

    repeats = []
    for earlier_run in prepared.earlier:
        # Another seed is another result.
        if earlier_run.reason is None and earlier_run.seed == prepared.record.seed:
            repeats.append(earlier_run)

    if options["skip_known"] and repeats:
        prepared.discard()
        print_message("it is left out, as --skip-known says")
        if as_json:
            print_json(_skipped(prepared, repeats[-1]))

        return

    # The document alone is on stdout.
    recorded = prepared.run(ERRORS if as_json else OUTPUT)
    run = recorded.record
    if options["wait"]:
        from archive.runs.delivery import deliver_home

        deliver_home(configuration)
        run = recorded.folder.read() or run
    else:
        life_cycle.start_delivery(configuration)

    if as_json:
        earlier = [earlier_run.run for earlier_run in recorded.earlier]
        print_json(
            RecordedRun(
                run.id, run.study, run.proposal, run.status, run.metrics, run.reason, earlier
            )
        )
    else:
        outcome = run.reason or _metrics(run.metrics)
        print_message(f"recorded as {_place(run, options['study'])}: {outcome}")

    if run.status:
        sys.exit(run.status if run.status > 0 else 128 - run.status)


def _place(run: RunRecord, requested: str | None) -> str:
    """Return the id of a run and its study, as far as they are known."""
    if run.proposal is not None:
        return f"{run.proposal} in the study {run.study}"

    if requested is None:
        return f"{run.id} for the study {run.study}"

    from archive.runs.life_cycle import study_beside

    # The archive decides later, and the program does not wait for it.
    beside = study_beside(run.study)
    return (
        f"{run.id} for the study {run.study}, or {beside} if that is a search that cannot have it"
    )


def _skipped(prepared: PreparedRun, repeat: KnownRun) -> RecordedRun:
    """Return the document of a run that is not started, since an earlier one is equal."""
    stored = prepared.folder_of(repeat.run).read()
    return RecordedRun(
        run=repeat.run,
        study=repeat.study,
        proposal=None if stored is None else stored.proposal,
        status=0,
        metrics=repeat.metrics,
        reason=None,
        earlier=[run.run for run in prepared.earlier],
        is_skipped=True,
    )


def _metrics(metrics: dict[str, float]) -> str:
    """Return the metrics of a run on one line, without the figures of its process."""
    from archive.runs.measurements import OF_PROCESS

    shown = []
    for name, value in metrics.items():
        if name not in OF_PROCESS:
            shown.append(f"{name} {value:.4g}")

    return ", ".join(shown[:6]) or "no metrics were found in its output"
