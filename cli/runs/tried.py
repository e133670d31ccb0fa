"""`archive tried`: runs and ideas on record, by their words."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import click

from archive.cli.names import STUDY
from archive.cli.parameters import Count
from archive.cli.render import json_option, open_archive, print_json, print_message, print_table
from archive.cli.runs.describing import describe_values
from archive.errors import UsageError
from archive.values import counted

if TYPE_CHECKING:
    from archive.queries.runs import TriedRun

_SHOWN = 60


@dataclass(frozen=True)
class TriedRuns:
    """Runs that hold some words, or that trained a network.

    Attributes:
        total: Number of all such runs.
        runs: The newest of them.
    """

    total: int
    runs: list[TriedRun]


@click.command(short_help="Show what was tried, by words in reasons, changes and output.")
@click.argument("words", nargs=-1)
@click.option("--study", type=STUDY, show_default="all studies", help="Runs of one study.")
@click.option(
    "--since", metavar="DATE", help="Earliest day of the runs: 2026, 2026-08, 2026-08-31."
)
@click.option("--network", metavar="KEY", help="Runs that trained this network.")
@click.option("--limit", type=Count(1), default=20, show_default=True, help="Runs to show.")
@json_option
@click.pass_context
def tried(
    ctx: click.Context,
    words: tuple[str, ...],
    study: str | None,
    since: str | None,
    network: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show the newest runs that hold all WORDS, with what each changed and what it brought.

    Words are looked for in the reason, the changed source files, arguments, the end of the output,
    the reason of a failure, the program and the branch. "brought" is the gain over the parent in
    the study's metric, + is better.

    Example: archive tried muon --since 2026-08
    """
    from archive.queries.runs import find_runs, runs_of_network

    earliest = 0 if since is None else read_day(since)
    with open_archive(ctx) as archive:
        if network is not None:
            key = archive.architectures.get(archive.architectures.find(network)).functional_key
            runs = runs_of_network(archive.connection, key)
            tried_runs = TriedRuns(len(runs), runs[:limit])
        else:
            runs, total = find_runs(
                archive.connection, words, study=study, since=earliest, most=limit
            )
            tried_runs = TriedRuns(total, runs)

    if as_json:
        print_json(tried_runs)
        return

    if not tried_runs.runs:
        print_message(f"nothing on record holds {' '.join(words)!r}" if words else "no runs yet")
        return

    rows = []
    for run in tried_runs.runs:
        rows.append(
            (
                run.run,
                _moment(run.started),
                _outcome(run),
                None if run.gain is None else f"{run.gain:+.3g}",
                describe_values(run.motivation, run.changed, run.values),
            )
        )

    print_table(("run", "started", "outcome", "brought", "what"), rows)
    if tried_runs.total > len(rows):
        print_message(f"{len(rows)} of {counted(tried_runs.total, 'run')}: --limit shows more")


def read_day(text: str) -> int:
    """Return the begin of a year, a month or a day, in milliseconds since 1970.

    Raises:
        UsageError: The text is none of these.
    """
    for form in ("%Y-%m-%d", "%Y-%m", "%Y"):
        try:
            return int(time.mktime(time.strptime(text, form)) * 1000)
        except (ValueError, OverflowError):
            continue

    raise UsageError(
        f"--since takes a day, a month or a year: 2026-08-31, 2026-08, got {text!r:.60}"
    )


def _moment(started: str | None) -> str | None:
    """Return a time to the minute, in the user's time zone."""
    if started is None:
        return None

    return datetime.fromisoformat(started).astimezone().strftime("%Y-%m-%d %H:%M")


def _outcome(run: TriedRun) -> str:
    if run.value is not None:
        return f"{run.objective} {run.value:.4g}"

    return f"{run.state}: {run.reason[:_SHOWN]}" if run.reason else run.state
