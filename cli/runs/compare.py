"""`archive compare`: two runs side by side."""

from __future__ import annotations

from typing import Any

import click

from archive.cli.render import json_option, open_archive, print_json, print_line, print_table
from archive.values import setting_text


@click.command(short_help="Compare two runs, and say whether they differ by more than noise.")
@click.argument("first")
@click.argument("second")
@json_option
@click.pass_context
def compare(ctx: click.Context, first: str, second: str, as_json: bool) -> None:
    """Show what differs between the runs FIRST and SECOND, STUDY#NUMBER, and what it brought.

    Runs of one configuration with other seeds are repeats: the difference of the means has an
    interval of 95 % (Welch) with two repeats of each or more.

    Example: archive compare tuning#3 tuning#7
    """
    from archive.runs.comparison import compare_runs
    from archive.store.properties import whole_id

    with open_archive(ctx) as archive:
        comparison = compare_runs(archive, whole_id(first), whole_id(second))

    if as_json:
        print_json(comparison)
        return

    rows: list[tuple[str, Any, Any]] = []
    for change in comparison.changes:
        rows.append((change.name, _setting(change.first), _setting(change.second)))

    first_run = comparison.first
    second_run = comparison.second
    rows.append((first_run.objective, first_run.value, second_run.value))
    if comparison.first_network != comparison.second_network:
        networks = (_short(comparison.first_network), _short(comparison.second_network))
        rows.append(("network", *networks))

    if first_run.motivation != second_run.motivation:
        rows.append(("why", first_run.motivation, second_run.motivation))

    print_table(("", comparison.first.run, comparison.second.run), rows)
    if comparison.changed:
        print_line(f"source files: {', '.join(comparison.changed)}")

    print_line(comparison.words)


def _setting(value: Any) -> str | None:
    return None if value is None else setting_text(value)


def _short(key: str | None) -> str | None:
    return None if key is None else key[:8]
