"""Tables and JSON of `archive bench search`, also of its suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from archive.benchmarks.measurement import mean_and_error
from archive.cli.render import print_json, print_line, print_table

if TYPE_CHECKING:
    from archive.searches.comparison.plan import ComparisonPlan
    from archive.searches.comparison.standings import ContestantResult, Regret


def show_standings(plan: ComparisonPlan, rows: Sequence[ContestantResult], as_json: bool) -> None:
    """Print the results of a comparison, each task by itself."""
    from archive.searches.comparison.standings import SearchComparison, by_problem

    problems = by_problem(rows)
    if as_json:
        firsts = {problem: standings[0] for problem, standings in problems.items()}
        items = [row.item(firsts[row.problem, row.protocol]) for row in rows]
        comparison = SearchComparison(
            run=plan.run,
            seeds=plan.seeds,
            budget=plan.budget,
            batch=plan.batch,
            starts=plan.starts,
            standings=items,
        )
        print_json(comparison)
        return

    for (problem, protocol), standings in problems.items():
        _show_problem(plan, f"{problem} ({protocol})", standings)
        if any(row.recommended for row in standings):
            _show_recommended(problem, standings)

        _show_errors(problem, standings)
        for row in standings:
            if row.shares:
                _show_shares(row)


def _show_problem(
    plan: ComparisonPlan, problem: str, standings: Sequence[ContestantResult]
) -> None:
    queries = list(map(str, standings[0].queries))
    begin = f"{plan.starts} random starts included" if plan.starts else "starts of the agent's own"
    title = (
        f"{problem}: regret ({standings[0].unit}) after queries, {begin}, batches of {plan.batch}"
    )
    columns = [
        "agent",
        "seeds",
        *queries,
        "queries to best",
        "never",
        "s/call",
        "at the end",
        "repeats",
    ]
    print_table(columns, list(map(_row, standings)), title=title)
    print_line()


def _show_recommended(problem: str, standings: Sequence[ContestantResult]) -> None:
    queries = standings[0].queries
    table = []
    for row in standings:
        recommended = row.recommended
        regrets = map(_format, map(recommended.get, queries))
        table.append([row.contestant, *regrets, row.within and round(row.within, 2)])

    title = f"{problem}: noise-free regret of the recommended network, by posterior mean"
    print_table(["agent", *map(str, queries), "within its interval"], table, title=title)
    print_line()


def _show_errors(problem: str, standings: Sequence[ContestantResult]) -> None:
    """Show how far the first contestant is ahead of each other one."""
    first, *others = standings
    if not others or first.seeds < 2:
        return

    queries = first.queries
    columns = ["agent", *map(str, queries)]
    if first.recommended:
        columns += [f"recommended, {number}" for number in queries]

    rows = []
    for row in others:
        cells = [row.contestant, *map(_round, row.errors(first).values())]
        if first.recommended:
            recommended = row.recommended_errors(first)
            cells += map(_round, map(recommended.get, queries))

        rows.append(cells)

    title = (
        f"{problem}: regret of {first.contestant} less that of the agent, in standard errors of "
        "the differences seed by seed"
    )
    print_table(columns, rows, title=title)
    print_line()


def show_suite(plan: ComparisonPlan, rows: Sequence[ContestantResult], as_json: bool) -> None:
    """Print the results of a suite, all tasks in one table."""
    from archive.searches.comparison import suite
    from archive.searches.comparison.standings import by_problem

    if as_json:
        comparison = suite.SuiteComparison(
            run=plan.run,
            seeds=plan.seeds,
            budget=plan.budget,
            batch=plan.batch,
            starts=plan.starts,
            rows=suite.rows(rows),
        )
        print_json(comparison)
        return

    queries = suite.queries(rows[0]) if rows else []
    columns = [
        "task",
        "agent",
        "role",
        *(f"regret {number}" for number in queries),
        *(f"test {number}" for number in queries),
    ]
    table = [[row.problem, row.contestant, *suite.cells(row)] for row in rows]
    title = (
        "regret and test accuracy of the incumbent after queries, "
        f"mean ± standard error of {plan.seeds} seeds"
    )
    print_table(columns, table, title=title)
    print_line()
    for (problem, _), standings in by_problem(rows).items():
        _show_errors(problem, standings)


def _show_shares(row: ContestantResult) -> None:
    columns = [
        "agent",
        "evaluations",
        "results of others known",
        "improvements",
        "on others' best",
        "found the best",
    ]
    rows = []
    for share in row.shares:
        others = round(share.known, 1)
        counts = (share.improvements, share.on_others, share.bests)
        rows.append((share.agent, share.evaluations, others, *counts))

    print_table(columns, rows, title=f"{row.contestant} on {row.problem}, {row.seeds} studies")
    print_line()


def _row(row: ContestantResult) -> list[Any]:
    regrets = [_format(row.regret(queries)) for queries in row.queries]
    figures = (row.queries_to_best, row.never, row.seconds, row.seconds_at_end, row.repeats)
    return [row.contestant, row.seeds, *regrets, *figures]


def _format(regret: Regret | None) -> str | None:
    return None if regret is None else mean_and_error(regret.mean, regret.error)


def _round(errors: float | None) -> float | None:
    return None if errors is None else round(errors, 1)
