"""`archive tried`: runs and ideas on record, by their words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from archive.cli.names import STUDY
from archive.cli.parameters import Count
from archive.cli.render import json_option, open_archive, print_json, print_message, print_table
from archive.cli.runs.describing import describe_run
from archive.errors import UsageError
from archive.store.records import State, StateName
from archive.values import counted

if TYPE_CHECKING:
    from archive.queries.runs import FoundRuns, TriedRun
    from archive.queries.tried.filters import RunFilter

_SHOWN = 60
"""Letters of the reason of a failure."""

_MOST_NAMES = 6
"""Most names of studies or programs with a count below the table."""

_DAYS = (("%Y-%m-%d", "day"), ("%Y-%m", "month"), ("%Y", "year"))


@click.command(short_help="Show what was tried, by words in reasons, changes and output.")
@click.argument("words", nargs=-1)
@click.option("--study", type=STUDY, show_default="all studies", help="Runs of one study.")
@click.option("--program", metavar="NAME", help="Runs of one program, such as train.py.")
@click.option(
    "--state", type=click.Choice([state.label for state in State]), help="Runs in a state."
)
@click.option(
    "--where", metavar="CONDITION", help='Condition on values: "lr < 0.01 and depth >= 4".'
)
@click.option("--since", metavar="DATE", help="First day of the runs: 2026, 2026-08, 2026-08-31.")
@click.option("--until", metavar="DATE", help="Last day of the runs.")
@click.option("--network", metavar="KEY", help="Runs that trained this network.")
@click.option("--limit", type=Count(1), default=20, show_default=True, help="Runs to show.")
@json_option
@click.pass_context
def tried(
    ctx: click.Context,
    words: tuple[str, ...],
    study: str | None,
    program: str | None,
    state: StateName | None,
    where: str | None,
    since: str | None,
    until: str | None,
    network: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show the newest runs that hold all WORDS, with what each changed and what it brought.

    Words are looked for in the reason, the changed source files, arguments, the end of the output,
    the reason of a failure, the program and the branch. "brought" is the gain over the parent in
    the study's metric, + is better: the difference of the means over repeats, with an interval of
    95 % where both have two or more.

    --where reads the values of runs, and the study's metric, seed and seconds.

    Example: archive tried muon --since 2026-08 --where "lr < 0.01"
    """
    from archive.parameters import parser
    from archive.queries.runs import search_runs
    from archive.queries.tried.filters import RunFilter

    condition = None if where is None else parser.parse(where)
    states = {member.label: member for member in State}
    first = 0 if since is None else read_days("--since", since)[0]
    end = None if until is None else read_days("--until", until)[1]
    with open_archive(ctx) as archive:
        functional_key = None
        if network is not None:
            key = archive.architectures.find(network)
            functional_key = archive.architectures.get(key).functional_key

        sought = RunFilter(
            words=words,
            study=study,
            program=program,
            state=None if state is None else states[state],
            since=first,
            until=end,
            network=functional_key,
            where=condition,
        )
        result = search_runs(archive.connection, sought, most=limit)

    if as_json:
        print_json(result)
    elif result.runs:
        print_runs(result)
    else:
        print_message(_describe_nothing(sought))


def print_runs(result: FoundRuns) -> None:
    """Write runs as a table beside their parents, and the numbers of all of them."""
    rows = []
    for run in result.runs:
        parent = run.parent
        if parent is not None:
            parent = parent.removeprefix(run.study)

        rows.append(
            (run.run, parent, _moment(run.started), _outcome(run), _brought(run), describe_run(run))
        )

    print_table(("run", "parent", "started", "outcome", "brought", "what"), rows)
    parts = []
    facets = result.facets
    for counts in (facets.states, facets.programs, facets.studies):
        if len(counts) > 1:
            parts.append(_describe_counts(counts))

    if result.total > len(rows) or parts:
        shown = "" if result.total == len(rows) else f"{len(rows)} of "
        advice = "" if result.total == len(rows) else "; --limit shows more"
        described = f": {'; '.join(parts)}" if parts else ""
        print_message(f"{shown}{counted(result.total, 'run')}{described}{advice}")


def read_days(option: str, text: str) -> tuple[int, int]:
    """Return the begin of a year, a month or a day, and of the next one.

    Args:
        option: Name of the option for the message.
        text: The year, month or day.

    Returns:
        Milliseconds since 1970.

    Raises:
        UsageError: The text is none of these.
    """
    for form, unit in _DAYS:
        try:
            begin = datetime.strptime(text, form)
            if unit == "day":
                following = begin + timedelta(days=1)
            elif unit == "month":
                following = (begin + timedelta(days=32)).replace(day=1)
            else:
                following = begin.replace(year=begin.year + 1)

            return int(begin.timestamp() * 1000), int(following.timestamp() * 1000)
        except (ValueError, OverflowError):
            continue

    raise UsageError(
        f"{option} takes a day, a month or a year: 2026-08-31, 2026-08, got {text!r:.60}"
    )


def _describe_nothing(sought: RunFilter) -> str:
    """Return why no run is shown."""
    if sought == type(sought)():
        return "no runs yet"

    return f"nothing on record holds {' '.join(sought.words)!r}" if sought.words else "no such run"


def _describe_counts(counts: Mapping[str, int]) -> str:
    parts = [f"{number} {name}" for name, number in list(counts.items())[:_MOST_NAMES]]
    if len(counts) > _MOST_NAMES:
        parts.append(f"{len(counts) - _MOST_NAMES} others")

    return ", ".join(parts)


def _brought(run: TriedRun) -> str | None:
    """Return what a run brought over its parent, and whether that may be noise."""
    if run.gain is None:
        return None

    if run.gain_low is None or run.gain_high is None:
        return f"{run.gain:+.3g}"

    noise = ", noise" if run.gain_low <= 0 <= run.gain_high else ""
    return f"{run.gain:+.3g} [{run.gain_low:+.3g}, {run.gain_high:+.3g}]{noise}"


def _moment(started: str | None) -> str | None:
    """Return a time to the minute, in the user's time zone."""
    if started is None:
        return None

    return datetime.fromisoformat(started).astimezone().strftime("%Y-%m-%d %H:%M")


def _outcome(run: TriedRun) -> str:
    if run.value is not None:
        return f"{run.objective} {run.value:.4g}"

    return f"{run.state}: {run.reason[:_SHOWN]}" if run.reason else run.state
