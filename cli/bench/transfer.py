"""`archive bench transfer`: gain of warm starts; parses and renders only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import click

from archive import __version__, cpu_count
from archive.cli.bench.running import bench_settings, finish, table_problem
from archive.cli.names import AGENT
from archive.cli.parameters import Count
from archive.cli.render import json_option, print_json, print_line, print_table
from archive.errors import SearchError

if TYPE_CHECKING:
    from archive.agents.benchmarks.search.plan import StudyJob
    from archive.agents.benchmarks.transfer import Row, TransferPlan
    from archive.api import Archive
    from archive.settings import Settings


@click.command(short_help="Measure warm starts beside cold starts.")
@click.option("--agent", type=AGENT, default="portfolio", metavar="AGENT[:NAME=VALUE,…]", help="Search agent.")
@click.option(
    "--scenario",
    "scenarios",
    multiple=True,
    metavar="NAME",
    show_default="all scenarios",
    help="Scenario: what the source studies hold. May be repeated.",
)
@click.option("--seeds", type=Count(1), default=20, help="Number of studies for each scenario.")
@click.option("--budget", type=Count(1), default=60, help="Maximum number of evaluations of a study.")
@click.option(
    "--shrink",
    type=Count(1),
    default=1,
    help="Divide the sizes of the source studies by N, for a quick look.",
)
@click.option("--run", "run_name", metavar="NAME", default=__version__, help="Name of the run; a new name starts over.")
@click.option("--processes", type=Count(1), show_default="one per core", help="Number of searches at a time.")
@json_option
@click.pass_context
def transfer(
    ctx: click.Context,
    agent: str,
    scenarios: tuple[str, ...],
    seeds: int,
    budget: int,
    shrink: int,
    run_name: str,
    processes: int | None,
    as_json: bool,
) -> None:
    """Measure warm starts: CIFAR-100 on NAS-Bench-201 after source studies of other tasks, beside cold starts.

    Scenarios: searched (CIFAR-10, 200 evaluations), sampled (CIFAR-10, 50 random cells), other-space (NAS-Bench-101,
    1,000 random cells), both of these; misleading ones: reversed, shuffled, unrelated. Every source and every search is
    a study, in the same archive as those of bench search. The same command again continues an interrupted run.
    """
    from archive.agents.benchmarks.search.contestants import contestant
    from archive.agents.benchmarks.transfer import COLD, SCENARIOS, TransferPlan, alter, rows
    from archive.api import connect

    plan = TransferPlan(
        contestant=contestant(agent),
        problem=cache(table_problem),
        scenarios=list(dict.fromkeys(scenarios)) or list(SCENARIOS),
        seeds=seeds,
        budget=budget,
        run=f"{run_name}-transfer" + (f"-{shrink}" if shrink > 1 else ""),
        shrink=shrink,
    )
    settings, most = bench_settings(ctx), processes or cpu_count.available()
    with connect(settings) as archive:
        _search(archive, settings, plan.sources(), most, "sources")
        alter(archive, plan)
        # Seed by seed: an interrupted run has compared all scenarios on the seeds that it has finished.
        of_scenarios = [plan.targets(scenario) for scenario in (COLD, *plan.scenarios)]
        targets = [job for of_seed in zip(*of_scenarios, strict=True) for job in of_seed]
        _search(archive, settings, targets, most, "searches")
        results = rows(archive, plan)
    _show(plan, results, as_json)


def _search(archive: Archive, settings: Settings, jobs: Sequence[StudyJob], processes: int, what: str) -> None:
    """Run the unfinished searches.

    Raises:
        SearchError: A search failed.
    """
    from archive.agents.benchmarks.search.regret import traces

    failed = finish(settings, jobs, traces(archive, jobs), processes, what)
    if failed:
        study, reason = next(iter(failed.items()))
        raise SearchError(f"{len(failed)} of {len(jobs)} {what} failed; the first: {study}: {reason}")


def _show(plan: TransferPlan, results: Sequence[Row], as_json: bool) -> None:
    if as_json:
        numbers = {"agent": plan.contestant.name, "run": plan.run, "seeds": plan.seeds, "budget": plan.budget}
        print_json({**numbers, "scenarios": [row.as_dict() for row in results]})
        return
    queries = list(results[0].regret)
    columns = ["start", "seeds", "queries to best", "slowest", *map(str, queries), "worst beside cold", "coupling"]
    table = [
        [
            *(row.scenario, row.seeds, row.to_best, row.slowest),
            *(f"{row.regret[at]:.2f}" for at in queries),
            f"{row.excess:.2f}",
            row.coupling,
        ]
        for row in results
    ]
    title = f"nb201-cifar100 by {plan.contestant.name}: regret (accuracy points) after queries, at most {plan.budget}"
    print_table(columns, table, title=title)
    print_line()
