"""Searches for several objectives, or under constraints:

`python -m tests.benchmarks objectives`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.benchmarks.measurement import significant
from archive.cli.names import AGENT, TASK
from archive.cli.parameters import Count
from archive.cli.render import json_option, print_json, print_message, print_table
from archive.errors import UsageError
from archive.searches.comparison.plan import table_problem

if TYPE_CHECKING:
    from tests.benchmarks.searches.costed_table import CostedTable
    from tests.benchmarks.searches.feasible import FeasibleRow
    from tests.benchmarks.searches.fronts import FrontRow

AGENTS = ("portfolio", "optuna-gp:candidates=members", "optuna-tpe", "nsga2", "random")
"""Default contestants."""


@click.command(short_help="Compare agents with several objectives or constraints.")
@click.option(
    "--agent",
    "agent_names",
    multiple=True,
    type=AGENT,
    metavar="AGENT[:NAME=VALUE,…]",
    default=AGENTS,
    show_default=", ".join(AGENTS),
    help="Agent, with settings that differ from its defaults. May be repeated.",
)
@click.option(
    "--task",
    "task_name",
    type=TASK,
    default="nb201-cifar10",
    show_default=True,
    help="Tabular task.",
)
@click.option(
    "--cost",
    "costs",
    multiple=True,
    metavar="NAME",
    help="Cost of the table to minimise. May be repeated.",
)
@click.option(
    "--constraint",
    "constraints",
    multiple=True,
    metavar="NAME<=NUMBER|NAME@SHARE",
    help="Bound on a cost of the table; NAME@SHARE is one that this share of the networks with that cost meets. May be "
    "repeated.",
)
@click.option(
    "--measured",
    multiple=True,
    metavar="NAME",
    help="Cost that agents learn from the results. May be repeated.",
)
@click.option(
    "--seeds",
    type=Count(1),
    default=5,
    show_default=True,
    help="Number of searches for each agent.",
)
@click.option(
    "--budget",
    type=Count(1),
    metavar="N",
    show_default="100; with --constraint 200",
    help="Evaluations of a search.",
)
@json_option
def objectives(
    agent_names: tuple[str, ...],
    task_name: str,
    costs: tuple[str, ...],
    constraints: tuple[str, ...],
    measured: tuple[str, ...],
    seeds: int,
    budget: int | None,
    as_json: bool,
) -> None:
    """Compare searches of a table for several objectives, or under constraints.

    With --cost: the hypervolume of the value and the costs after 20, 40, 50, 60 and 100
    evaluations, as a share of that of the whole table. With --constraint: the number of evaluations
    until the best network that meets the constraints.

    The table answers in this process, without an archive; agents see the histories of `archive
    search` with one proposal at a time, and choose their own initial design. Seconds are processor
    time of a search.
    """
    if bool(costs) == bool(constraints):
        raise UsageError(
            "name either the costs to minimise with --cost, or the bounds with --constraint"
        )

    if measured and not constraints:
        raise UsageError("--measured names costs of constraints: it needs --constraint")

    table = _table(task_name)
    if costs:
        _fronts(table, agent_names, costs, seeds, budget or 100, as_json)
    else:
        _feasible(table, agent_names, constraints, measured, seeds, budget or 200, as_json)


def _table(name: str) -> CostedTable:
    from archive.trainer.tasks import known_costs, registry
    from tests.benchmarks.searches.costed_table import CostedTable

    problem = table_problem(name)
    return CostedTable(
        problem, problem.search_space(), known_costs.of_task(registry.get(name), problem.protocol)
    )


def _fronts(
    table: CostedTable,
    names: tuple[str, ...],
    costs: tuple[str, ...],
    seeds: int,
    budget: int,
    as_json: bool,
) -> None:
    from archive.searches.comparison.plan import contestant
    from tests.benchmarks.searches.fronts import FrontComparison

    comparison = FrontComparison(table, costs)
    rows: list[FrontRow] = []
    for one in [contestant(name) for name in dict.fromkeys(names)]:
        rows.append(comparison.row(one, seeds, budget))
        print_message(f"{one.name}: {rows[-1].seconds:.1f} s a search")

    networks = len(comparison.scores)
    front = comparison.front
    if as_json:
        numbers = {
            "task": table.problem.label,
            "costs": list(costs),
            "seeds": seeds,
            "budget": budget,
        }
        print_json(
            {
                **numbers,
                "networks": networks,
                "front": front,
                "rows": [row.as_dict() for row in rows],
            }
        )
        return

    counts = list(rows[0].shares)
    cells = [[row.agent, *(_share(row, count) for count in counts), row.seconds] for row in rows]
    title = (
        f"{table.problem.label}: hypervolume of {table.problem.objective} and {' and '.join(costs)} in percent of that "
        f"of the table ({front} of {networks:,} networks on the front), median and smallest of {seeds} searches"
    )
    print_table(["agent", *map(str, counts), "s"], cells, title=title)


def _feasible(
    table: CostedTable,
    names: tuple[str, ...],
    constraints: tuple[str, ...],
    measured: tuple[str, ...],
    seeds: int,
    budget: int,
    as_json: bool,
) -> None:
    from archive.searches.comparison.plan import contestant
    from tests.benchmarks.searches.feasible import FeasibleComparison

    comparison = FeasibleComparison(table, constraints, measured)
    rows: list[FeasibleRow] = []
    for one in [contestant(name) for name in dict.fromkeys(names)]:
        rows.append(comparison.row(one, seeds, budget))
        print_message(f"{one.name}: {rows[-1].seconds:.1f} s a search")

    networks = len(table.members)
    limits = [str(one) for one in comparison.constraints.constraints]
    if as_json:
        numbers = {
            "task": table.problem.label,
            "constraints": limits,
            "measured": list(measured),
            "seeds": seeds,
        }
        figures = {"budget": budget, "networks": networks, "feasible": comparison.feasible}
        print_json({**numbers, **figures, "rows": [row.as_dict() for row in rows]})
        return

    cells = [
        [
            row.agent,
            row.median,
            ", ".join(_shown(count, budget) for count in row.queries),
            row.infeasible,
            row.seconds,
        ]
        for row in rows
    ]
    title = (
        f"{table.problem.label}: evaluations until the best of {comparison.feasible:,} of {networks:,} networks with "
        f"{' and '.join(limits)}"
    )
    print_table(["agent", "median", "searches", "infeasible", "s"], cells, title=title)


def _share(row: FrontRow, count: int) -> str:
    """Return median and smallest hypervolume after so many evaluations, in percent of the
    table's.
    """
    median = 100.0 * row.median(count)
    left = 100.0 - median
    return f"{significant(median, left)} ({significant(100.0 * min(row.shares[count]), left)})"


def _shown(count: int | None, budget: int) -> str:
    return f"{budget}+" if count is None else str(count)
