"""`archive leaderboard`: configurations of a task, and which differ by more than noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.cli.names import TASK
from archive.cli.parameters import Count
from archive.cli.render import json_option, open_archive, print_json, print_message, print_table
from archive.cli.runs.describing import describe_values
from archive.values import counted

if TYPE_CHECKING:
    from archive.queries.leaderboard import Leaderboard, LeaderboardPair


@click.command(short_help="Rank what was tried on a task, and say what is more than noise.")
@click.option("--task", type=TASK, show_default="the only task", help="Task of the results.")
@click.option(
    "--protocol", metavar="NAME", show_default="the only one", help="Protocol of the results."
)
@click.option("--minimise", metavar="METRIC", help="Another metric, smaller is better.")
@click.option("--maximise", metavar="METRIC", help="Another metric, larger is better.")
@click.option(
    "--limit", type=Count(1, 200), default=20, show_default=True, help="Rows to show, at most 200."
)
@json_option
@click.pass_context
def leaderboard(
    ctx: click.Context,
    task: str | None,
    protocol: str | None,
    minimise: str | None,
    maximise: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Rank the configurations of a task by their mean over repeats, with intervals of 95 %.

    Recorded, imported and searched results of one task and protocol are ranked together. Results of
    one configuration with other seeds are repeats. "behind" is the difference from the first row,
    with its interval (Welch); "beats" lists the rows that a row is better than by more than noise.
    Rows of one group are not known to differ from its first one. With a single run of either row,
    a difference is unknown.

    Example: archive leaderboard --task tuning
    """
    from archive.objectives import Objective
    from archive.queries.leaderboard import leaderboard as read_leaderboard
    from archive.runs.life_cycle import check_objective

    name, direction = check_objective(minimise, maximise)
    metric = None
    if name is not None:
        metric = Objective(name, "minimise" if direction == "minimise" else "maximise")

    with open_archive(ctx) as archive:
        board = read_leaderboard(
            archive.connection, task, protocol=protocol, metric=metric, most=limit
        )

    if as_json:
        print_json(board)
    else:
        print_leaderboard(board)


def print_leaderboard(board: Leaderboard) -> None:
    """Write a leaderboard as a table."""
    behind = {pair.worse: pair for pair in board.pairs if pair.better == 1}
    rows = []
    for row in board.rows:
        interval = None if row.low is None else f"{row.low:.4g} to {row.high:.4g}"
        what = row.model or describe_values(row.motivation, (), row.values) or row.architecture
        rows.append(
            (
                row.rank,
                row.group,
                row.run,
                row.mean,
                interval,
                len(row.repeats),
                _behind(behind.get(row.rank)),
                _ranks(row.beats),
                what,
            )
        )

    columns = (
        "rank",
        "group",
        "best run",
        board.objective,
        "95 %",
        "runs",
        "behind",
        "beats",
        "what",
    )
    title = f"{board.task}, {board.protocol}: {board.direction} {board.objective}"
    print_table(columns, rows, title=title)
    if len(rows) > 1 and not any(row.beats for row in board.rows):
        print_message("no row is known to be better than another one by more than noise")

    if board.configurations > len(rows):
        total = counted(board.configurations, "configuration")
        print_message(f"{len(rows)} of {total}: --limit shows more")


def _behind(pair: LeaderboardPair | None) -> str | None:
    """Return the difference from the first row, and whether it is more than noise."""
    if pair is None:
        return None

    if pair.verdict == "unknown":
        return f"{pair.gain:.3g}, unknown"

    word = "noise" if pair.verdict == "noise" else "more than noise"
    return f"{pair.gain:.3g} [{pair.low:.3g}, {pair.high:.3g}], {word}"


def _ranks(ranks: list[int]) -> str | None:
    """Return ascending ranks in short: 3, 5 to 9."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])

    texts = []
    for first, last in parts:
        texts.append(str(first) if first == last else f"{first} to {last}")

    return ", ".join(texts) or None
