"""`archive study importance`: which parameters and decisions matter for the objective."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.cli.names import STUDY
from archive.cli.parameters import Count
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_line,
    print_message,
    print_table,
)

if TYPE_CHECKING:
    from archive.plots.anova.forest import ImportanceShare
    from archive.plots.data.importance import ImportanceReport

PAIRS = 5
"""Pairs that are shown by default."""


@click.command("importance", short_help="Show which parameters and decisions matter.")
@click.argument("name", metavar="STUDY", type=STUDY)
@click.option("--pairs", "count", type=Count(0), default=PAIRS, help="Number of pairs to show.")
@json_option
@click.pass_context
def importance(ctx: click.Context, name: str, count: int, as_json: bool) -> None:
    """Show which parameters, decisions and hyperparameters of a study matter for its objective.

    variance is the share of the variance of the objective over the whole space that a parameter
    explains alone, by a random forest (fANOVA). A pair explains its share beyond both alone. Near
    best is how much a parameter tells the best tenth of the results from the others (PED-ANOVA);
    these shares sum to 1. Intervals are of 95 %, over bootstrap samples of the results.

    A conditional parameter is judged among the results in which it exists (column results).

    The JSON has all pairs.
    """
    from archive.plots.data.importance import importance as read_importance

    with open_archive(ctx) as archive:
        report = read_importance(archive, name)

    if as_json:
        print_json(report)
        return

    _print(report, count)


def _print(report: ImportanceReport, count: int) -> None:
    rows = []
    for column in report.parameters:
        rows.append(
            [
                column.name,
                *_cells(column.variance),
                *_cells(column.near_best),
                column.results,
            ]
        )

    print_table(
        ("parameter", "variance", "95 %", "near best", "95 % near best", "results"),
        rows,
        title=f"importance for {report.objective} ({report.direction})",
    )
    pairs = []
    for pair in report.pairs[:count]:
        pairs.append([f"{pair.first} × {pair.second}", *_cells(pair.variance), pair.results])

    if pairs:
        print_table(("pair", "variance", "95 %", "results"), pairs)

    if report.explained > 0.0:
        print_line(f"the forest explains {report.explained:.0%} of the variance of unseen results")
    else:
        print_message(
            (
                "the forest predicts no unseen result: the shares of the variance mean nothing yet",
                "yellow",
            )
        )


def _cells(share: ImportanceShare | None) -> tuple[str | None, str | None]:
    """Return a share and its interval as text."""
    if share is None:
        return None, None

    return f"{share.share:.1%}", f"{share.low:.1%} to {share.high:.1%}"
