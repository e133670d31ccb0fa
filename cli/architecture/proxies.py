"""`archive arch proxies`: zero-cost proxies of networks, measured where the archive has none."""

from __future__ import annotations

import time
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
        task, rules, networks = (
            _studied(archive, study) if study else _trained(task_name, protocol, space)
        )
        networks += [*named, *_drawn(task, space, count or 0)]
        progress = _MeasurementProgress()
        measured = measurement.measure(
            archive, task, rules, networks, device=device, progress=progress
        )
        scores = archive.proxies.of_networks(
            task.name, rules.name, SOURCE, {each.key for each in networks}
        )

    if as_json:
        rows = [{"architecture": key, "scores": each} for key, each in sorted(scores.items())]
        about = {"task": task.name, "protocol": rules.name, "source": SOURCE, "measured": measured}
        print_json({**about, "networks": rows})
        return

    print_message(
        f"{measured} of {len(scores)} networks measured on {task.name} ({rules.name}); "
        "the others were known"
    )
    names = sorted({name for each in scores.values() for name in each})
    shown = [(key[:12], *map(each.get, names)) for key, each in sorted(scores.items())[:MOST_SHOWN]]
    print_table(("architecture", *names), shown)
    if len(scores) > MOST_SHOWN:
        print_message(f"{len(scores) - MOST_SHOWN} more: --json shows all, or archive query")


def _trained(name: str | None, protocol: str | None, space: str | None) -> Measured:
    """Return a task with a protocol."""
    from archive.trainer.proxies.measurement import with_inputs
    from archive.trainer.tasks import registry

    if name is None:
        raise UsageError("name the task with --task, or a study with --study")

    task = with_inputs(registry.get(name))
    rules = task.protocol(protocol, space or "")
    registry.prepare(task, rules)
    return task, rules, []


def _studied(archive: Archive, name: str) -> Measured:
    """Return the task and the protocol of a study, and the networks that it evaluated."""
    from archive.trainer.proxies.measurement import subject_of
    from archive.trainer.tasks.file_access import FileAccess

    study = archive.studies.get(name)
    task, rules = subject_of(study, FileAccess.of(archive.connection.settings.home))
    return (
        task,
        rules,
        [each.architecture for each in archive.studies.evaluations(name, curves=False)],
    )


def _drawn(task: Task, space: str | None, count: int) -> list[Architecture]:
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
