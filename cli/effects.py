"""`archive effects`: what a kind of edit brings, over pairs of networks that differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from archive.cli.names import SPACE, STUDY, TASK
from archive.cli.parameters import Count
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_message,
    print_table,
)
from archive.errors import UsageError
from archive.values import counted

if TYPE_CHECKING:
    from archive.effects.effects import EditEffect, EffectReport

MOST_SHOWN = 40
"""Comparisons that are shown by default."""


@click.command(short_help="Show what a kind of edit brings, with an interval.")
@click.argument("change", required=False)
@click.option("--task", type=TASK, show_default="all tasks", help="Compare results of one task.")
@click.option("--study", type=STUDY, help="Edits of the runs of a study, from parent to child.")
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
    study: str | None,
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

    With --study, the pairs are the runs of a study and those that they are changes of: edits of
    values, source files and, where they were captured, networks. "doubled" is the difference for each
    doubling of a value. Intervals are over the parents of the pairs. Pairs that differ in several
    things at once stand apart, without estimates.

    Example: archive effects --task imagenet-1k

    Example: archive effects --study tuning lr

    Example: archive effects "squeeze-excitation added" --task imagenet-1k
    """
    from archive.effects.effects import effects as read_effects

    if study is not None and (task is not None or space is not None):
        raise UsageError("--study has its own task and space: leave out --task and --space")

    with open_archive(ctx) as archive:
        if study is not None:
            from archive.effects.runs import effects_of_runs

            report = effects_of_runs(archive, study, change, metric=metric)
        else:
            report = read_effects(
                archive, change, task=task, space=space, metric=metric, notify=print_message
            )

    if as_json:
        print_json(report)
    else:
        print_report(report, change, shown, of_runs=study is not None)


def print_report(
    report: EffectReport, change: str | None, shown: int, *, of_runs: bool = False
) -> None:
    """Write a report: the effects by task, then the first comparisons of one change.

    Args:
        report: The report.
        change: The change that was asked for; None for all.
        shown: Comparisons to show.
        of_runs: Whether the effects are of runs. These are few: changes with too few pairs for an
            estimate are shown with the number of pairs that got larger.
    """
    few = 0
    alone = [effect for effect in report.effects if effect.is_alone]
    for (task, under, metric), rows in _tables(alone).items():
        enough = [row for row in rows if row[0].effect is not None or change is not None]
        if of_runs:
            enough = rows[:MOST_SHOWN]

        few += len(rows) - len(enough)
        if enough:
            title = f"{task}, {under}" if under else task
            costs = any(len(row) > 1 for row in enough)
            columns = ["change", metric, "95 %", *(_COST_NAMES if costs else ()), "pairs", "over"]
            cells = [_cells(row, costs) for row in enough]
            if of_runs:
                columns.append("larger")
                for row, line in zip(enough, cells, strict=True):
                    line.append(f"{row[0].larger} of {row[0].results}")

            print_table(columns, cells, title=title)

    _print_joint([effect for effect in report.effects if not effect.is_alone], alone)
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
        why = ", those of the fewest pairs" if of_runs else " with too few pairs for an estimate"
        print_message(f"{counted(few, 'further change')}{why}")

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
_COST_NAMES = ("params", "multiply-adds")


def _print_joint(joint: Sequence[EditEffect], alone: Sequence[EditEffect]) -> None:
    """Write the edits of runs that came with others."""
    if not joint:
        return

    estimated = {(effect.change, effect.space): effect for effect in alone}
    rows = []
    for effect in joint[:MOST_SHOWN]:
        single = estimated.get((effect.change, effect.space))
        larger = f"{effect.larger} of {effect.pairs}"
        rows.append((effect.change, effect.pairs, larger, 0 if single is None else single.pairs))

    metric = joint[0].metric
    columns = ("change", "pairs", f"with larger {metric}", "pairs of it alone")
    print_table(columns, rows, title="with other changes at once: no effect of one of them")


def _cells(row: Sequence[EditEffect], costs: bool) -> list[object]:
    value = row[0]
    ratios = {effect.metric: _number(effect, effect.effect) for effect in row[1:]}
    shown = "too few pairs" if value.effect is None else _number(value, value.effect)
    interval = None
    if value.effect is not None:
        low = _number(value, value.low) or "unbounded"
        high = _number(value, value.high) or "unbounded"
        interval = f"{low} to {high}"

    over = f"{value.clusters} {value.over}"
    of_costs = list(map(ratios.get, COSTS)) if costs else []
    return [value.change, shown, interval, *of_costs, value.pairs, over]


def _number(effect: EditEffect, value: float | None) -> str | None:
    if value is None:
        return None

    return f"x{value:.3g}" if effect.scale == "ratio" else f"{value:+.3g}"
