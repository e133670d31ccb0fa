"""`archive bench`: the group of measurements."""

from __future__ import annotations

import click

from archive.cli.bench.machine import machine
from archive.cli.bench.search import search
from archive.cli.groups import CommandGroup


@click.group(cls=CommandGroup)
def bench() -> None:
    """Compare agents on tables, and measure the speed of this machine."""


bench.add_command(machine)
bench.add_command(search)
