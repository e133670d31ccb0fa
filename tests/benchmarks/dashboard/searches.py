"""Throughput of a search while viewers watch it, beside that of the same search alone, in turns.

    alone       archive search --trainers 8      on a synthetic table, in a temporary archive
    watched     the same, with as many viewers (`tests.benchmarks.dashboard.viewers`)

The page runs in all turns. Turns come in groups of four: alone, watched, watched, alone. The growth
of the archive and other work on the machine change all rates, and largely cancel within a group. A
turn begins with a few evaluations, so that the viewers have a study to open. The rate of a turn is
that of the middle four fifths of its other evaluations, without the start of the trainers and the
end of the queue.
"""

from __future__ import annotations

import csv
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from archive import settings, spaces
from archive.api import Archive
from archive.architecture import codec
from archive.benchmarks.measurement import Figure
from archive.database.connection import Connection
from archive.server.temporary import temporary_archive
from archive.store import schema
from tests.benchmarks.dashboard.page import serving
from tests.benchmarks.dashboard.viewers import Received, viewers

BROWSERS = 10
WORKERS = 8
TURNS = 12
EVALUATIONS = 4000
FOUR = (False, True, True, False)
"""Which turns of four are watched."""
FIRST = 200
"""Evaluations before a turn is measured."""
BATCH = 100

ENDS = """
MATCH (p:Proposal {study: $study})
USING INDEX SEEK p:Proposal(study)
WHERE p.number >= $first AND p.state = 'COMPLETE'
RETURN collect(p.finished) AS ends
"""

Notify = Callable[[str], None]


def measure(
    browsers: int = BROWSERS,
    workers: int = WORKERS,
    turns: int = TURNS,
    evaluations: int = EVALUATIONS,
    notify: Notify = lambda _: None,
) -> Iterator[Figure]:
    """Measure searches alone and watched, in turns over a new archive.

    Args:
        browsers: Number of viewers.
        workers: Number of trainers.
        turns: Number of turns, half of them watched; an odd number stands for the next one.
        evaluations: Evaluations of a turn.
        notify: Receives a line at the start of each turn.

    Raises:
        RuntimeError: A search, or the viewers, failed.
    """
    with temporary_archive() as own:
        yield from _measure(own, browsers, workers, turns, evaluations, notify)


def middle_rate(ends: list[int]) -> float:
    """Return the rate of the middle four fifths of events, a second.

    Args:
        ends: Times of at least ten events, in milliseconds.
    """
    ordered = sorted(ends)
    low = len(ordered) // 10
    high = 9 * len(ordered) // 10
    return 1000 * (high - low) / max(1, ordered[high] - ordered[low])


def _measure(
    own: settings.Settings,
    browsers: int,
    workers: int,
    turns: int,
    evaluations: int,
    notify: Notify,
) -> Iterator[Figure]:
    task = f"table:{_table(own.home)}#accuracy"
    rates: dict[bool, list[float]] = {False: [], True: []}
    received = Received()
    with Connection.open(own) as connection:
        schema.migrate(connection)
        with serving(Archive(connection)) as server:
            for turn in range(turns + turns % 2):
                watched = FOUR[turn % 4]
                study = f"turn-{turn}"
                notify(
                    f"turn {turn + 1} of {turns + turns % 2}, "
                    f"{f'with {browsers} viewers' if watched else 'alone'}"
                )
                # Both turns of a pair evaluate the same networks.
                search = [
                    "--study",
                    study,
                    "--task",
                    task,
                    "--trainers",
                    str(workers),
                    "--seed",
                    str(turn // 2),
                ]
                _search(own, search, FIRST)
                where = server.access.port, server.access.token
                with (
                    viewers(*where, study, browsers)
                    if watched
                    else nullcontext(received) as received
                ):
                    _search(own, search, FIRST + evaluations)

                rate = middle_rate(_ends(connection, study))
                rates[watched].append(rate)
                yield Figure(
                    f"turn {turn + 1}, {'watched' if watched else 'alone'}", rate, "evaluations/s"
                )

    yield from _comparison(rates[False], rates[True], browsers, workers)
    yield Figure(
        "messages with results that a viewer got, in the last turn", received.news / browsers
    )


def change(alone: list[float], watched: list[float]) -> float:
    """Return the median over fours of the change of the rate, in percent.

    Args:
        alone: Rates of the turns alone, in their order.
        watched: Those of the watched turns, as many.
    """
    fours = (slice(at, at + 2) for at in range(0, len(alone), 2))
    return statistics.median(100 * (sum(watched[four]) / sum(alone[four]) - 1) for four in fours)


def _comparison(
    alone: list[float], watched: list[float], browsers: int, workers: int
) -> Iterator[Figure]:
    median = statistics.median(alone)
    yield Figure(f"search with {workers} trainers, alone, median", median, "evaluations/s")
    yield Figure(
        f"the same with {browsers} viewers, median",
        statistics.median(watched),
        "evaluations/s",
        None,
        median,
    )
    yield Figure(
        "change of the throughput, median of the fours", change(alone, watched), "%", ">= -5"
    )


def _table(home: Path) -> Path:
    """Write a table of all cells of NAS-Bench-201 with synthetic accuracies, and return its
    path.
    """
    home.mkdir(parents=True, exist_ok=True)
    path = home / "cells.csv"
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["arch_str", "accuracy", "train_seconds"])
        for cell in spaces.get("nasbench201").members() or ():
            writer.writerow(
                [codec.to_nasbench201(cell), round(float(rng.uniform(0.5, 0.95)), 5), 60]
            )

    return path


def _search(own: settings.Settings, options: list[str], budget: int) -> None:
    """Run a search to its end.

    Raises:
        RuntimeError: It failed.
    """
    command = [
        sys.executable,
        "-P",
        "-m",
        "archive.cli.main",
        "search",
        "--agent",
        "random",
        *options,
    ]
    # Each study evaluates its networks, whatever the turns before have.
    command += ["--batch", str(BATCH), "--budget", str(budget), "--retrain"]
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("ARCHIVE_")
    }
    variables = inherited | settings.environment(own)
    streams: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.PIPE,
    }
    # Out of reach of a Ctrl-C in the terminal: the search then ends once, by the signal from here.
    with subprocess.Popen(
        command, env=variables, text=True, start_new_session=True, **streams
    ) as search:
        try:
            _, errors = search.communicate()
        except BaseException:
            # A killed search would leave its trainers behind.
            search.terminate()
            raise

    if search.returncode:
        raise RuntimeError(
            f"the search ended with {search.returncode}: {' '.join(errors.split())[-500:]}"
        )


def _ends(connection: Connection, study: str) -> list[int]:
    record: Any = connection.read(
        lambda tx: tx.run(ENDS, study=study, first=FIRST).single(strict=True)
    )
    return list(record["ends"])
