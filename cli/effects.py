"""`archive effects`: what a kind of edit brings, over pairs of networks that differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from archive.cli.names import SPACE, TASK
from archive.cli.parameters import Count
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_message,
    print_table,
)
from archive.values import counted

if TYPE_CHECKING:
    from archive.effects.effects import EditEffect, EffectReport

MOST_SHOWN = 40
"""Comparisons that are shown by default."""


@click.command(short_help="Show what a kind of edit brings, with an interval.")
@click.argument("change", required=False)
@click.option("--task", type=TASK, show_default="all tasks", help="Compare results of one task.")
@click.option("--space", type=SPACE, show_default="all spaces", help="Compare networks of a space.")
@click.option(
    "--metric",
    metavar="NAME",
    show_default="the value of each task",
    help="Metric to compare, beside parameters and multiply-adds.",
)
@click.option(
    "--pairs", "shown", type=Count(0), default=MOST_SHOWN, help="Comparisons of CHANGE to show."
)
@json_option
@click.pass_context
def effects(
    ctx: click.Context,
    change: str | None,
    task: str | None,
    space: str | None,
    metric: str | None,
    shown: int,
    as_json: bool,
) -> None:
    """Show the mean effect of each kind of edit on the results of networks.

    Two networks are a pair if one named change turns one into the other, and both have results
    under one protocol, with one pretraining and one size of the input. Two trainings of one network
    are a pair if one part of the recipe differs: distillation, pretraining, the test size. CHANGE
    is an edit, "squeeze-excitation added", or a property, kernel; its pairs are listed.

    Effects are differences, and ratios of parameters, multiply-adds and speeds. The estimate
    weights families by their random effects. The interval of 95 % allows for dependence between all
    pairs that share a family; with fewer than three families, a network. An edit with fewer than
    eight pairs has no estimate.

    Example: archive effects --task imagenet-1k

    Example: archive effects "squeeze-excitation added" --task imagenet-1k
    """
    from archive.effects.effects import effects as read_effects

    with open_archive(ctx) as archive:
        report = read_effects(
            archive, change, task=task, space=space, metric=metric, notify=print_message
        )

    if as_json:
        print_json(report)
    else:
        print_report(report, change, shown)


def print_report(report: EffectReport, change: str | None, shown: int) -> None:
    """Write a report: the effects by task, then the first comparisons of one change."""
    few = 0
    for (task, under, metric), rows in _tables(report.effects).items():
        enough = [row for row in rows if row[0].effect is not None or change is not None]
        few += len(rows) - len(enough)
        if enough:
            title = f"{task}, {under}" if under else task
            print_table(
                ("change", metric, "95 %", "params", "multiply-adds", "pairs", "over"),
                [_cells(row) for row in enough],
                title=title,
            )

    comparisons = []
    for pair in report.pairs[:shown]:
        after = "" if pair.protocol_after == pair.protocol else f" to {pair.protocol_after}"
        comparisons.append(
            (pair.before, pair.after, pair.where, f"{pair.protocol}{after}", f"{pair.effect:+.3g}")
        )

    if comparisons:
        print_table(("before", "after", "where", "protocol", "effect"), comparisons, title="pairs")

    further = report.comparisons - len(comparisons)
    if further:
        advice = ": raise --pairs" if len(report.pairs) > shown else ""
        print_message(f"{counted(further, 'further pair')}{advice}")

    if few:
        print_message(f"{counted(few, 'further change')} with too few pairs for an estimate")

    if not report.effects:
        print_message("no two results differ in one change")


Table = dict[tuple[str, str, str], list[list["EditEffect"]]]


def _tables(effects: Iterable[EditEffect]) -> Table:
    """Return the effects by task, device and metric: for each edit the value, then the costs."""
    of_edit: dict[tuple[str, str, str, str], list[EditEffect]] = {}
    for effect in effects:
        key = (effect.task, effect.under, effect.change, effect.space)
        of_edit.setdefault(key, []).append(effect)

    tables: Table = {}
    for (task, under, _, _), row in of_edit.items():
        row.sort(key=lambda effect: effect.metric in COSTS)
        tables.setdefault((task, under, row[0].metric), []).append(row)

    return tables


COSTS = ("params", "flops")


def _cells(row: Sequence[EditEffect]) -> list[object]:
    value = row[0]
    costs = {effect.metric: _number(effect, effect.effect) for effect in row[1:]}
    shown = "too few pairs" if value.effect is None else _number(value, value.effect)
    interval = None
    if value.effect is not None:
        low = _number(value, value.low) or "unbounded"
        high = _number(value, value.high) or "unbounded"
        interval = f"{low} to {high}"

    over = f"{value.clusters} {value.over}"
    return [value.change, shown, interval, *map(costs.get, COSTS), value.pairs, over]


def _number(effect: EditEffect, value: float | None) -> str | None:
    if value is None:
        return None

    return f"x{value:.3g}" if effect.scale == "ratio" else f"{value:+.3g}"
