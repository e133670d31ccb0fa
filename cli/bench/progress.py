"""Progress of comparisons, and the settings of their archive."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from archive.cli.parameters import settings_of
from archive.cli.render import animation, console, print_message

if TYPE_CHECKING:
    from archive.searches.comparison.plan import StudyJob
    from archive.searches.comparison.regret import Trace
    from archive.settings import Settings

FOLDER = "bench"
"""Folder of the comparisons' archive, below the archive's home."""

PAUSE = 30.0
"""Seconds between two progress lines."""


def bench_settings(ctx: click.Context) -> Settings:
    """Return the settings of the comparisons' archive, apart from the user's studies."""
    from archive import settings

    loaded = settings.load(**settings_of(ctx))
    return replace(loaded, home=loaded.home / FOLDER) if loaded.embedded else loaded


def finish(
    settings: Settings, jobs: Sequence[StudyJob], traces: Sequence[Trace], processes: int, what: str
) -> dict[str, str]:
    """Run the unfinished searches with a bar, and return the reasons of failures by study.

    Args:
        settings: Settings of the studies' archive.
        jobs: The studies.
        traces: The stored trace of each study.
        processes: Maximum number of searches at a time.
        what: The jobs in words, for the first line of the report.
    """
    from archive.searches.comparison.pool import find_unfinished, search_unfinished
    from archive.searches.interruption import Interruption

    unfinished = find_unfinished(jobs, traces)
    print_message(f"{len(jobs)} {what}, {len(unfinished)} not finished")
    if not unfinished:
        return {}

    ending = "stopping: every search finishes its current proposal …"
    total = sum(job.budget for job in jobs)
    with Interruption(lambda: print_message(ending)) as interruption, _bar(total) as advance:
        return search_unfinished(
            settings,
            jobs,
            traces,
            processes,
            check=interruption.check,
            progress=lambda progress: advance(*progress),
        )


@contextmanager
def _bar(total: int) -> Iterator[Any]:
    """Show progress on stderr: a bar on a terminal, otherwise occasional lines."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    label = TextColumn("evaluations, {task.fields[studies]} searches done", markup=False)
    columns = [BarColumn(), MofNCompleteColumn(), label]
    terminal = console()
    if not terminal.is_terminal:
        yield _ProgressLines(total)
        return

    bar = Progress(*columns, TimeRemainingColumn(), console=terminal)
    with animation(bar, terminal):
        task = bar.add_task("", total=total, studies=0)
        yield lambda evaluations, studies: bar.update(task, completed=evaluations, studies=studies)


class _ProgressLines:
    """Progress as occasional lines, for logs."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.printed = time.monotonic()

    def __call__(self, evaluations: int, studies: int) -> None:
        if time.monotonic() - self.printed >= PAUSE:
            self.printed = time.monotonic()
            print_message(f"{evaluations}/{self.total} evaluations, {studies} searches done")
