"""`archive bench`: the group of measurements."""

from __future__ import annotations

import click

from archive.cli.bench import first, objectives, search, speed, transfer
from archive.cli.groups import CommandGroup


@click.group(cls=CommandGroup)
def bench() -> None:
    """Measure speed and search quality on this machine, each figure beside its goal or a reference
    of the same run.
    """


COMMANDS = (
    *(first.first, search.search, objectives.objectives, transfer.transfer),
    *(
        speed.agents,
        speed.dashboard,
        speed.drawing,
        speed.kernels,
        speed.morphism,
        speed.store,
        speed.surrogates,
    ),
    *(speed.fleet, speed.throughput, speed.trainer),
)

for each in COMMANDS:
    bench.add_command(each)
