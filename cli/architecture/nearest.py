"""`archive arch nearest`: the networks of the archive that are most like one, with their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from archive.cli.architecture.argument import (
    architecture_of,
    input_option,
    is_key,
    setting_option,
)
from archive.cli.names import KERNEL, STUDY, TASK
from archive.cli.parameters import AliasedOption, Count
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_message,
    print_table,
)
from archive.values import assignments, counted

if TYPE_CHECKING:
    from archive.agents.nearest import Neighbour, Similar
    from archive.queries.relatives import Relative, RelativeResult, RelativeSpeed

NEIGHBOUR_COLUMNS = ("architecture", "distance", "layers", "edges", "evaluations", "configurations")
MOST_CONFIGURATIONS = 3
"""Most configurations of a network in a row of neighbours."""


@dataclass(frozen=True)
class NearestDocument:
    """The architectures that are nearest to one.

    Attributes:
        neighbours: The nearest first.
        certain: How many of them, from the first on, are sure to be the nearest.
        compared: Architectures that were compared in full.
        among: Architectures that were searched.
        left_out: Architectures of the space on which the kernel is not defined.
        relatives: The published networks among the neighbours, with results and speeds.
    """

    neighbours: Sequence[Neighbour]
    certain: int
    compared: int
    among: int
    left_out: int
    relatives: list[Relative]


@click.command(short_help="Show the nearest neighbours of an architecture.")
@click.argument("key")
@click.option("-k", "--k", type=Count(1), default=10, help="Number of neighbours.")
@click.option(
    "--kernel",
    cls=AliasedOption,
    aliases=["--kind"],
    type=KERNEL,
    show_default="weisfeiler-lehman for models, else otmann",
    help="Kernel (archive kernels).",
)
@click.option(
    "--component",
    metavar="NAME",
    show_default="mean of those not normalised",
    help="Component of the kernel to compare by.",
)
@setting_option
@input_option
@click.option(
    "--task", type=TASK, show_default="all tasks", help="Task of the published results to show."
)
@click.option(
    "--device",
    metavar="TEXT",
    show_default="all devices",
    help="Device of the published speeds to show, or a part of its name: rtx4090.",
)
@click.option(
    "--study",
    type=STUDY,
    show_default="whole archive",
    help="Search only architectures that this study evaluated.",
)
@json_option
@click.pass_context
def nearest(
    ctx: click.Context,
    key: str,
    k: int,
    kernel: str | None,
    component: str | None,
    assigned: tuple[str, ...],
    inputs: tuple[str, ...],
    task: str | None,
    device: str | None,
    study: str | None,
    as_json: bool,
) -> None:
    """Show the nearest neighbours of an architecture in its space.

    KEY is a key of the archive or its prefix, a file, a NAS-Bench-201 string, a genotype of DARTS
    (Genotype(normal=[...], ...)), or a model of your own: my_model.py:build, or MODULE:FACTORY. A
    file has the JSON of an architecture, a string or a genotype. A model is exported without memory
    for its weights, and not stored. Of a configuration of parameters, the neighbours of the network
    that its model builds are shown, with the configurations that build each.

    Published networks among the neighbours are shown with their results under the protocol that
    most of them have in common, their best results, and their measured speeds.

    Example: archive arch nearest my_model.py:build --task imagenet-1k --device rtx4090
    """
    from archive.agents.nearest import Nearest, default_kernel
    from archive.queries.relatives import relatives

    settings = assignments(assigned, "a setting")
    network = key if is_key(key) else architecture_of(ctx, key, inputs)
    with open_archive(ctx) as archive:
        search = Nearest(archive, notify=print_message)
        result = search.similar(network, k, kernel, component=component, study=study, **settings)
        keys = [neighbour.key for neighbour in result.neighbours]
        published = relatives(archive.connection, keys, task, device)

    if as_json:
        print_json(NearestDocument(**vars(result), relatives=published))
        return

    _print_neighbours(result)
    if published:
        _print_relatives(result, published)

    if result.left_out:
        count = counted(result.left_out, "architecture")
        used = kernel or default_kernel("" if isinstance(network, str) else network.space)
        print_message(
            (f"{count} of the space left out: the kernel {used} is not defined on them", "yellow")
        )

    if not result.exact:
        certain = f"the first {result.certain} are certain; others may be nearer than the rest"
        print_message(
            (
                f"{result.compared} of {result.among} architectures were compared: {certain}",
                "yellow",
            )
        )


def _print_neighbours(result: Similar) -> None:
    columns: Sequence[str] = NEIGHBOUR_COLUMNS
    if not any(neighbour.configurations for neighbour in result.neighbours):
        columns = NEIGHBOUR_COLUMNS[:-1]

    rows = []
    for neighbour in result.neighbours:
        keys = [key[:8] for key in neighbour.configurations[:MOST_CONFIGURATIONS]]
        if len(neighbour.configurations) > MOST_CONFIGURATIONS:
            keys.append("…")

        row = [*list(vars(neighbour).values())[:-1], " ".join(keys)]
        rows.append(row[: len(columns)])

    print_table(columns, rows)


def _print_relatives(result: Similar, published: Sequence[Relative]) -> None:
    distances = {neighbour.key: neighbour.distance for neighbour in result.neighbours}
    results = []
    speeds = []
    for relative in published:
        size = (relative.model, distances[relative.key], relative.params, relative.flops)
        comparable: dict[str, RelativeResult] = {}
        best: dict[str, RelativeResult] = {}
        for row in relative.results:
            (comparable if row.comparable else best)[row.task] = row

        for task in dict.fromkeys(row.task for row in relative.results):
            results.append((*size, task, *_result(comparable.get(task)), *_result(best.get(task))))

        for speed in relative.speeds:
            speeds.append((relative.model, *_speed(speed)))

    if results:
        columns = ("model", "distance", "params", "multiply-adds", "task")
        further = ("comparable", "protocol", "best", "protocol of the best")
        print_table((*columns, *further), results, title="published results")

    if speeds:
        columns_of_speeds = ("model", "task", "device", "samples per second", "latency ms")
        print_table(columns_of_speeds, speeds, title="published speeds")


def _result(result: RelativeResult | None) -> tuple[float | None, str | None]:
    return (None, None) if result is None else (result.value, result.protocol)


def _speed(speed: RelativeSpeed) -> tuple[str, str, float, float | None]:
    return speed.task, speed.protocol, speed.samples_per_second, speed.latency_ms
