"""`archive bench`: measures the product on this machine; parses and renders only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from archive.cli.bench.first import first
from archive.cli.bench.search import search
from archive.cli.bench.transfer import transfer
from archive.cli.main import settings_of
from archive.cli.render import json_option, print_json, print_message, print_table
from archive.errors import UsageError


@click.group()
def bench() -> None:
    """Measure the product on this machine, each figure beside its goal or a reference of the same run."""


bench.add_command(first)
bench.add_command(search)
bench.add_command(transfer)


@bench.command()
@click.option(
    "--table", type=click.Path(path_type=Path), help="NAS-Bench-201 as CSV [nb201.csv.gz of ARCHIVE_DATA_DIR]."
)
@click.option(
    "--architectures",
    type=click.IntRange(10),
    metavar="N",
    help="Measure an archive of N evaluated architectures instead: load, disk, memory, questions, histories.",
)
@json_option
@click.pass_context
def store(ctx: click.Context, table: Path | None, architectures: int | None, as_json: bool) -> None:
    """Measure the embedded server: start, memory, bulk import, claims, whole life cycles.

    With --architectures, the database of --db if there is one, which must be empty and stays filled. 100,000 take
    minutes, and 2 GB of disk.
    """
    if architectures is not None:
        from archive import settings
        from archive.agents.benchmarks.scale import measure as measure_scale

        if table is not None:
            raise UsageError("--architectures makes up its own, got --table as well")
        own = settings.load(**settings_of(ctx))
        figures = measure_scale(architectures, None if own.embedded else own, notify=print_message)
        _print({"scale": figures}, as_json)
        return
    from archive.benchmarks.store import measure

    _print({"store": measure(table)}, as_json)


@bench.command()
@click.option("--workers", multiple=True, type=click.IntRange(1), help="Processes; may be repeated [1 and 8].")
@json_option
@click.pass_context
def throughput(ctx: click.Context, workers: tuple[int, ...], as_json: bool) -> None:
    """Measure life cycles a second (propose, claim, three reports, complete) beside Optuna's storages.

    On an embedded server of its own, or on the database of --db, which is left as it was but for the networks.
    """
    from archive import settings
    from archive.trainer.benchmarks.throughput import WORKERS, measure

    own = settings.load(**settings_of(ctx))
    _print({"throughput": measure(own, workers or WORKERS)}, as_json)


@bench.command()
@click.option("--turns", type=click.IntRange(1), default=8, show_default=True, help="How often each loop trains.")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda …; auto takes a GPU if there is one.")
@json_option
def trainer(turns: int, device: str, as_json: bool) -> None:
    """Measure trials: inputs a second beside a plain loop, what is spent around it, what a start costs."""
    from archive.trainer.benchmarks.overhead import measure

    _print({"trainer": measure(turns, device=device)}, as_json)


@bench.command()
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the chain and its trainings.")
@json_option
def morphism(seed: int, as_json: bool) -> None:
    """Train a chain of networks, each from its parent's weights, and each of them from scratch.

    On Fashion-MNIST; takes minutes.
    """
    from archive.trainer.benchmarks.morphism import measure

    _print({"morphism": measure(seed=seed, say=print_message)}, as_json)


@bench.command()
@click.option("--golden", type=click.Path(path_type=Path), help="Golden distances [otmann.json near ARCHIVE_DATA_DIR].")
@json_option
def kernels(golden: Path | None, as_json: bool) -> None:
    """Measure the kernels: golden numbers, axioms, speeds beside naive references."""
    from archive.kernels.benchmarks import arc, axioms, edit, encodings, otmann, tree_wasserstein, wasserstein

    subjects = {
        "axioms": axioms.measure,
        "otmann": lambda: otmann.measure(golden),
        "tree-wasserstein": tree_wasserstein.measure,
        "edit": edit.measure,
        "encodings": encodings.measure,
        "wasserstein": wasserstein.measure,
        "arc": arc.measure,
    }
    _print(_measured(subjects), as_json)


@bench.command()
@click.option("--seeds", type=click.IntRange(1), default=20, show_default=True, help="Repetitions, each split anew.")
@click.option("--task", "tasks", multiple=True, help="Table to rank; may be repeated [all three].")
@click.option("--size", "sizes", multiple=True, type=int, help="Networks to learn from; may be repeated [20 to 500].")
@click.option("--kernel", "chosen", multiple=True, help="Kernel to rank with; may be repeated [all].")
@click.option("--surrogate", "learners", multiple=True, help="Surrogate to rank with; may be repeated [all].")
@click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="Surrogates at a time.")
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
    """Measure the surrogates: exactness, speeds, and how well each ranks networks it has not seen.

    The tables of NAS-Bench-101 and 201 are looked for in ARCHIVE_DATA_DIR.
    """
    from archive.agents.benchmarks import dpp, ensemble, gp, ranking, table1

    wanted = ranking.contestants(kernels=chosen, surrogates=learners)
    # Asked for first, so that a mistake is not found after minutes of measuring.
    standings = ranking.measure(
        tasks or tuple(ranking.TASKS), wanted, sizes=sizes or ranking.SIZES, seeds=seeds, processes=processes
    )
    subjects = {
        "gp": gp.measure,
        "ensemble": ensemble.measure,
        "k-dpp": dpp.measure,
        "table 1 of BANANAS": lambda: table1.measure(seeds=seeds),
        "rank correlations": lambda: list(standings),
    }
    _print(_measured(subjects), as_json)


@bench.command()
@json_option
def agents(as_json: bool) -> None:
    """Measure mutations, and the seconds that agents take to decide."""
    from archive.agents.benchmarks.proposals import measure
    from archive.benchmarks.spaces import measure as measure_spaces

    _print({"spaces": measure_spaces(), "agents": measure()}, as_json)


def _measured(subjects: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """Measure one subject after the other, saying on stderr which."""
    found = {}
    for name, measure in subjects.items():
        print_message(f"measuring: {name}")
        found[name] = measure()
    return found


def _print(parts: Mapping[str, Iterable[Any]], as_json: bool) -> None:
    """Write the figures of each subject, a table or a JSON list each."""
    found = {name: [row._asdict() for row in rows] for name, rows in parts.items()}
    if as_json:
        print_json(found)
        return
    for name, rows in found.items():
        if rows:
            print_table(list(rows[0]), [list(row.values()) for row in rows], title=name)
