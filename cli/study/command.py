"""`archive study`: list, show and delete studies; each of its other commands has a module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from archive.cli.exit_codes import ExitCode
from archive.cli.groups import CommandGroup
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
from archive.cli.study import best, export, log, plot, watch
from archive.cli.study.items import proposal_item, rungs_of, study_item
from archive.cli.study.pareto import print_pareto
from archive.cli.study.recipe_versions import recipe_versions, several
from archive.errors import UsageError
from archive.searches.results import nearest_item, pareto_item, unmet
from archive.store.registered_agents import agent_names
from archive.store.studies.budget import described as described_budget
from archive.values import counted

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.queue.successive_halving import Rungs
    from archive.store.snapshots import ProposalView
    from archive.store.studies.deletion import Deletion

SHOWN = 20
"""Number of the latest proposals that `show` lists beside the best one."""
SOURCES = ("study", "task", "same_task", "evaluations", "proposals", "coupling", "best_rank")
"""Columns of the table of source studies (`archive.agents.transfer.report`)."""


@click.group(cls=CommandGroup)
def study() -> None:
    """List, show, watch, plot, export and delete studies; follow their logs."""


@study.command("list")
@json_option
@click.pass_context
def list_studies(ctx: click.Context, as_json: bool) -> None:
    """List the studies, oldest first.

    Complete are results of whole trainings, pruned those of trainings that paused at a rung; both
    count toward the budget.
    """
    with open_archive(ctx) as archive:
        summaries = archive.studies.list()

    rows = [
        study_item(summary.study, summary.counts, summary.best, summary.agents)
        for summary in summaries
    ]
    if as_json:
        print_json({"studies": rows})
    elif rows:
        # Partial results of studies with rungs count toward the budget.
        pruned = ["pruned"] if any(row["counts"]["pruned"] for row in rows) else []
        columns = (
            "study",
            "task",
            "space",
            "objective",
            "complete",
            *pruned,
            "failed",
            "budget",
            "best",
        )
        shown = [
            {**row, **row["counts"], "budget": described_budget(row["budget"])} for row in rows
        ]
        print_table(columns, [[row[column] for column in columns] for row in shown])
    else:
        print_message("no study yet; start one with: archive search --agent nasbot")


@study.command()
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help=f"Show all proposals, not only the best one and the latest {SHOWN}.",
)
@json_option
@click.pass_context
def show(ctx: click.Context, name: str, every: bool, as_json: bool) -> None:
    """Show a study: settings, source studies, proposals, incumbent.

    The JSON has all proposals.

    With source studies of other tasks, the column coupling has the correlation of the task with
    each of them, in [-1, 1], as the agent estimated it for the proposal. It is empty before the
    first estimate.
    """
    from archive.store.metric_units import units_of

    with open_archive(ctx) as archive:
        snapshot = archive.studies.snapshot(name)
        sources = _contributions(archive, name)
        versions = recipe_versions(archive, snapshot.study)

    stored = snapshot.study
    best = snapshot.incumbent
    agents = agent_names(stored, (view.agent for view in snapshot.proposals))
    described = study_item(stored, snapshot.counts, None if best is None else best.value, agents)
    described["warm_started_from"] = [row["study"] for row in sources]
    proposals = [proposal_item(stored, view) for view in snapshot.proposals]
    pareto = pareto_item(snapshot)
    if as_json:
        for row in sources:
            row["couplings"] = [
                {"number": at, "coupling": rho} for at, rho in row["couplings"].items()
            ]

        nearest = nearest_item(snapshot)
        about = {
            "sources": sources,
            "incumbent": best and best.id,
            "nearest": nearest,
            "pareto": pareto,
        }
        print_json({**described, **about, "recipe_versions": versions, "proposals": proposals})
        return

    rungs = rungs_of(stored)
    counts = {state: count for state, count in described["counts"].items() if count}
    described["agent"] = ", ".join(described.pop("agents")) or None
    described["budget"] = described_budget(stored.budget)
    described["objectives"] = ", ".join(map(str, stored.objectives)) if stored.further else None
    described["constraints"] = ", ".join(map(str, stored.constraints)) or None
    described["unit"] = units_of(stored)
    fields = {
        **described,
        "counts": counts,
        **({} if rungs is None else {"rungs": rungs.describe()}),
    }
    print_fields(
        {key: value for key, value in fields.items() if value is not None and key != "best"}, 18
    )
    if best is not None:
        shown = f" {best.architecture_key} (#{best.number}), value {best.value:.4g}"
        print_line((f"{'incumbent':<18}", "bold"), shown, wrap=True)
    elif (line := unmet(snapshot)) is not None:
        print_line(line, wrap=True)

    if (line := several(versions)) is not None:
        print_message((line, "yellow"), wrap=True)

    if pareto is not None:
        print_pareto(pareto)

    if sources:
        print_table(
            SOURCES,
            [[row[column] for column in SOURCES] for row in sources],
            title="warm-started from",
        )

    listed = proposals if every else _best_and_latest(proposals, best)
    _print_proposals(
        [{**row, "coupling": _coupling(sources, row["number"])} for row in listed], rungs
    )
    if left_out := len(proposals) - len(listed):
        print_message(f"left out: {counted(left_out, 'earlier proposal')}; --all shows all")


def _contributions(archive: Archive, name: str) -> list[dict[str, Any]]:
    """Return the contributions of the sources of a study; without a source, nothing of the agents
    is imported.
    """
    if not archive.studies.sources(name):
        return []

    from archive.agents.transfer.report import contributed

    return [row._asdict() for row in contributed(archive, name)]


def _best_and_latest(
    proposals: list[dict[str, Any]], best: ProposalView | None
) -> list[dict[str, Any]]:
    """Return the incumbent and the latest proposals, by number: drawing thousands takes longer than
    all the rest.
    """
    earlier = proposals[:-SHOWN]
    latest = proposals[-SHOWN:]
    return [row for row in earlier if best is not None and row["proposal"] == best.id] + latest


def _coupling(sources: list[dict[str, Any]], number: int) -> str | None:
    """Return the estimated correlations with the sources at a proposal, as text;

    None where there is no estimate.
    """
    known = {
        row["study"]: row["couplings"][number] for row in sources if number in row["couplings"]
    }
    if len(sources) == 1:
        return next((f"{rho:.2f}" for rho in known.values()), None)

    return ", ".join(f"{study} {rho:.2f}" for study, rho in known.items()) or None


def _print_proposals(proposals: list[dict[str, Any]], rungs: Rungs | None) -> None:
    about = ("number", "state", "architecture", "acquisition", "coupling")
    shown = (*about, "rung", "epochs", "value", "seconds", "reason")
    # Columns without a value would only narrow the others.
    columns = [column for column in shown if any(row[column] is not None for row in proposals)]
    rows = [{**row, "architecture": row["architecture"][:8]} for row in proposals]
    if rungs is not None:
        rows = [{**row, "rung": f"{row['rung']}/{len(rungs.epochs)}"} for row in rows]

    print_table(columns, [[row[column] for column in columns] for row in rows])


@study.command(short_help="Delete a study with its proposals and results.")
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option("--yes", is_flag=True, help="Delete without confirmation.")
@json_option
@click.pass_context
def delete(ctx: click.Context, name: str, yes: bool, as_json: bool) -> None:
    """Delete a study with its proposals and results, after a confirmation.

    Networks, their distances and their lineage are kept, and so are the results of other studies.
    Weights that no result refers to are kept until `archive db gc`. To keep a copy: archive dump
    FILE --study STUDY.
    """
    with open_archive(ctx) as archive:
        planned = archive.studies.deletion(name)
        if not yes:
            for line in _consequences(planned):
                print_message(line)

            if not _confirmed(name):
                print_message("nothing was deleted")
                ctx.exit(ExitCode.ERROR)

        deleted = archive.studies.delete(name)

    if as_json:
        print_json(asdict(deleted))
    else:
        counts = (
            f"{counted(deleted.proposals, 'proposal')}, {counted(deleted.evaluations, 'result')}"
        )
        print_message(f"deleted {name}: {counts}")


def _confirmed(name: str) -> bool:
    """Ask whether to delete a study.

    Raises:
        UsageError: There is no terminal for an answer.
        click.Abort: The answer is Ctrl-C.
    """
    try:
        return click.confirm(printable(f"Delete the study {name}?"), err=True)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            print_message()
            raise UsageError(
                "nothing is deleted without an answer: add --yes where there is no terminal"
            ) from None

        raise


def _consequences(deletion: Deletion) -> Iterator[str]:
    """Yield the effects of the deletion of a study, one a line."""
    counts = (
        f"{counted(deletion.proposals, 'proposal')} and {counted(deletion.evaluations, 'result')}"
    )
    yield f"{deletion.study}: {counts} are deleted; networks stay."
    if deletion.running:
        yield f"{counted(deletion.running, 'proposal')} in training: the results will be refused."

    if deletion.repeated:
        yield f"{deletion.repeated} results of other studies repeat one of these; they stay."

    if deletion.learners:
        yield f"Studies that started warm from it lose its results: {', '.join(deletion.learners)}."


for each in (best.best, log.log, watch.watch, export.export, plot.plot):
    study.add_command(each)
