"""Gain of warm starts: `python -m tests.benchmarks transfer`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import click

from archive import __version__, runtime
from archive.benchmarks.measurement import significant
from archive.cli.bench.command import bench_settings, finish
from archive.cli.names import AGENT, TASK
from archive.cli.parameters import Count
from archive.cli.render import json_option, print_json, print_line, print_table
from archive.errors import SearchError, UsageError
from archive.searches.comparison.plan import table_problem

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.searches.comparison.plan import Problem, StudyJob
    from archive.settings import Settings
    from tests.benchmarks.transfer.plan import TransferPlan
    from tests.benchmarks.transfer.rows import Row
    from tests.benchmarks.transfer.scenarios import Scenario


@click.command(short_help="Measure warm starts beside cold starts.")
@click.option(
    "--agent", type=AGENT, default="portfolio", metavar="AGENT[:NAME=VALUE,…]", help="Search agent."
)
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="NAME",
    show_default="all scenarios",
    help="Scenario: what the source studies hold, such as searched; of the matrix, source, "
    "evaluations and alteration: "
    "transnas-scene-200-reversed. May be repeated.",
)
@click.option(
    "--matrix",
    "whole_matrix",
    is_flag=True,
    help="Every ordered pair of tasks that share a space instead: 50 and 200 evaluations of the "
    "source, its values "
    "reversed and shuffled, without noise and with it.",
)
@click.option("--quick", is_flag=True, help="A part of the matrix: two tasks, no noise, two seeds.")
@click.option(
    "--task",
    "task_names",
    multiple=True,
    type=TASK,
    metavar="TASK",
    help="Task of a matrix of your own: tabular ones that share a space, such as two columns of "
    "a table, "
    "table:PATH#COLUMN, or with noise TASK~SD. At least two.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TASK",
    show_default="all of them",
    help="Row of the matrix: the task of the searches, as TASK~SD with noise, or one of --task. "
    "May be repeated.",
)
@click.option(
    "--seeds",
    type=Count(1),
    show_default="20; of --matrix 5, of --quick 2",
    help="Number of studies for each scenario.",
)
@click.option(
    "--budget",
    type=Count(1),
    show_default="60; of --matrix 40, of --quick 20",
    help="Maximum number of evaluations of a study.",
)
@click.option(
    "--shrink",
    type=Count(1),
    default=1,
    help="Divide the sizes of the source studies by N, for a quick look.",
)
@click.option(
    "--controls",
    type=Count(0),
    default=1,
    help="Repetitions of each cold start with the same first networks and other ones after them: "
    "their rows show how "
    "far behind a search is by chance.",
)
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
def transfer(
    ctx: click.Context,
    agent: str,
    scenarios: tuple[str, ...],
    whole_matrix: bool,
    quick: bool,
    task_names: tuple[str, ...],
    targets: tuple[str, ...],
    seeds: int | None,
    budget: int | None,
    shrink: int,
    controls: int,
    run_name: str,
    processes: int | None,
    as_json: bool,
) -> None:
    """Measure warm starts: CIFAR-100 on NAS-Bench-201 after source studies of other tasks, beside
    cold starts.

    Scenarios: searched (CIFAR-10, 200 evaluations), sampled (CIFAR-10, 50 random cells),
    other-space (NAS-Bench-101, 1,000 random cells), both of these; misleading ones: reversed,
    shuffled, unrelated. Every source and every search is a study, in the same archive as those of
    bench search. The same command again continues an interrupted run.

    --matrix measures whether a warm start ever hurts, on NAS-Bench-201 and TransNAS-Bench-101, or
    between the tasks of
    --task: "worst beside cold" is the largest excess of the mean regret over that of cold starts
    after ten queries or more. "errors" is the largest in standard errors of the differences, seed
    by seed, and "own errors" in standard errors of the mean regret. The same numbers in the rows
    cold-again-1, … are those of cold starts with other draws: what chance does. With noise, regret
    is that of the network that archive study best would recommend, computed after every fifth
    query.
    """
    from archive.api import connect
    from archive.searches.comparison.plan import contestant
    from tests.benchmarks.transfer.plan import TransferPlan, alter, copy_starts
    from tests.benchmarks.transfer.rows import rows
    from tests.benchmarks.transfer.scenarios import scenarios as named

    _check(whole_matrix, quick, task_names, targets)
    defaults = (2, 20) if quick else (5, 40) if whole_matrix else (20, 60)
    problem = cache(table_problem)
    plan = TransferPlan(
        contestant=contestant(agent),
        problem=problem,
        scenarios=_matrix(quick, task_names, targets, scenarios, problem)
        if whole_matrix
        else named(scenarios),
        seeds=seeds or defaults[0],
        budget=budget or defaults[1],
        run=f"{run_name}-transfer" + (f"-{shrink}" if shrink > 1 else ""),
        shrink=shrink,
        controls=controls,
    )
    settings = bench_settings(ctx)
    most = processes or runtime.count_cores()
    with connect(settings) as archive:
        _search(archive, settings, plan.sources(), most, "sources")
        alter(archive, plan)
        _search(archive, settings, plan.targets(), most, "searches")
        copy_starts(archive, plan)
        _search(
            archive, settings, [control for control, _ in plan.control_pairs()], most, "controls"
        )
        results = rows(archive, plan)

    _show(plan, results, as_json)


def _check(whole_matrix: bool, quick: bool, tasks: Sequence[str], targets: Sequence[str]) -> None:
    if quick and not whole_matrix:
        raise UsageError("--quick is a part of the matrix: write --matrix --quick")

    if tasks and not whole_matrix:
        raise UsageError(f"--task is a task of a matrix: write --matrix --task {tasks[0]}")

    if tasks and quick:
        raise UsageError("--quick has tasks of its own: with --task, write --seeds and --budget")

    if targets and not whole_matrix:
        raise UsageError(f"--target is a row of the matrix: write --matrix --target {targets[0]}")


def _matrix(
    quick: bool,
    tasks: Sequence[str],
    targets: Sequence[str],
    scenarios: Sequence[str],
    problem: Callable[[str], Problem],
) -> list[Scenario]:
    from tests.benchmarks.transfer.matrix import between, matrix

    if tasks:
        return between({name: problem(name) for name in tasks}, targets, scenarios)

    return matrix(quick, targets, scenarios)


def _search(
    archive: Archive, settings: Settings, jobs: Sequence[StudyJob], processes: int, what: str
) -> None:
    """Run the unfinished searches.

    Raises:
        SearchError: A search failed.
    """
    from archive.searches.comparison.regret import traces

    failed = finish(settings, jobs, traces(archive, jobs), processes, what)
    if failed:
        study, reason = next(iter(failed.items()))
        raise SearchError(
            f"{len(failed)} of {len(jobs)} {what} failed; the first: {study}: {reason}"
        )


def _show(plan: TransferPlan, results: Sequence[Row], as_json: bool) -> None:
    if as_json:
        numbers = {
            "agent": plan.contestant.name,
            "run": plan.run,
            "seeds": plan.seeds,
            "budget": plan.budget,
        }
        print_json({**numbers, "scenarios": [row.as_dict() for row in results]})
        return

    from tests.benchmarks.transfer.matrix import labels

    names = labels({task: plan.problem(task) for task in plan.tasks})
    queries = list(results[0].regret)
    columns = ["task", "start", "seeds", "queries to best", "slowest", *map(str, queries)]
    table = [
        [
            *(names[row.target], row.scenario, row.seeds, row.to_best, row.slowest),
            *(significant(row.regret[at]) for at in queries),
            None if row.excess is None else significant(row.excess),
            *(
                None if errors is None else f"{errors:.1f}"
                for errors in (row.errors, row.own_errors)
            ),
            row.coupling,
        ]
        for row in results
    ]
    title = f"warm starts of {plan.contestant.name}: regret after queries, at most {plan.budget}"
    print_table(
        [*columns, "worst beside cold", "errors", "own errors", "coupling"], table, title=title
    )
    print_line()
