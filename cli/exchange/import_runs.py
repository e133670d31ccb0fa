"""`archive import runs`: runs that people keep in tables, and what all imports of runs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from archive.cli.exchange.provenance import provenance_of, provenance_options
from archive.cli.parameters import listed
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message
from archive.values import counted

if TYPE_CHECKING:
    from archive.runs.imported import RunImport

STATUS = "status"
"""Column with the outcome of a run, unless the user names another."""

F = TypeVar("F", bound=Callable[..., Any])


def run_options(command: F) -> F:
    """Add the options that all imports of runs share, beside study and provenance."""
    options = (
        click.option(
            "--minimise", metavar="METRIC", help="Metric to judge runs by, smaller is better."
        ),
        click.option(
            "--maximise", metavar="METRIC", help="Metric to judge runs by, larger is better."
        ),
        click.option(
            "--task", metavar="NAME", show_default="the study's name", help="Task of the study."
        ),
    )
    for option in reversed(options):
        command = option(command)

    return command


@click.command("runs", short_help="Import runs of a CSV, TSV, JSON or Parquet table.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--study", metavar="NAME", show_default="the file's name", help="Study of the runs.")
@run_options
@click.option("--id", "identity", metavar="COLUMN", help="Id of a run.  [default: its row]")
@click.option("--parent", metavar="COLUMN", help="Id of the run that it is a change of.")
@click.option("--why", "motivation", metavar="COLUMN", help="Reason for the run.")
@click.option("--time", "started", metavar="COLUMN", help="Time of its start.")
@click.option(
    "--status",
    metavar="COLUMN",
    show_default="status, where there is one",
    help="Outcome in a word: crash, failed, timeout … are failures.",
)
@click.option(
    "--seed",
    metavar="COLUMN",
    show_default="seed, random_seed and the like",
    help="Seed: runs that differ in it alone are repeats.",
)
@click.option("--metrics", metavar="COLUMNS", help="Further metrics, separated by commas.")
@click.option(
    "--values",
    metavar="COLUMNS",
    show_default="all others",
    help="What the run was given, separated by commas.",
)
@click.option(
    "--curve",
    "curves",
    metavar="COLUMN",
    multiple=True,
    help="Column with a list, or the begin of columns as loss_1, loss_100. May be repeated.",
)
@click.option(
    "--graph",
    metavar="COLUMN",
    help="The network that it trained, as a graph of operations in JSON.",
)
@click.option(
    "--unordered",
    metavar="OPERATIONS",
    help="Operations of graphs whose inputs have no order, beside sums and products.",
)
@click.option("--items", metavar="KEY", help="Key of the list of runs in a JSON object.")
@provenance_options
@json_option
@click.pass_context
def import_runs(ctx: click.Context, /, file: Path, as_json: bool, **options: Any) -> None:
    """Import each row of FILE as a run, with its parent and its value.

    FILE is a .csv, .tsv, .jsonl or .json, also with .gz, or a .parquet. The same file, or a longer one, adds new
    rows only. Runs are then found by archive tried, in Cypher and on the page.

    Example: archive import runs results.tsv --minimise val_bpb --id commit --why description
    """
    from archive.errors import UsageError
    from archive.runs.history.table_columns import RunMapping
    from archive.runs.history.table_files import read_rows
    from archive.runs.imported import import_runs as add_runs
    from archive.runs.life_cycle import check_objective

    objective, direction = check_objective(options["minimise"], options["maximise"])
    if objective is None or direction is None:
        raise UsageError("runs are judged by a metric: --minimise METRIC or --maximise METRIC")

    mapping = RunMapping(
        objective=objective,
        direction=direction,
        identity=options["identity"],
        parent=options["parent"],
        motivation=options["motivation"],
        started=options["started"],
        status=options["status"],
        seed=options["seed"],
        metrics=listed("--metrics", "column", options["metrics"]) or (),
        values=listed("--values", "column", options["values"]),
        curves=options["curves"],
        graph=options["graph"],
        unordered=listed("--unordered", "operation", options["unordered"]) or (),
    )
    texts = (mapping.identity, mapping.parent, mapping.motivation, mapping.graph)
    rows = read_rows(file, options["items"], texts)
    if mapping.status is None and any(STATUS in row for row in rows):
        mapping = replace(mapping, status=STATUS)

    with open_archive(ctx) as archive:
        imported = add_runs(
            archive,
            options["study"] or file.name.partition(".")[0],
            rows,
            mapping,
            task=options["task"],
            provenance={"source": file.name, **provenance_of(options)},
        )

    if as_json:
        print_json(imported)
        return

    show_import(imported)
    if imported.left_out:
        print_message(f"columns that are left out: {', '.join(imported.left_out[:20])}")


def show_import(imported: RunImport) -> None:
    """Show an import of runs, without what it leaves out."""
    print_fields({"study": imported.study, "runs": imported.runs, "added": imported.added}, width=8)
    if imported.networks is not None:
        print_message(f"different networks: {imported.networks}")

    if imported.failed:
        print_message(f"failed: {counted(imported.failed, 'run')}")

    if imported.without_value:
        count = counted(imported.without_value, "run")
        print_message(f"failed, without {imported.objective}: {count}")

    if imported.without_parent:
        print_message(f"parents that are no runs of the study: {imported.without_parent}")
