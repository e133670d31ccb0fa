"""`archive compare`: two runs side by side."""

from __future__ import annotations

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

    rows = []
    for change in comparison.changes:
        values = [
            None if value is None else setting_text(value)
            for value in (change.first, change.second)
        ]
        rows.append((change.name, *values))

    objective = comparison.first.objective
    for name, values in (
        (objective, (comparison.first.value, comparison.second.value)),
        ("network", (_short(comparison.first_network), _short(comparison.second_network))),
        ("why", (comparison.first.motivation, comparison.second.motivation)),
    ):
        if values[0] != values[1]:
            rows.append((name, *values))

    print_table(("", comparison.first.run, comparison.second.run), rows)
    if comparison.changed:
        print_line(f"source files: {', '.join(comparison.changed)}")

    print_line(comparison.words)


def _short(key: str | None) -> str | None:
    return None if key is None else key[:8]
