"""Comparisons on tables: their archive, their problems, and the execution of their searches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from archive.cli.parameters import settings_of
from archive.cli.render import animation, console, print_message
from archive.errors import UsageError

if TYPE_CHECKING:
    from archive.searches.comparison.plan import Problem, StudyJob
    from archive.searches.comparison.regret import Trace
    from archive.settings import Settings

FOLDER = "bench"
"""Folder of the comparisons' archive, below the archive's home."""

PAUSE = 30.0
"""Seconds between two progress lines."""


def bench_settings(ctx: click.Context) -> Settings:
    """Return the settings of the comparisons' archive, which keeps them apart from the user's
    studies.
    """
    from archive import settings

    own = settings.load(**settings_of(ctx))
    return replace(own, home=own.home / FOLDER) if own.embedded else own


def table_problem(name: str) -> Problem:
    """Return a tabular task as the problem of a comparison.

    Raises:
        UsageError: The task is not tabular, or its column has no values.
    """
    import numpy as np

    from archive.searches.comparison.plan import Problem
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.tabular import TabularTask

    task = registry.get(name)
    if not isinstance(task, TabularTask):
        raise UsageError(f"a comparison needs a tabular task, got {name!r}")

    reading = task.protocol()
    values = task.scale * task.table.column(reading.column)
    known = values[np.isfinite(values)]
    if not known.size:
        raise UsageError(f"the column {reading.column!r} of {name!r} has no values")

    space = task.search_space()
    is_accuracy = task.metric == "accuracy"
    # A user's table may have its accuracies in percent.
    is_fraction = is_accuracy and bool((abs(known) <= 1.0).all())
    return Problem(
        label=task.label,
        task=task.name,
        protocol=reading.name,
        space=space.name,
        space_config=space.config,
        objective=task.objective,
        direction=task.direction,
        best=float(known.max() if task.direction == "maximise" else known.min()),
        size=int(known.size),
        points=100.0 if is_fraction else 1.0,
        unit="accuracy points" if is_accuracy else f"in {reading.column}",
        answer=partial(task.answer, protocol=reading.name),
        noise=task.noise,
        truth=partial(task.truth, protocol=reading.name),
    )


def finish(
    settings: Settings, jobs: Sequence[StudyJob], traces: Sequence[Trace], processes: int, what: str
) -> dict[str, str]:
    """Run the unfinished searches, and return the reasons of failures by study.

    Args:
        settings: Settings of the studies' archive.
        jobs: The studies.
        traces: The stored trace of each study.
        processes: Maximum number of searches at a time.
        what: The jobs in words, for the first line of the report.
    """
    from archive.searches.comparison.pool import search_all
    from archive.searches.interruption import Interruption

    unfinished = [
        job for job, trace in zip(jobs, traces, strict=True) if not job.is_finished(trace.values)
    ]
    print_message(f"{len(jobs)} {what}, {len(unfinished)} not finished")
    if not unfinished:
        return {}

    total = sum(job.budget for job in jobs)
    done = sum(len(trace.values) for trace in traces)
    ending = "stopping: every search finishes its current proposal …"
    with Interruption(lambda: print_message(ending)) as interruption, _bar(total) as advance:
        failed = search_all(
            settings,
            unfinished,
            min(processes, len(unfinished)),
            check=interruption.check,
            progress=lambda at: advance(
                done + at.proposals, len(jobs) - len(unfinished) + at.studies
            ),
        )

    return {unfinished[at].study.name: reason for at, reason in failed.items()}


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
