"""`archive import wandb`, `mlflow`, `tensorboard`, `neptune`, `git`: runs of other tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from archive.cli.exchange.import_runs import run_options, show_import
from archive.cli.exchange.provenance import provenance_of, provenance_options
from archive.cli.parameters import listed
from archive.cli.render import json_option, open_archive, print_json, print_message

if TYPE_CHECKING:
    from archive.runs.history.external_run import ExternalHistory

F = TypeVar("F", bound=Callable[..., Any])


def history_options(default: str) -> Callable[[F], F]:
    """Return the options that all imports of histories share.

    Args:
        default: The default name of the study in words.
    """

    def decorate(command: F) -> F:
        study = click.option("--study", metavar="NAME", show_default=default, help="Study.")
        return study(run_options(provenance_options(json_option(command))))

    return decorate


@click.command(short_help="Import runs of Weights & Biases.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--project", metavar="NAME", help="Project, where there are several.")
@click.option(
    "--metrics",
    metavar="COLUMNS",
    help="Columns of a table that are metrics, separated by commas.  [default: by their names]",
)
@history_options("the project")
@click.pass_context
def wandb(ctx: click.Context, /, path: Path, **options: Any) -> None:
    """Import the runs of a folder that Weights & Biases writes, or of an exported table.

    PATH is the folder `wandb`, one above it, or a table of runs as CSV, JSON or Parquet. The service
    is not asked. The same folder, or one with more runs, adds new runs only.

    Example: archive import wandb wandb --minimise val_loss
    """
    from archive.runs.history.external_run import choose_project
    from archive.runs.history.wandb_export import read_export
    from archive.runs.history.wandb_runs import read_wandb

    if path.is_file() and path.suffix != ".wandb":
        columns = listed("--metrics", "columns", options["metrics"]) or ()
        history = read_export(path, columns)
    else:
        history = read_wandb(path)

    history = choose_project(history, options["project"], "project")
    _add(ctx, history, path.resolve().name, options)


@click.command(short_help="Import runs of MLflow.")
@click.argument("location")
@click.option("--experiment", metavar="NAME", help="Experiment, where there are several.")
@history_options("the experiment")
@click.pass_context
def mlflow(ctx: click.Context, /, location: str, **options: Any) -> None:
    """Import the runs of an experiment of MLflow.

    LOCATION is the folder `mlruns`, a SQLite file, or a tracking URI such as
    sqlite:///mlflow.db. The same store, or one with more runs, adds new runs only.

    Example: archive import mlflow mlruns --experiment tuning
    """
    from archive.runs.history.external_run import choose_project
    from archive.runs.history.mlflow_runs import read_mlflow

    history = choose_project(read_mlflow(location), options["experiment"], "experiment")
    _add(ctx, history, "mlflow", options)


@click.command(short_help="Import runs of TensorBoard.")
@click.argument("folder", type=click.Path(path_type=Path))
@history_options("the folder")
@click.pass_context
def tensorboard(ctx: click.Context, /, folder: Path, **options: Any) -> None:
    """Import each folder with event files below FOLDER as a run: scalars, and settings of hparams.

    The same folder, or one with more runs, adds new runs only.

    Example: archive import tensorboard lightning_logs --minimise val_loss
    """
    from archive.runs.history.tensorboard_runs import read_tensorboard

    _add(ctx, read_tensorboard(folder), folder.resolve().name, options)


@click.command(short_help="Import runs of Neptune's exporter.")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--project", metavar="NAME", help="Project, where there are several.")
@click.option(
    "--metrics",
    metavar="COLUMNS",
    help="Columns of a table that are metrics, separated by commas.  [default: by their names]",
)
@history_options("the project")
@click.pass_context
def neptune(ctx: click.Context, /, path: Path, **options: Any) -> None:
    """Import the runs of the Parquet files that Neptune's exporter writes, or of a table of runs.

    PATH is the exporter's folder of data, one of its files, or a CSV of the older client's
    fetch_runs_table().to_pandas(), with columns as sys/id, parameters/lr and metrics/loss. The same
    folder or table, or one with more runs, adds new runs only.

    Example: archive import neptune exports/data --maximise metrics/val/acc
    """
    from archive.runs.history.external_run import choose_project
    from archive.runs.history.neptune_runs import read_neptune

    metrics = listed("--metrics", "column", options["metrics"]) or ()
    history = choose_project(read_neptune(path, metrics), options["project"], "project")
    _add(ctx, history, path.resolve().name, options)


@click.command(short_help="Import commits of a git repository as runs.")
@click.argument("folder", type=click.Path(path_type=Path), default=".")
@click.option(
    "--pattern",
    metavar="REGEX",
    show_default="name: value",
    help="Pattern of lines with metrics, with a named group for each.",
)
@click.option(
    "--file",
    metavar="PATH",
    show_default="the commit's message",
    help="File with the metrics, below FOLDER; commits that change it are runs.",
)
@click.option("--values", metavar="NAMES", help="Names that are settings, separated by commas.")
@click.option(
    "--branch",
    metavar="NAME",
    show_default="the checked-out one",
    help="Branch, or another revision.",
)
@history_options("the repository")
@click.pass_context
def git(ctx: click.Context, /, folder: Path, **options: Any) -> None:
    """Import each commit of FOLDER that has a metric, in its message or in a file, as a run.

    The parent of a run is its nearest ancestor with a metric, and the subject its reason. The same
    repository, or one with more commits, adds new runs only.

    Example: archive import git --file results.json --minimise val_loss
    """
    from archive.runs.history.git_commits import CommitPattern, read_git
    from archive.runs.life_cycle import check_objective

    objective, _ = check_objective(options["minimise"], options["maximise"])
    names = listed("--values", "names", options["values"]) or ()
    where = CommitPattern(options["pattern"], options["file"], names)
    revision = options["branch"] or "HEAD"
    history = read_git(folder, where, revision=revision, objective=objective)
    _add(ctx, history, folder.resolve().name, options)


def _add(ctx: click.Context, history: ExternalHistory, name: str, options: dict[str, Any]) -> None:
    """Add a history to its study, and show what was added.

    Args:
        ctx: Context of the command.
        history: The history.
        name: Name of the source.
        options: Options of the command.
    """
    from archive.errors import UsageError
    from archive.runs.imported import import_history
    from archive.runs.life_cycle import check_objective, study_name

    objective, direction = check_objective(options["minimise"], options["maximise"])
    if not history.runs:
        raise UsageError(f"{name} has no run to import: {'; '.join(history.left_out)[:300]}")

    with open_archive(ctx) as archive:
        imported = import_history(
            archive,
            options["study"] or study_name(history.name or name),
            history,
            objective=objective,
            direction=direction,
            task=options["task"],
            provenance={"source": f"{ctx.info_name} {name}", **provenance_of(options)},
        )

    if options["as_json"]:
        print_json(imported)
        return

    show_import(imported)
    for text in imported.left_out:
        print_message(f"left out: {text}")
