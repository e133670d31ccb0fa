"""`archive bench transfer`: what a warm start gains; parses and renders only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import click

from archive import __version__, cpu_count
from archive.cli.bench.running import bench_settings, finish, table_problem
from archive.cli.render import json_option, print_json, print_line, print_table
from archive.errors import SearchError

if TYPE_CHECKING:
    from archive.agents.benchmarks.search.plan import StudyJob
    from archive.agents.benchmarks.transfer import Row, TransferPlan
    from archive.api import Archive
    from archive.settings import Settings


@click.command()
@click.option("--agent", default="portfolio", show_default=True, metavar="AGENT[:NAME=VALUE,…]", help="Who searches.")
@click.option("--scenario", "scenarios", multiple=True, metavar="NAME", help="Kind of source; may be repeated [all].")
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True, help="Studies of each scenario.")
@click.option("--budget", type=click.IntRange(1), default=60, show_default=True, help="Evaluations of a study at most.")
@click.option(
    "--shrink",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Divide the sizes of the sources by this, for a quick look.",
)
@click.option(
    "--run", "run_name", default=__version__, show_default=True, help="Name of the run; a new one begins anew."
)
@click.option("--processes", type=click.IntRange(1), help="Searches at a time [one a core].")
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
    """Measure warm starts: CIFAR-100 on NAS-Bench-201 after other tasks, beside cold starts.

    The sources: searched (CIFAR-10, 200 evaluations), sampled (CIFAR-10, 50 random cells), other-space (NAS-Bench-101,
    1,000 random cells), both of these; and misleading ones: reversed, shuffled, unrelated. Every source and every
    search is a study, in the same archive as those of bench search. The same command again goes on.
    """
    from archive.agents.benchmarks.search.contestants import contestant
    from archive.agents.benchmarks.transfer import COLD, SCENARIOS, TransferPlan, alter, rows
    from archive.api import connect

    plan = TransferPlan(
        who=contestant(agent),
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
        # Seed by seed: what is interrupted has compared all scenarios as far as it has come.
        of_scenarios = [plan.targets(scenario) for scenario in (COLD, *plan.scenarios)]
        targets = [job for of_seed in zip(*of_scenarios, strict=True) for job in of_seed]
        _search(archive, settings, targets, most, "searches")
        found = rows(archive, plan)
    _show(plan, found, as_json)


def _search(archive: Archive, settings: Settings, jobs: Sequence[StudyJob], processes: int, what: str) -> None:
    """Search where there is something left to search.

    Raises:
        SearchError: A search failed.
    """
    from archive.agents.benchmarks.search.regret import traces

    failed = finish(settings, jobs, traces(archive, jobs), processes, what)
    if failed:
        study, reason = next(iter(failed.items()))
        raise SearchError(f"{len(failed)} of {len(jobs)} {what} failed; the first: {study}: {reason}")


def _show(plan: TransferPlan, found: Sequence[Row], as_json: bool) -> None:
    if as_json:
        numbers = {"agent": plan.who.name, "run": plan.run, "seeds": plan.seeds, "budget": plan.budget}
        print_json({**numbers, "scenarios": [row.as_dict() for row in found]})
        return
    queries = list(found[0].regret)
    columns = ["start", "seeds", "queries to best", "slowest", *map(str, queries), "worst beside cold", "coupling"]
    table = [
        [
            *(row.scenario, row.seeds, row.to_best, row.slowest),
            *(f"{row.regret[at]:.2f}" for at in queries),
            f"{row.excess:.2f}",
            row.coupling,
        ]
        for row in found
    ]
    title = f"nb201-cifar100 by {plan.who.name}: regret (accuracy points) after queries, at most {plan.budget}"
    print_table(columns, table, title=title)
    print_line()
