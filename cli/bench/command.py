"""`archive bench`: comparisons of agents on tables, and the speed of this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archive import __version__, runtime
from archive.cli.bench.standings import show_standings, show_suite
from archive.cli.groups import CommandGroup
from archive.cli.names import AGENT, TASK
from archive.cli.parameters import Count, settings_of
from archive.cli.render import (
    animation,
    console,
    json_option,
    print_json,
    print_message,
    print_table,
)
from archive.errors import SearchError, UsageError
from archive.values import whole_number

if TYPE_CHECKING:
    from archive.searches.comparison.plan import StudyJob
    from archive.searches.comparison.regret import Trace
    from archive.searches.comparison.suite import Suite
    from archive.settings import Settings


@dataclass(frozen=True)
class FigureItem:
    """One measured number.

    Attributes:
        name: The measured quantity.
        value: The number; null where it is not known.
        unit: Its unit.
    """

    name: str
    value: float | None
    unit: str


@dataclass(frozen=True)
class MachineFigures:
    """Speed of a machine.

    Attributes:
        figures: The measured numbers.
    """

    figures: list[FigureItem]


@click.group(cls=CommandGroup)
def bench() -> None:
    """Compare agents on tables, and measure the speed of this machine."""


@bench.command(short_help="Measure this machine in under a minute.")
@click.option(
    "--device", metavar="DEVICE", default="auto", help="cpu, cuda …; auto: a GPU if there is one."
)
@json_option
@click.pass_context
def machine(ctx: click.Context, device: str, as_json: bool) -> None:
    """Measure this machine in under a minute: a query to the server, distances, a training.

    The server is the embedded one, which is started, or the server of --db. Nothing is stored.
    """
    from archive import settings
    from archive.benchmarks.machine import measure

    figures = []
    for figure in measure(settings.load(**settings_of(ctx)), device):
        print_message(f"measured: {figure.name}")
        figures.append(FigureItem(figure.name, figure.value, figure.unit))

    if as_json:
        print_json(MachineFigures(figures))
    else:
        rows = [(figure.name, figure.value, figure.unit) for figure in figures]
        print_table(["what", "value", "unit"], rows)


@bench.command(short_help="Compare agents on tables.")
@click.option(
    "--agent",
    "agent_names",
    multiple=True,
    type=AGENT,
    metavar="AGENT[:NAME=VALUE,…][+AGENT…]",
    help="Agent, with settings that differ from its defaults, or a team of agents that take "
    "turns. May be repeated; "
    "required without --suite.",
)
@click.option(
    "--task",
    "task_names",
    multiple=True,
    type=TASK,
    show_default="nb201-cifar10",
    help="Tabular task, table:PATH#COLUMN, or one with noise, TASK~SD. May be repeated.",
)
@click.option(
    "--suite",
    "whole_suite",
    is_flag=True,
    help="Compare defaults, published settings and baselines on all tables, with and without "
    "noise: regret and test "
    "accuracy after 10, 20, 50 and 100 queries. Other options replace its values.",
)
@click.option("--quick", is_flag=True, help="A part of the suite that takes a minute on two cores.")
@click.option(
    "--seeds",
    type=Count(1),
    show_default="20; of --quick 2",
    help="Number of searches for each agent and task.",
)
@click.option(
    "--budget",
    type=int,
    metavar="N",
    show_default="200; of --suite 100, of --quick 30",
    help="Evaluations of a search, including the starts.",
)
@click.option("--batch", type=Count(1), default=1, help="Number of proposals at a time.")
@click.option(
    "--starts",
    metavar="N|own",
    show_default="20; of --suite own",
    help="Number of random networks at the start, the same for all agents with one seed; own: "
    "the agent's choice.",
)
@click.option(
    "--run",
    "run_name",
    metavar="NAME",
    default=__version__,
    help="Name of the run; a new name starts over.",
)
@click.option(
    "--until-best",
    is_flag=True,
    help="End a search once it has found the best network of the table: its regret stays 0. "
    "Saves most of the time.",
)
@click.option(
    "--processes", type=Count(1), show_default="one per core", help="Number of searches at a time."
)
@click.option(
    "--proxies",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Import zero-cost proxies of the tasks first (archive import proxies); later runs use "
    "them, too.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw the regret curves."
)
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    agent_names: tuple[str, ...],
    task_names: tuple[str, ...],
    whole_suite: bool,
    quick: bool,
    seeds: int | None,
    budget: int | None,
    batch: int,
    starts: str | None,
    run_name: str,
    until_best: bool,
    processes: int | None,
    proxies: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare agents on tables: regret by number of queries, over many seeds.

    A further table compares the first agent with each other one: the difference of their regrets,
    seed by seed, in standard errors; negative where the first agent is ahead. With noise, it also
    compares the networks that archive study best would recommend. A table of these networks has the
    share with a value in the interval of 95 %.

    Searches are studies of a separate archive below the home folder, or of the database of --db.
    The same command again continues an interrupted run, and reuses finished searches. Seconds are
    processor time on one thread. Name another run after a change of an agent's code.
    """
    from archive.searches.comparison import plot as plots
    from archive.searches.comparison.compare import compare
    from archive.searches.comparison.plan import ComparisonPlan, contestant, table_problem
    from archive.searches.comparison.suite import Suite

    if plot is not None:
        plots.check(plot)

    suite = _suite(whole_suite, quick)
    if not (agent_names or suite):
        raise UsageError(
            "name the agents to compare with --agent, or compare those of the suite with --suite"
        )

    defaults = suite or Suite((), ("nb201-cifar10",), 20, 200)
    plan = ComparisonPlan(
        contestants=[contestant(name) for name in _distinct(agent_names or defaults.agents)],
        problems=[table_problem(name) for name in _distinct(task_names or defaults.tasks)],
        seeds=seeds or defaults.seeds,
        budget=defaults.budget if budget is None else budget,
        batch=batch,
        starts=_starts(starts or ("own" if suite else "20")),
        run=run_name,
        until_best=until_best,
    )
    settings = bench_settings(ctx)
    location = settings.home if settings.embedded else settings.uri
    rows, failed = compare(
        settings,
        plan,
        processes or runtime.count_cores(),
        proxies=proxies,
        runner=partial(finish, what=f"searches of {plan.budget} evaluations in {location}"),
    )
    if plot is not None and rows:
        plots.draw(rows, plot)

    show = show_suite if suite else show_standings
    show(plan, rows, as_json)
    if failed:
        study, reason = next(iter(failed.items()))
        raise SearchError(
            f"{len(failed)} of {len(plan.jobs)} searches failed; the first: {study}: {reason}"
        )


def _suite(whole: bool, quick: bool) -> Suite | None:
    from archive.searches.comparison.suite import FULL, QUICK

    if quick and not whole:
        raise UsageError("--quick is a part of the suite: write --suite --quick")

    if not whole:
        return None

    return QUICK if quick else FULL


def _distinct(names: Sequence[str]) -> Sequence[str]:
    return tuple(dict.fromkeys(names))


def _starts(text: str) -> int:
    if text == "own":
        return 0

    number = whole_number(text)
    if number is None:
        raise UsageError(f"--starts takes a number of networks, or own, got {text!r:.80}")

    return number


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
