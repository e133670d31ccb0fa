"""`archive bench first`: what the first command finds, over several seeds; parses and renders only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from archive import __version__, cpu_count
from archive.cli.bench.running import bench_settings, finish
from archive.cli.render import json_option, print_json, print_line, print_table
from archive.cli.search.request import AGENT, Given, asked
from archive.errors import SearchError, UsageError

if TYPE_CHECKING:
    from archive.agents.benchmarks.gains import SeedGain
    from archive.agents.benchmarks.search.plan import StudyJob
    from archive.agents.benchmarks.search.regret import Trace
    from archive.api import Archive
    from archive.store.records import Study


@click.command()
@click.option(
    "--agent",
    "agent_name",
    default=AGENT,
    show_default=True,
    metavar="AGENT[:NAME=VALUE,…]",
    help="Agent that searches.",
)
@click.option("--task", "task_name", help="Task that networks are trained on [that of archive search].")
@click.option("--protocol", "protocol_name", help="Training protocol [the task's first].")
@click.option("--space", "space_name", help="Search space [the task's first].")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Searches, with the seeds 0, 1, …")
@click.option("--budget", type=click.IntRange(1), default=20, show_default=True, help="Evaluations of a search.")
@click.option(
    "--run", "run_name", default=__version__, show_default=True, help="Name of the run; a new name starts over."
)
@click.option("--processes", type=click.IntRange(1), help="Searches at a time [one a core].")
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

    Networks are trained on the CPU, with one thread each. Every search is a study of an archive, in the folder bench of
    the archive's home, or in the database of --db. The same command again continues, and reads what is finished.
    """
    from archive.agents.benchmarks import gains
    from archive.agents.benchmarks.search.contestants import contestant
    from archive.agents.benchmarks.search.regret import traces
    from archive.api import connect
    from archive.trainer.benchmarks.training import check, trained

    who = contestant(agent_name)
    study = asked(Given(who.members[0].kind, task_name, protocol_name, space_name)).study
    check(study.task, study.protocol)
    answer = partial(trained, task=study.task, protocol=study.protocol)
    jobs = gains.jobs(who, study, answer, seeds=seeds, budget=budget, run=run_name)
    settings, most = bench_settings(ctx), processes or cpu_count.available()
    with connect(settings) as archive:
        found = traces(archive, jobs)
        _check_same_agents(archive, jobs, found)
        failed = finish(settings, jobs, found, most, f"searches of {budget} evaluations")
        rows = gains.rows(archive, [job for job in jobs if job.study.name not in failed])
    _show(study, agent_name, budget, rows, as_json)
    if failed:
        name, reason = next(iter(failed.items()))
        raise SearchError(f"{len(failed)} of {len(jobs)} searches failed; the first: {name}: {reason}")
    if not rows:
        raise SearchError(f"no search of {agent_name} tells what it gained: the agent has no initial design")


def _check_same_agents(archive: Archive, jobs: Sequence[StudyJob], found: Sequence[Trace]) -> None:
    """Refuse to continue studies of an agent with other settings, or of another release."""
    from archive.agents.benchmarks.search.run import register

    known = {register(archive, agent) for agent in jobs[0].contestant.agents(jobs[0].problem.search_space())}
    for job, trace in zip(jobs, found, strict=True):
        if trace.agents - known:
            raise UsageError(
                f"the run {job.run!r} has searches of {job.contestant.name} with other settings or of another release: "
                "name another run with --run"
            )


def _show(study: Study, agent: str, budget: int, rows: Sequence[SeedGain], as_json: bool) -> None:
    from archive.agents.benchmarks.gains import medians

    middle = medians(rows) if rows else None
    if as_json:
        about = {"agent": agent, "task": study.task, "protocol": study.protocol, "space": study.space, "budget": budget}
        summary = None if middle is None else middle.as_dict()
        print_json({**about, "seeds": [row.as_dict() for row in rows], "medians": summary})
        return
    if middle is None:
        return
    columns = ["seed", "initial networks", "their best", "best of all", "gain", "found at", "training seconds"]
    table = [
        [
            *(row.seed, row.initial, f"{row.initial_best:.4g}", f"{row.best:.4g}", f"{row.gain:.3g}"),
            *(f"{row.found_at} of {row.evaluations}", round(row.seconds)),
        ]
        for row in rows
    ]
    table.append(["median", "", f"{middle.initial_best:.4g}", f"{middle.best:.4g}", f"{middle.gain:.3g}", "", ""])
    print_table(columns, table, title=f"{study.protocol} on {study.space} by {agent}: {study.objective}")
    print_line(f"{middle.better} of {middle.seeds} searches found a better network than all initial ones")
