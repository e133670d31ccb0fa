"""`archive study`: list, show, delete studies; follow their logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from archive.cli.names import STUDY
from archive.cli.render import (
    json_option,
    open_archive,
    print_fields,
    print_json,
    print_line,
    print_message,
    print_table,
    printable,
)
from archive.cli.study import log

if TYPE_CHECKING:
    from archive.store.study_deletion import Deletion

SOURCES = ("study", "task", "same_task", "evaluations", "proposals", "coupling", "best_rank")
"""Columns of the table of source studies (`archive.agents.transfer.report`)."""


@click.group()
def study() -> None:
    """List, show and delete studies; follow their logs."""


@study.command("list")
@json_option
@click.pass_context
def list_studies(ctx: click.Context, as_json: bool) -> None:
    """List the studies, oldest first."""
    with open_archive(ctx) as archive:
        summaries = archive.studies.list()
    rows = [
        {
            "study": summary.study.name,
            "task": summary.study.task,
            "protocol": summary.study.protocol,
            "space": summary.study.space,
            "objective": summary.study.objective,
            "budget": summary.study.budget,
            **{state.value.lower(): count for state, count in summary.counts.items()},
            "best": summary.best,
        }
        for summary in summaries
    ]
    if as_json:
        print_json(rows)
    elif rows:
        columns = ("study", "task", "space", "objective", "complete", "failed", "budget", "best")
        print_table(columns, [[row.get(column, 0) for column in columns] for row in rows])
    else:
        print_message("no study yet; start one with: archive search --agent nasbot")


@study.command()
@click.argument("name", metavar="STUDY", type=STUDY)
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show a study: settings, source studies, proposals, incumbent."""
    from archive.agents.transfer.report import contributed
    from archive.cli.search.rungs import place
    from archive.queue.successive_halving import Rungs

    with open_archive(ctx) as archive:
        snapshot = archive.studies.snapshot(name)
        sources = [row._asdict() for row in contributed(archive, name)]
    stored = snapshot.study
    rungs = Rungs.of(stored.config)
    described: dict[str, Any] = {
        "study": stored.name,
        "task": stored.task,
        "protocol": stored.protocol,
        "space": stored.space,
        "space_config": stored.space_config,
        "objective": stored.objective,
        "direction": stored.direction,
        "budget": stored.budget,
        "seed": stored.seed,
        **({} if rungs is None else {"rungs": rungs.describe()}),
        "warm_started_from": [row["study"] for row in sources],
        "counts": {state.value.lower(): count for state, count in snapshot.counts.items() if count},
    }
    proposals = [
        {
            "number": view.number,
            "state": view.state.value,
            "architecture": view.architecture_key,
            "agent": view.agent,
            "acquisition": view.acquisition,
            **({} if rungs is None else {"rung": place(stored, view)}),
            "epochs": view.epochs,
            "value": view.value,
            "seconds": view.seconds,
            "attempts": view.attempts,
            "metrics": view.metrics,
            "reason": view.reason,
        }
        for view in snapshot.proposals
    ]
    best = snapshot.incumbent
    if as_json:
        print_json({**described, "sources": sources, "incumbent": best and best.id, "proposals": proposals})
        return
    print_fields(described, 18)
    if best is not None:
        about = f" {best.architecture_key} (#{best.number}), value {best.value:.4g}"
        print_line((f"{'incumbent':<18}", "bold"), about, wrap=True)
    shown = ("number", "state", "architecture", "acquisition", "rung", "epochs", "value", "seconds", "reason")
    if sources:
        print_table(SOURCES, [[row[column] for column in SOURCES] for row in sources], title="warm-started from")
    columns = [name for name in shown if name != "rung" or rungs is not None]
    short = [{**row, "architecture": str(row["architecture"])[:8]} for row in proposals]
    print_table(columns, [[row[column] for column in columns] for row in short])


@study.command()
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option("--yes", is_flag=True, help="Delete without confirmation.")
@json_option
@click.pass_context
def delete(ctx: click.Context, name: str, yes: bool, as_json: bool) -> None:
    """Delete a study with its proposals and results, after a confirmation.

    Networks, their distances and their lineage are kept, and so are the results of other studies. Weights that no
    result refers to are kept until `archive db gc`. To keep a copy: archive dump FILE --study STUDY.
    """
    with open_archive(ctx) as archive:
        going = archive.studies.deletion(name)
        if not yes:
            for line in _consequences(going):
                print_message(line)
            click.confirm(printable(f"Delete the study {name}?"), abort=True, err=True)
        gone = archive.studies.delete(name)
    if as_json:
        print_json(asdict(gone))
    else:
        print_message(f"deleted {name}: {gone.proposals} proposals, {gone.evaluations} results")


def _consequences(going: Deletion) -> Iterator[str]:
    """Yield what the deletion of a study removes, and what stays."""
    yield f"{going.study}: {going.proposals} proposals and {going.evaluations} results are deleted; networks stay."
    if going.running:
        yield f"{going.running} proposals are in training: their results will be refused."
    if going.repeated:
        yield f"{going.repeated} results of other studies repeat one of these; they stay."
    if going.learners:
        yield f"Warm-started from it, and no longer able to learn from it: {', '.join(going.learners)}."


study.add_command(log.log)
