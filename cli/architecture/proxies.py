"""`archive arch proxies`: zero-cost proxies of networks, measured where the archive has none."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from archive.cli.architecture.argument import architecture_of
from archive.cli.names import PROTOCOL, SPACE, STUDY, TASK
from archive.cli.parameters import Count
from archive.cli.render import json_option, open_archive, print_json, print_message, print_table
from archive.errors import UsageError

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.tasks.base import Task

    Measured = tuple[Task, TrainingProtocol, list[Architecture]]

MOST_SHOWN = 20
PAUSE = 10.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class ProxyScoresItem:
    """The zero-cost proxies of one network.

    Attributes:
        architecture: Key of the architecture.
        scores: Score by proxy; null where it is not defined for the network.
    """

    architecture: str
    scores: dict[str, float | None]


@dataclass(frozen=True)
class ProxyList:
    """Zero-cost proxies of networks on a task.

    Attributes:
        task: Name of the task.
        protocol: Its protocol.
        source: Definitions of the proxies.
        measured: Number of networks that were measured now; the others were known.
        networks: By key.
    """

    task: str
    protocol: str
    source: str
    measured: int
    networks: list[ProxyScoresItem]


@click.command(short_help="Measure the zero-cost proxies of architectures.")
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@click.option(
    "--task",
    "task_name",
    type=TASK,
    help="Task whose inputs the networks get; required without --study.",
)
@click.option(
    "--protocol", type=PROTOCOL, show_default="the task's first", help="Protocol of the task."
)
@click.option("--study", type=STUDY, help="Also the networks that a study evaluated, on its task.")
@click.option(
    "--space", type=SPACE, show_default="the task's first", help="Space of the networks of --count."
)
@click.option(
    "--count",
    type=Count(1),
    help="Also as many random networks of the space: the same ones for equal numbers, more for "
    "larger ones.",
)
@click.option(
    "--device", metavar="NAME", default="cpu", help="Device of the measurement, such as cuda:0."
)
@json_option
@click.pass_context
def proxies(
    ctx: click.Context,
    keys: tuple[str, ...],
    task_name: str | None,
    protocol: str | None,
    study: str | None,
    space: str | None,
    count: int | None,
    device: str,
    as_json: bool,
) -> None:
    """Measure zero-cost proxies of networks on one batch of a task, and show them.

    KEY is a key of the archive or its prefix, a file, a NAS-Bench-201 string, or a genotype of
    DARTS. Scores are stored with network and task, measured once, and used by all searches on the
    task. Published scores are imported by `archive import proxies`.
    """
    from archive.trainer.proxies import measurement
    from archive.trainer.proxies.measurement import SOURCE

    named = [architecture_of(ctx, key) for key in keys]
    if not (named or study or count):
        raise UsageError("name the networks to measure: by KEY, --study or --count")

    with open_archive(ctx) as archive:
        if study:
            task, rules, networks = _of_study(archive, study)
        else:
            task, rules, networks = _of_task(task_name, protocol, space)

        networks += [*named, *_sample(task, space, count or 0)]
        progress = _MeasurementProgress()
        measured = measurement.measure(
            archive, task, rules, networks, device=device, progress=progress
        )
        keys_of_networks = {network.key for network in networks}
        scores = archive.proxies.of_networks(task.name, rules.name, SOURCE, keys_of_networks)

    items = [ProxyScoresItem(key, values) for key, values in sorted(scores.items())]
    if as_json:
        print_json(ProxyList(task.name, rules.name, SOURCE, measured, items))
        return

    print_message(
        f"{measured} of {len(scores)} networks measured on {task.name} ({rules.name}); "
        "the others were known"
    )
    measured_names: set[str] = set()
    for item in items:
        measured_names |= item.scores.keys()

    names = sorted(measured_names)
    rows = []
    for item in items[:MOST_SHOWN]:
        rows.append((item.architecture[:12], *[item.scores.get(name) for name in names]))

    print_table(("architecture", *names), rows)
    if len(items) > MOST_SHOWN:
        print_message(f"{len(items) - MOST_SHOWN} more: --json shows all, or archive query")


def _of_task(name: str | None, protocol: str | None, space: str | None) -> Measured:
    """Return a task with a protocol."""
    from archive.trainer.proxies.measurement import with_inputs
    from archive.trainer.tasks import registry

    if name is None:
        raise UsageError("name the task with --task, or a study with --study")

    task = with_inputs(registry.get(name))
    rules = task.protocol(protocol, space or "")
    registry.prepare(task, rules)
    return task, rules, []


def _of_study(archive: Archive, name: str) -> Measured:
    """Return the task and the protocol of a study, and the networks that it evaluated."""
    from archive.trainer.proxies.measurement import subject_of
    from archive.trainer.tasks.file_access import FileAccess

    study = archive.studies.get(name)
    task, rules = subject_of(study, FileAccess.of(archive.connection.settings.home))
    return (
        task,
        rules,
        [evaluation.architecture for evaluation in archive.studies.evaluations(name, curves=False)],
    )


def _sample(task: Task, space: str | None, count: int) -> list[Architecture]:
    """Return random networks of a space: more of them begin with the same ones."""
    from archive.trainer.proxies.measurement import sample_of

    return sample_of(task.search_space(space), count) if count else []


class _MeasurementProgress:
    """Occasional lines about a measurement."""

    def __init__(self) -> None:
        self._printed = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Write a line if the last one is old."""
        if time.monotonic() - self._printed >= PAUSE:
            self._printed = time.monotonic()
            print_message(f"{done} of {total} networks measured")
