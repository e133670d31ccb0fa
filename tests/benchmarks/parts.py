"""Speed and exactness of the parts: `python -m tests.benchmarks store`, `trainer`, `kernels` …"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import click

from archive.cli.names import KERNEL, TASK
from archive.cli.parameters import Count, settings_of
from archive.cli.render import json_option, print_json, print_message, print_table, show
from archive.errors import UsageError
from archive.searches.interruption import InterruptedBySignal

Subject = Callable[[], Iterable[Any]]
"""Returns or yields the figures of one subject, as named tuples."""


@click.command(short_help="Measure the embedded server.")
@click.option(
    "--table",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="nb201.csv.gz in ARCHIVE_DATA_DIR",
    help="NAS-Bench-201 as CSV.",
)
@click.option(
    "--architectures",
    type=Count(10),
    help="Measure an archive of N evaluated architectures instead: load, disk, memory, queries, "
    "histories.",
)
@json_option
@click.pass_context
def store(ctx: click.Context, table: Path | None, architectures: int | None, as_json: bool) -> None:
    """Measure the embedded server: start, memory, bulk import, claims, whole life cycles.

    With --architectures, the database of --db is measured, where one is given. It must be empty,
    and stays filled: 100,000 architectures take minutes and 2 GB of disk.
    """
    if architectures is not None:
        from archive import settings
        from tests.benchmarks.store.scale import measure as measure_scale

        if table is not None:
            raise UsageError("--architectures generates its networks and takes no --table")

        database = settings.load(**settings_of(ctx))
        figures = measure_scale(
            architectures, None if database.embedded else database, notify=print_message
        )
        _print_measured({"scale": lambda: figures}, as_json)
        return

    from tests.benchmarks.store.server import measure

    _print_measured({"store": lambda: measure(table)}, as_json)


@click.command(short_help="Measure the page with many evaluations.")
@click.option(
    "--evaluations",
    type=Count(100),
    show_default="100000; with --browsers, 4000 of each search",
    help="Number of evaluations of the study.",
)
@click.option(
    "--runs",
    type=Count(100),
    help="Measure instead the page of a study with so many recorded runs, 100 steps each.",
)
@click.option(
    "--browsers",
    type=Count(1),
    help="Measure instead what N clients of the live page cost a search, in turns with the same "
    "search alone.",
)
@click.option(
    "--workers", type=Count(1), default=8, help="With --browsers: number of trainers of the search."
)
@click.option(
    "--turns",
    type=Count(2),
    default=12,
    help="With --browsers: number of searches, half of them alone.",
)
@json_option
def dashboard(
    evaluations: int | None,
    runs: int | None,
    browsers: int | None,
    workers: int,
    turns: int,
    as_json: bool,
) -> None:
    """Measure the page over a study with many evaluations: requests, views in a browser, live
    results.

    Runs on a separate embedded server. The browser is Chromium, driven by Playwright; without them,
    only requests are measured. The clients of --browsers make the requests of an open page, and
    draw nothing.
    """
    from archive.cli.serving import check_installed

    check_installed()
    if browsers is not None:
        from tests.benchmarks.dashboard.searches import EVALUATIONS, measure

        figures = measure(browsers, workers, turns, evaluations or EVALUATIONS, print_message)
    elif runs is not None:
        from tests.benchmarks.dashboard import runs as recorded

        figures = recorded.measure(runs)
    else:
        from tests.benchmarks.dashboard import page

        figures = page.measure(evaluations or page.EVALUATIONS)

    _print_measured({"dashboard": lambda: figures}, as_json)


@click.command(short_help="Measure life cycles a second beside Optuna's storages.")
@click.option(
    "--workers",
    multiple=True,
    type=Count(1),
    show_default="1 and 8",
    help="Number of processes. May be repeated.",
)
@json_option
@click.pass_context
def throughput(ctx: click.Context, workers: tuple[int, ...], as_json: bool) -> None:
    """Measure life cycles a second (propose, claim, three reports, complete) beside Optuna's
    storages.

    Runs on a separate embedded server, or on the database of --db, in which only the networks
    remain.
    """
    from archive import settings
    from tests.benchmarks.trainer.throughput import WORKERS, measure

    database = settings.load(**settings_of(ctx))
    _print_measured({"throughput": lambda: measure(database, workers or WORKERS)}, as_json)


@click.command(short_help="Measure a server with a simulated fleet of trainers.")
@click.option(
    "--trainers",
    multiple=True,
    type=Count(1),
    show_default="100, 300 and 1000",
    help="Number of trainers. May be repeated.",
)
@click.option("--seconds", type=Count(1), default=120, help="Duration of each phase.")
@click.option(
    "--trial",
    "trials",
    multiple=True,
    type=Count(1),
    show_default="60 and 600",
    help="Seconds of a trial, with an epoch a second. May be repeated.",
)
@json_option
@click.pass_context
def fleet(
    ctx: click.Context,
    trainers: tuple[int, ...],
    seconds: int,
    trials: tuple[int, ...],
    as_json: bool,
) -> None:
    """Measure a server with a simulated fleet: an idle one, and one that trains.

    The trainers have no processes, and make the calls of real ones. Runs on a separate embedded
    server, or on the database of --db, in which only the networks remain.
    """
    from archive import settings
    from tests.benchmarks.trainer.fleet import TRAINERS, TRIAL_SECONDS, measure

    database = settings.load(**settings_of(ctx))
    chosen = tuple(map(float, trials)) or TRIAL_SECONDS
    figures = measure(database, trainers or TRAINERS, float(seconds), chosen, print_message)
    _print_measured({"fleet": lambda: figures}, as_json)


@click.command(short_help="Measure trials beside a plain training loop.")
@click.option("--turns", type=Count(1), default=10, help="Number of trainings by each loop.")
@click.option(
    "--device", metavar="DEVICE", default="auto", help="cpu, cuda …; auto: a GPU if there is one."
)
@json_option
def trainer(turns: int, device: str, as_json: bool) -> None:
    """Measure trials: inputs a second beside a plain loop, overhead, and time to start."""
    from tests.benchmarks.trainer.overhead import measure

    _print_measured({"trainer": lambda: measure(turns, device=device)}, as_json)


@click.command("decoder-parts", short_help="Measure the parts of decoders.")
@click.option("--turns", type=Count(1), default=15, help="Number of steps by each loop.")
@json_option
def decoder_parts(turns: int, as_json: bool) -> None:
    """Measure the parts of decoders beside plain PyTorch, and linear mixers by the length."""
    from tests.benchmarks.trainer.decoder_parts import measure

    _print_measured({"decoder-parts": lambda: measure(turns)}, as_json)


@click.command(short_help="Measure weight inheritance.")
@click.option(
    "--seed", type=Count(0), default=0, help="Random seed of the chain and its trainings."
)
@json_option
def morphism(seed: int, as_json: bool) -> None:
    """Measure weight inheritance: train a chain of networks from their parents' weights, and from
    scratch.

    Trains on Fashion-MNIST, and takes minutes.
    """
    from tests.benchmarks.trainer.morphism import measure

    _print_measured({"morphism": lambda: measure(seed=seed, report=print_message)}, as_json)


@click.command(short_help="Measure the kernels: exactness, axioms, speed.")
@click.option(
    "--golden",
    type=click.Path(path_type=Path),
    metavar="FILE",
    show_default="otmann.json near ARCHIVE_DATA_DIR",
    help="Reference distances of OTMANN.",
)
@json_option
def kernels(golden: Path | None, as_json: bool) -> None:
    """Measure the kernels: reference distances, axioms, and speed beside naive implementations."""
    from tests.benchmarks.kernels import (
        arc,
        axioms,
        deep,
        edit,
        encodings,
        otmann,
        tree_wasserstein,
        wasserstein,
    )

    subjects: dict[str, Subject] = {
        "axioms": axioms.measure,
        "otmann": lambda: otmann.measure(golden),
        "networks of a thousand layers": deep.measure,
        "tree-wasserstein": tree_wasserstein.measure,
        "edit": edit.measure,
        "encodings": encodings.measure,
        "wasserstein": wasserstein.measure,
        "arc": arc.measure,
    }
    _print_measured(subjects, as_json)


@click.command(short_help="Measure the surrogates: exactness, speed, rank correlation.")
@click.option(
    "--seeds", type=Count(1), default=20, help="Number of repetitions, each with another split."
)
@click.option(
    "--task",
    "tasks",
    type=TASK,
    multiple=True,
    show_default="all three",
    help="Tabular task. May be repeated.",
)
@click.option(
    "--size",
    "sizes",
    multiple=True,
    type=int,
    metavar="N",
    show_default="20 to 500",
    help="Number of training networks. May be repeated.",
)
@click.option(
    "--kernel",
    "chosen",
    type=KERNEL,
    multiple=True,
    show_default="all kernels",
    help="Kernel. May be repeated.",
)
@click.option(
    "--surrogate",
    "learners",
    multiple=True,
    metavar="NAME",
    show_default="all surrogates",
    help="Surrogate. May be repeated.",
)
@click.option("--processes", type=Count(1), default=1, help="Number of surrogates at a time.")
@json_option
def surrogates(
    seeds: int,
    tasks: tuple[str, ...],
    sizes: tuple[int, ...],
    chosen: tuple[str, ...],
    learners: tuple[str, ...],
    processes: int,
    as_json: bool,
) -> None:
    """Measure the surrogates: exactness, speed, and rank correlation on held-out networks.

    Needs the tables of NAS-Bench-101 and NAS-Bench-201 in ARCHIVE_DATA_DIR.
    """
    from tests.benchmarks.agents import dpp, ensemble, gp, ranking, table1

    contestants = ranking.contestants(kernels=chosen, surrogates=learners)
    # First of all, so that a mistake in an option does not show after minutes of measuring.
    standings = ranking.measure(
        tasks or tuple(ranking.TASKS),
        contestants,
        sizes=sizes or ranking.SIZES,
        seeds=seeds,
        processes=processes,
    )
    subjects: dict[str, Subject] = {
        "gp": gp.measure,
        "ensemble": ensemble.measure,
        "k-dpp": dpp.measure,
        "table 1 of BANANAS": lambda: table1.measure(seeds=seeds),
        "rank correlations": lambda: standings,
    }
    _print_measured(subjects, as_json)


@click.command(short_help="Measure mutations and proposals.")
@json_option
def agents(as_json: bool) -> None:
    """Measure mutations, and the seconds that agents take to propose."""
    from tests.benchmarks.agents.proposals import measure
    from tests.benchmarks.spaces import measure as measure_spaces

    _print_measured({"spaces": measure_spaces, "agents": measure}, as_json)


@click.command(short_help="Measure pictures of networks.")
@json_option
def drawing(as_json: bool) -> None:
    """Measure the time of pictures of networks of 200 layers."""
    from tests.benchmarks.drawing import measure

    _print_measured({"drawing": measure}, as_json)


def _print_measured(subjects: Mapping[str, Subject], as_json: bool) -> None:
    """Measure one subject after another, and write the figures: a table or a JSON list for each.

    Each figure is a line on stderr as soon as it is measured. Where the measurement is cut off, the
    tables have the figures up to then.

    Args:
        subjects: The subjects by name.
        as_json: Whether to write JSON.
    """
    figures: dict[str, list[dict[str, Any]]] = {}
    try:
        for name, measure in subjects.items():
            print_message(f"measuring: {name}")
            figures[name] = []
            rows = measure()
            # At the end of a generator its server and its folder go, also where a reader of the
            # lines has gone.
            with closing(rows) if isinstance(rows, Generator) else nullcontext():
                for row in rows:
                    figures[name].append(row._asdict())
                    print_message(
                        f"  {', '.join(show(value) for value in row if value not in (None, ''))}"
                    )
    except BaseException as error:
        if not as_json:
            _print_tables(figures)

        if isinstance(error, KeyboardInterrupt):
            number = getattr(error, "signal", signal.SIGINT)
            raise InterruptedBySignal(
                number, "interrupted: the figures up to here are shown"
            ) from error

        raise

    if as_json:
        print_json({"figures": figures})
    else:
        _print_tables(figures)


def _print_tables(figures: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    for name, rows in figures.items():
        if rows:
            print_table(list(rows[0]), [list(row.values()) for row in rows], title=name)
