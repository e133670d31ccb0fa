"""`archive import runs`: runs that people keep in tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from archive.cli.exchange.provenance import provenance_of, provenance_options
from archive.cli.parameters import listed
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message
from archive.values import counted


@click.command("runs", short_help="Import runs of a CSV, TSV or JSON table.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--study", metavar="NAME", show_default="the file's name", help="Study of the runs.")
@click.option("--minimise", metavar="COLUMN", help="Metric to judge runs by, smaller is better.")
@click.option("--maximise", metavar="COLUMN", help="Metric to judge runs by, larger is better.")
@click.option("--id", "identity", metavar="COLUMN", help="Id of a run.  [default: its row]")
@click.option("--parent", metavar="COLUMN", help="Id of the run that it is a change of.")
@click.option("--why", "motivation", metavar="COLUMN", help="Reason for the run.")
@click.option("--time", "started", metavar="COLUMN", help="Time of its start.")
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
@click.option("--items", metavar="KEY", help="Key of the list of runs in a JSON object.")
@click.option("--task", metavar="NAME", show_default="the study's name", help="Task of the study.")
@provenance_options
@json_option
@click.pass_context
def import_runs(ctx: click.Context, /, file: Path, as_json: bool, **options: Any) -> None:
    """Import each row of FILE as a run, with its parent and its value.

    FILE is a .csv, .tsv, .jsonl or .json, also with .gz. The same file, or a longer one, adds new
    rows only. Runs are then found by archive tried, in Cypher and on the page.

    Example: archive import runs results.tsv --minimise val_bpb --id commit --why description
    """
    from archive.errors import UsageError
    from archive.runs.imported import import_runs as add_runs
    from archive.runs.life_cycle import check_objective
    from archive.runs.table_columns import RunMapping
    from archive.runs.table_files import read_rows

    objective, direction = check_objective(options["minimise"], options["maximise"])
    if objective is None:
        raise UsageError("runs are judged by a metric: --minimise COLUMN or --maximise COLUMN")

    mapping = RunMapping(
        objective=objective,
        direction="minimise" if direction == "minimise" else "maximise",
        identity=options["identity"],
        parent=options["parent"],
        motivation=options["motivation"],
        started=options["started"],
        metrics=listed("--metrics", "column", options["metrics"]) or (),
        values=listed("--values", "column", options["values"]),
        curves=options["curves"],
    )
    rows = read_rows(file, options["items"], (mapping.identity, mapping.parent, mapping.motivation))
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

    print_fields({"study": imported.study, "runs": imported.runs, "added": imported.added}, width=8)
    if imported.without_value:
        print_message(f"failed, without {objective}: {counted(imported.without_value, 'run')}")

    if imported.without_parent:
        print_message(f"parents that are no rows: {imported.without_parent}")

    if imported.left_out:
        print_message(f"columns that are left out: {', '.join(imported.left_out[:20])}")
