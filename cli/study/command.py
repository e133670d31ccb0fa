"""`archive study`: list, show and delete studies; each of its other commands has a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from archive.cli.exit_codes import ExitCode
from archive.cli.groups import CommandGroup
from archive.cli.names import STUDY
from archive.cli.render import (
    json_option,
    open_archive,
    paged,
    print_fields,
    print_json,
    print_line,
    print_message,
    print_table,
    printable,
)
from archive.cli.study.items import ProposalItem, StudyItem, proposal_item, rungs_of, study_item
from archive.errors import UsageError
from archive.searches.results import NearestItem, ParetoItem, nearest_item, pareto_item, unmet
from archive.store.metric_names import own_unit_metric
from archive.store.studies.creation import agent_names
from archive.store.studies.studies import RecipeVersion, describe_budget, recipe_versions
from archive.values import MOST_SETTINGS, counted, settings_text, short_settings

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.rungs import Rungs
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot
    from archive.store.studies.deletion import Deletion

SHOWN = 20
"""Number of the latest proposals that `show` lists beside the best one."""
SOURCES = ("study", "task", "same_task", "evaluations", "proposals", "coupling", "best_rank")
"""Columns of the table of source studies (`archive.agents.transfer.report`)."""
NAME_WIDTH = 18
"""Width of the names of a study's fields."""


@dataclass(frozen=True)
class CouplingItem:
    """Estimated correlation of a study's task with a source, at one proposal.

    Attributes:
        number: Number of the proposal in the study.
        coupling: The correlation, in [-1, 1].
    """

    number: int
    coupling: float


@dataclass(frozen=True)
class SourceItem:
    """What a source of a warm start has contributed.

    Attributes:
        study: Name of the source.
        task: Its task.
        space: Its space.
        same_task: Whether its evaluations are observations of the study.
        evaluations: How many it has with a finite value.
        proposals: How many of the study's proposals were based on it.
        coupling: Last estimate of the correlation of the study's task with its task, in [-1, 1].
        couplings: These estimates at every proposal that has one, by number.
        best_rank: The rank of its best network among what the study itself has evaluated, 1 is
            best.
    """

    study: str
    task: str
    space: str
    same_task: bool
    evaluations: int
    proposals: int
    coupling: float | None
    couplings: list[CouplingItem]
    best_rank: int | None


@dataclass(frozen=True)
class StudyList:
    """All studies.

    Attributes:
        studies: Oldest first.
    """

    studies: list[StudyItem]


@dataclass(frozen=True)
class StudyDocument(StudyItem):
    """One study with its proposals.

    Attributes:
        warm_started_from: Names of its sources.
        sources: Contribution of each source.
        incumbent: Id of the best proposal so far that meets the constraints, in the first
            objective; it has a value of each objective, if one has.
        nearest: The result of the smallest violation, where none meets the constraints; else null.
        pareto: Pareto set of several objectives; null with one, or without results.
        recipe_versions: Versions of the recipe that the results come from; empty for the default
            recipe.
        proposals: By number.
    """

    warm_started_from: list[str]
    sources: list[SourceItem]
    incumbent: str | None
    nearest: NearestItem | None
    pareto: ParetoItem | None
    recipe_versions: list[RecipeVersion]
    proposals: list[ProposalItem]


@click.group(
    cls=CommandGroup,
    modules={
        "best": "archive.cli.study.best",
        "blocks": "archive.cli.study.blocks",
        "export": "archive.cli.study.export",
        "gain": "archive.cli.study.gain",
        "importance": "archive.cli.study.importance",
        "lineage": "archive.cli.study.lineage",
        "log": "archive.cli.study.log",
        "plot": "archive.cli.study.export",
        "watch": "archive.cli.study.watch",
    },
)
def study() -> None:
    """List, show, watch, plot, export and delete studies; follow their logs."""


@study.command("list")
@json_option
@click.pass_context
def list_studies(ctx: click.Context, as_json: bool) -> None:
    """List the studies, oldest first.

    Complete counts results of whole trainings, pruned results of trainings that paused at a rung;
    both count toward the budget.
    """
    with open_archive(ctx) as archive:
        summaries = archive.studies.list()

    studies = []
    for summary in summaries:
        studies.append(study_item(summary.study, summary.counts, summary.best, summary.agents))

    if as_json:
        print_json(StudyList(studies))
    elif studies:
        _print_studies(studies)
    else:
        print_message("no study yet; start one with: archive search --agent nasbot")


def _print_studies(studies: Sequence[StudyItem]) -> None:
    # Partial results of studies with rungs count toward the budget.
    with_pruned = any(item.counts.pruned for item in studies)
    rows = []
    for item in studies:
        counts = [item.counts.complete, item.counts.failed]
        if with_pruned:
            counts.insert(1, item.counts.pruned)

        names = (item.study, item.task, item.space, item.objective)
        rows.append([*names, *counts, describe_budget(item.budget), item.best])

    counted_states = ["complete", "pruned", "failed"] if with_pruned else ["complete", "failed"]
    columns = ("study", "task", "space", "objective", *counted_states, "budget", "best")
    print_table(columns, rows)


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

    The JSON has all proposals. On a terminal, --all opens a pager where they are more than a page.

    With source studies of other tasks, the column coupling has the correlation of the task with
    each of them, in [-1, 1], as the agent estimated it for the proposal. It is empty before the
    first estimate.
    """
    with open_archive(ctx) as archive:
        snapshot = archive.studies.snapshot(name)
        sources = _sources(archive, name)
        versions = recipe_versions(archive.connection, snapshot.study)

    stored = snapshot.study
    best = snapshot.incumbent
    agents = agent_names(stored, (view.agent for view in snapshot.proposals))
    item = study_item(stored, snapshot.counts, None if best is None else best.value, agents)
    document = StudyDocument(
        **vars(item),
        warm_started_from=[source.study for source in sources],
        sources=sources,
        incumbent=None if best is None else best.id,
        nearest=nearest_item(snapshot),
        pareto=pareto_item(snapshot),
        recipe_versions=versions,
        proposals=[proposal_item(stored, view) for view in snapshot.proposals],
    )
    if as_json:
        print_json(document)
        return

    with paged() if every else nullcontext():
        _print_study(document, snapshot, whole=every)


def _print_study(document: StudyDocument, snapshot: Snapshot, *, whole: bool) -> None:
    """Write a study as fields and tables; all of its proposals if `whole`."""
    stored = snapshot.study
    best = snapshot.incumbent
    rungs = rungs_of(stored)
    fields = _fields(document, stored, rungs)
    if best is not None:
        fields["incumbent"] = f"{best.architecture_key} (#{best.number}), value {best.value:.4g}"
        if best.configuration:
            fields["configuration"] = settings_text(best.configuration)

    print_fields(fields, NAME_WIDTH)
    if best is None and (line := unmet(snapshot)) is not None:
        print_line(line)

    versions = document.recipe_versions
    if len(versions) > 1:
        print_message((_several_versions(versions), "yellow"))

    if document.pareto is not None:
        from archive.cli.study.best import print_pareto

        print_pareto(document.pareto)

    sources = document.sources
    if sources:
        rows = []
        for source in sources:
            rows.append([getattr(source, column) for column in SOURCES])

        print_table(SOURCES, rows, title="warm-started from")

    proposals = document.proposals
    listed = proposals if whole else _best_and_latest(proposals, best)
    _print_proposals(listed, sources, rungs, own_unit_metric(stored), whole=whole)
    if left_out := len(proposals) - len(listed):
        print_message(f"left out: {counted(left_out, 'earlier proposal')}; --all shows all")


def _sources(archive: Archive, name: str) -> list[SourceItem]:
    """Return the contributions of a study's sources; without a source, no agent is imported."""
    if not archive.studies.sources(name):
        return []

    from archive.agents.transfer.report import read_contributions

    items = []
    for contribution in read_contributions(archive, name):
        values = contribution._asdict()
        couplings = values.pop("couplings").items()
        estimates = [CouplingItem(number, coupling) for number, coupling in couplings]
        items.append(SourceItem(**values, couplings=estimates))

    return items


def _fields(document: StudyDocument, stored: Study, rungs: Rungs | None) -> dict[str, object]:
    """Return the fields of a study as text; fields without a value are left out."""
    from archive.store.metric_names import units_of

    counts = {state: count for state, count in vars(document.counts).items() if count}
    fields = {
        "study": document.study,
        "task": document.task,
        "protocol": document.protocol,
        "space": document.space,
        "space_config": _settings_of_space(document.space_config),
        "objective": document.objective,
        "direction": document.direction,
        "objectives": ", ".join(map(str, stored.objectives)) if stored.further else None,
        "constraints": ", ".join(map(str, stored.constraints)) or None,
        "budget": describe_budget(document.budget),
        "seed": document.seed,
        "agent": ", ".join(document.agents) or None,
        "rungs": None if rungs is None else rungs.describe(),
        "created": document.created,
        "counts": counts,
        "warm_started_from": document.warm_started_from,
        "unit": units_of(stored),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _settings_of_space(config: Mapping[str, Any]) -> object:
    """Return the settings of a space, or a line on its parameters where there are many."""
    parameters = config.get("parameters")
    if not isinstance(parameters, list) or len(parameters) <= MOST_SETTINGS:
        return config

    constraints = counted(len(config.get("constraints") or ()), "constraint")
    return f"{counted(len(parameters), 'parameter')}, {constraints} (--json has them)"


def _several_versions(versions: Sequence[RecipeVersion]) -> str:
    """Return the sentence about results of several versions of a recipe."""
    listed = ", ".join(f"{version.version[:19]} ({version.evaluations})" for version in versions)
    total = counted(len(versions), "version")
    return (
        f"results of {total} of the recipe, which are not comparable: {listed}; give a "
        "changed recipe another name"
    )


def _best_and_latest(
    proposals: list[ProposalItem], best: ProposalView | None
) -> list[ProposalItem]:
    """Return the incumbent and the latest proposals, by number."""
    earlier = proposals[:-SHOWN]
    latest = proposals[-SHOWN:]
    if best is None:
        return latest

    return [item for item in earlier if item.proposal == best.id] + latest


def _print_proposals(
    proposals: Sequence[ProposalItem],
    sources: Sequence[SourceItem],
    rungs: Rungs | None,
    own_unit: str | None,
    *,
    whole: bool,
) -> None:
    couplings = {}
    for source in sources:
        couplings[source.study] = {
            estimate.number: estimate.coupling for estimate in source.couplings
        }

    settings = [item.configuration for item in proposals]
    configurations = list(map(settings_text, settings)) if whole else short_settings(settings)
    rows = []
    for item, configuration in zip(proposals, configurations, strict=True):
        row = {**vars(item), "architecture": item.architecture[:8]}
        row["configuration"] = configuration or None
        if own_unit is not None:
            row[own_unit] = item.metrics.get(own_unit)

        row["coupling"] = _coupling(couplings, item.number)
        if rungs is not None:
            row["rung"] = f"{item.rung}/{len(rungs.epochs)}"

        rows.append(row)

    names = ("number", "state", "architecture", "configuration", "acquisition", "coupling")
    own_units = [] if own_unit is None else [own_unit]
    more = ("rung", "epochs", "value", *own_units, "seconds", "reason")
    # Columns without a value would only narrow the others.
    columns = []
    for name in (*names, *more):
        if any(row[name] is not None for row in rows):
            columns.append(name)

    print_table(columns, [[row[column] for column in columns] for row in rows])


def _coupling(couplings: Mapping[str, Mapping[int, float]], number: int) -> str | None:
    """Return the estimated correlations with the sources at a proposal; None without an estimate.

    Args:
        couplings: For each source, the estimates by the number of the proposal.
        number: Number of the proposal.
    """
    texts = []
    for study, estimates in couplings.items():
        if number in estimates:
            coupling = f"{estimates[number]:.2f}"
            texts.append(coupling if len(couplings) == 1 else f"{study} {coupling}")

    return ", ".join(texts) or None


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

            if not _confirm(name):
                print_message("nothing was deleted")
                ctx.exit(ExitCode.ERROR)

        deleted = archive.studies.delete(name)

    if as_json:
        print_json(deleted)
    else:
        proposals = counted(deleted.proposals, "proposal")
        print_message(f"deleted {name}: {proposals}, {counted(deleted.evaluations, 'result')}")


def _confirm(name: str) -> bool:
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
