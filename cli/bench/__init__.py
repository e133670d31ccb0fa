"""`archive bench`: measures the product on this machine; parses and renders only."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from archive.cli.render import json_option, print_json, print_table


@click.group()
def bench() -> None:
    """Measure the product on this machine, each figure beside its goal or a reference of the same run."""


@bench.command()
@click.option(
    "--table", type=click.Path(path_type=Path), help="NAS-Bench-201 as CSV [nb201.csv.gz of ARCHIVE_DATA_DIR]."
)
@json_option
def store(table: Path | None, as_json: bool) -> None:
    """Measure the embedded server: start, memory, bulk import, claims, whole life cycles."""
    from archive.benchmark_store import measure

    _print(measure(table), as_json)


@bench.command()
@click.option("--golden", type=click.Path(path_type=Path), help="Golden distances [otmann.json near ARCHIVE_DATA_DIR].")
@json_option
def kernels(golden: Path | None, as_json: bool) -> None:
    """Measure OTMANN: its error against golden numbers, its speed beside a plain solver."""
    from archive.kernels.benchmark import measure

    _print(measure(golden), as_json)


@bench.command()
@json_option
def agents(as_json: bool) -> None:
    """Measure mutations, and NASBOT's seconds a proposal at 20 observations."""
    from archive.agents.benchmark import measure
    from archive.benchmark_spaces import measure as measure_spaces

    _print([*measure_spaces(), *measure()], as_json)


def _print(rows: Iterable[Any], as_json: bool) -> None:
    found = [row if isinstance(row, dict) else row._asdict() for row in rows]
    if as_json:
        print_json(found)
    else:
        print_table(list(found[0]), [list(row.values()) for row in found])
