"""What the first command finds, over several seeds: `python -m tests.benchmarks first`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from archive import __version__, runtime
from archive.agents.registry import DEFAULT as DEFAULT_AGENT
from archive.benchmarks.measurement import significant
from archive.cli.bench.command import bench_settings, finish
from archive.cli.names import AGENT, PROTOCOL, SPACE, TASK
from archive.cli.parameters import Count
from archive.cli.render import json_option, print_json, print_line, print_table
from archive.errors import SearchError, UsageError
from archive.searches.request import SearchOptions, request_of

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.searches.comparison.plan import StudyJob
    from archive.searches.comparison.regret import Trace
    from archive.store.records import Study
    from tests.benchmarks.searches.gains import Medians, SeedGain


@click.command(short_help="Measure the first command over several seeds.")
@click.option(
    "--agent",
    "agent_name",
    type=AGENT,
    default=DEFAULT_AGENT,
    metavar="AGENT[:NAME=VALUE,…]",
    help="Agent that searches.",
)
@click.option(
    "--task",
    "task_name",
    type=TASK,
    show_default="that of archive search",
    help="Task (archive tasks).",
)
@click.option(
    "--protocol",
    "protocol_name",
    type=PROTOCOL,
    show_default="the task's first",
    help="Training protocol of the task (archive protocols).",
)
@click.option(
    "--space",
    "space_name",
    type=SPACE,
    show_default="the task's first",
    help="Search space (archive spaces).",
)
@click.option(
    "--seeds", type=Count(1), default=5, help="Number of searches, with the seeds 0, 1, …"
)
@click.option("--budget", type=Count(1), default=20, help="Evaluations of a search.")
@click.option(
    "--run",
    "run_name",
    metavar="NAME",
    default=__version__,
    help="Name of the run; a new name starts over.",
)
@click.option(
    "--processes", type=Count(1), show_default="one per core", help="Number of searches at a time."
)
@json_option
@click.pass_context
def first(
    ctx: click.Context,
    agent_name: str,
    task_name: str | None,
    protocol_name: str | None,
    space_name: str | None,
    seeds: int,
    budget: int,
    run_name: str,
    processes: int | None,
    as_json: bool,
) -> None:
    """Measure the first command: best of the initial networks and best of all, for each seed.

    Networks are trained on the CPU, with one thread each. Searches are studies of a separate
    archive below the home folder, or of the database of --db. The same command again continues an
    interrupted run, and reuses finished searches.
    """
    from archive.api import connect
    from archive.searches.comparison.plan import contestant
    from archive.searches.comparison.regret import traces
    from tests.benchmarks.searches import gains
    from tests.benchmarks.searches.training import check, trained

    who = contestant(agent_name)
    study = request_of(
        SearchOptions(who.members[0].kind, task_name, protocol_name, space_name)
    ).study
    check(study.task, study.protocol)
    answer = partial(trained, task=study.task, protocol=study.protocol)
    jobs = gains.jobs(who, study, answer, seeds=seeds, budget=budget, run=run_name)
    settings = bench_settings(ctx)
    most = processes or runtime.count_cores()
    with connect(settings) as archive:
        recorded = traces(archive, jobs)
        _check_same_agents(archive, jobs, recorded)
        failed = finish(settings, jobs, recorded, most, f"searches of {budget} evaluations")
        rows = gains.rows(archive, [job for job in jobs if job.study.name not in failed])

    _show(study, agent_name, budget, rows, as_json)
    if failed:
        name, reason = next(iter(failed.items()))
        raise SearchError(
            f"{len(failed)} of {len(jobs)} searches failed; the first: {name}: {reason}"
        )

    if not rows:
        raise SearchError(f"no search of {agent_name} has a gain: the agent has no initial design")


def _check_same_agents(
    archive: Archive, jobs: Sequence[StudyJob], recorded: Sequence[Trace]
) -> None:
    """Refuse to continue studies of an agent with other settings, or of another release."""
    from archive.searches.comparison.run import register

    known = {
        register(archive, agent)
        for agent in jobs[0].contestant.agents(jobs[0].problem.search_space())
    }
    for job, trace in zip(jobs, recorded, strict=True):
        if trace.agents - known:
            raise UsageError(
                f"the run {job.run!r} has searches of {job.contestant.name} with other settings "
                "or of another release: "
                "name another run with --run"
            )


def _show(study: Study, agent: str, budget: int, rows: Sequence[SeedGain], as_json: bool) -> None:
    from tests.benchmarks.searches.gains import medians

    middle = medians(rows) if rows else None
    if as_json:
        about = {
            "agent": agent,
            "task": study.task,
            "protocol": study.protocol,
            "space": study.space,
            "budget": budget,
        }
        summary = None if middle is None else middle.as_dict()
        print_json({**about, "seeds": [row.as_dict() for row in rows], "medians": summary})
        return

    if middle is None:
        return

    columns = [
        "seed",
        "initial networks",
        "their best",
        "best of all",
        "gain",
        "found at",
        "training seconds",
    ]
    table: list[list[Any]] = [
        [
            row.seed,
            row.initial,
            *_values(row),
            f"{row.found_at} of {row.evaluations}",
            round(row.seconds),
        ]
        for row in rows
    ]
    table.append(["median", "", *_values(middle), "", ""])
    print_table(
        columns, table, title=f"{study.protocol} on {study.space} by {agent}: {study.objective}"
    )
    print_line(
        f"{middle.better} of {middle.seeds} searches found a better network than all initial ones"
    )


def _values(row: SeedGain | Medians) -> list[str]:
    """Return the best initial value, the best value, and the gain, which is their difference."""
    return [
        significant(row.initial_best, row.gain),
        significant(row.best, row.gain),
        significant(row.gain),
    ]
