"""`archive bench`: the group of measurements, and the speed of this machine."""

from __future__ import annotations

from dataclasses import dataclass

import click

from archive.cli.bench.search import search
from archive.cli.groups import CommandGroup
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_json, print_message, print_table


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


@click.command(short_help="Measure this machine in under a minute.")
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


bench.add_command(machine)
bench.add_command(search)
