"""`archive import zoo`: the published networks of a package, with their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archive.cli.parameters import Count, Duration, ExistingFolder, Size
from archive.cli.render import (
    animation,
    console,
    json_option,
    open_archive,
    print_fields,
    print_json,
    print_message,
    print_table,
)

if TYPE_CHECKING:
    from archive.trainer.zoo.importing import ZooProgress

PAUSE = 30.0
"""Seconds between two lines of progress in a log."""


@dataclass(frozen=True)
class NetworkLeftOut:
    """A published network that could not come in, or some of its results.

    Attributes:
        name: Name of the architecture.
        results: Number of its results that are left out.
        reason: Why.
    """

    name: str
    results: int
    reason: str


@dataclass(frozen=True)
class ZooImport:
    """Published networks that were imported.

    Attributes:
        zoo: Name of the package.
        names: Number of names of networks that the archive has, of those asked for.
        architectures: Number of different networks that they name.
        evaluations: Number of their results.
        left_out: What could not come in.
        file: File with these, a line of JSON each.
    """

    zoo: str
    names: int
    architectures: int
    evaluations: int
    left_out: list[NetworkLeftOut]
    file: str


@click.command("zoo", short_help="Import the published networks of timm or torchvision.")
@click.argument("name", metavar="ZOO", type=click.Choice(["timm", "torchvision"]))
@click.option(
    "--models",
    "patterns",
    metavar="PATTERN",
    multiple=True,
    show_default="all with results",
    help="Architectures, as in 'resnet*', or models, as in '*.a1_in1k'. May be repeated.",
)
@click.option(
    "--results",
    "folder",
    type=ExistingFolder(),
    metavar="FOLDER",
    show_default="timm in the data folder, else fetched",
    help="Folder with timm's results-*.csv and benchmark-*.csv, which may be compressed (.csv.gz).",
)
@click.option("--processes", type=Count(1), show_default="one a core", help="Concurrent processes.")
@click.option(
    "--timeout",
    "seconds",
    type=Duration(open_minimum=True),
    default="10min",
    help="Leave a model out that takes longer than this.",
)
@click.option(
    "--memory-limit",
    "memory_bytes",
    type=Size(),
    default="8GB",
    help="Leave a model out whose process takes more memory than this.",
)
@click.option("--retry", is_flag=True, help="Try models again that could not come in before.")
@json_option
@click.pass_context
def zoo(
    ctx: click.Context,
    name: str,
    patterns: tuple[str, ...],
    folder: str | None,
    processes: int | None,
    seconds: float,
    memory_bytes: int,
    retry: bool,
    as_json: bool,
) -> None:
    """Import the networks of ZOO, timm or torchvision, that have published results.

    Each network is stored once, however many recipes trained it. Its results are evaluations of
    the tasks imagenet-1k, imagenet-real, imagenet-v2, imagenet-sketch, imagenet-r and imagenet-a
    under protocols such as timm/a1_in1k@288: recipe and side of the test images. Speeds are
    evaluations of the tasks inference and training. Models are built without weights, and nothing
    of a model is downloaded.

    The same command again continues after any interruption. Models that cannot come in are listed
    at the end, and in zoo/ZOO.jsonl in the home. Needs the extra zoo.
    """
    from archive import runtime
    from archive.trainer.zoo.importing import ZOOS, check_installed, import_zoo
    from archive.trainer.zoo.processes import BuildLimits
    from archive.trainer.zoo.published import select

    check_installed(name)
    networks = select(ZOOS[name].published(None if folder is None else Path(folder)), patterns)
    limits = BuildLimits(processes or runtime.count_cores(), seconds, memory_bytes)
    with open_archive(ctx) as archive, _progress(len(networks)) as progress:
        content = import_zoo(archive, name, networks, limits, again=retry, progress=progress)

    left_out = []
    for left in content.left_out:
        left_out.append(NetworkLeftOut(left.name, left.results, left.reason))

    imported = ZooImport(
        zoo=name,
        names=content.names,
        architectures=content.architectures,
        evaluations=content.evaluations,
        left_out=left_out,
        file=str(content.file),
    )
    if as_json:
        print_json(imported)
        return

    print_fields({**vars(imported), "left_out": len(left_out)}, 14)
    if left_out:
        rows = [(left.name, left.results, left.reason) for left in left_out]
        print_table(("left out", "results", "reason"), rows)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[ZooProgress], None]]:
    """Show a bar on a terminal, and occasional lines in a log."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    terminal = console()
    if not terminal.is_terminal:
        yield _ZooLines()
        return

    label = TextColumn("networks, {task.fields[left_out]} left out", markup=False)
    bar = Progress(
        BarColumn(), MofNCompleteColumn(), label, TimeRemainingColumn(), console=terminal
    )
    with animation(bar, terminal):
        task = bar.add_task("", total=total, left_out=0)

        def show(progress: ZooProgress) -> None:
            ended = progress.stored + progress.left_out
            bar.update(task, completed=ended, left_out=progress.left_out)

        yield show


class _ZooLines:
    """Progress as occasional lines."""

    def __init__(self) -> None:
        self.printed = time.monotonic()

    def __call__(self, progress: ZooProgress) -> None:
        if time.monotonic() - self.printed >= PAUSE:
            self.printed = time.monotonic()
            print_message(
                f"{progress.stored} of {progress.total} networks are in, "
                f"{progress.left_out} left out"
            )
