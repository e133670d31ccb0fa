"""`archive import`: external results as evaluations and studies of the archive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archive.cli.exchange.import_hf import hf
from archive.cli.exchange.import_history import git, mlflow, neptune, tensorboard, wandb
from archive.cli.exchange.import_models import model, onnx_file
from archive.cli.exchange.import_optuna import optuna
from archive.cli.exchange.import_runs import import_runs
from archive.cli.exchange.import_zoo import zoo
from archive.cli.exchange.provenance import provenance_of, provenance_options
from archive.cli.groups import CommandGroup
from archive.cli.names import PROTOCOL, TASK
from archive.cli.render import json_option, open_archive, print_fields, print_json, print_message
from archive.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from archive.trainer.tasks.base import Task
    from archive.trainer.tasks.tabular import TabularTask


@dataclass(frozen=True)
class ImportDocument:
    """Results that were imported from a table or a benchmark file.

    Attributes:
        task: Name of the task.
        protocol: How it was measured.
        evaluations: Number of results that the file has.
    """

    task: str
    protocol: str
    evaluations: int


@dataclass(frozen=True)
class ProxyImport:
    """Zero-cost proxies that were imported from a table.

    Attributes:
        tasks: Names of the tasks.
        proxies: Names of the proxies.
        networks: Number of networks that the file has.
    """

    tasks: list[str]
    proxies: list[str]
    networks: int


@click.group("import", cls=CommandGroup)
def imports() -> None:
    """Import external results: runs of other tools, tables, benchmark files, models, zoos."""


@imports.command()
@click.argument("task", type=TASK)
@click.option(
    "--protocol",
    type=PROTOCOL,
    show_default="the task's first",
    help="Protocol: the column to import.",
)
@provenance_options
@json_option
@click.pass_context
def table(
    ctx: click.Context, /, task: str, protocol: str | None, as_json: bool, **origin: str | None
) -> None:
    """Import every network of a table as an evaluation.

    TASK is a tabular task: nb201-cifar10, nb101, table:PATH#COLUMN. Searches on the task then know
    every result. The other columns become metrics. Networks without a finite value are left out,
    and one line says how many.
    """
    from archive.exchange.importers.external import add, external_results, left_out
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.tabular import TabularTask

    tabular = registry.get(task)
    if not isinstance(tabular, TabularTask):
        raise UsageError(
            f"only a tabular task can be imported, and networks are trained on {task!r}"
        )

    column = tabular.protocol(protocol).name
    with open_archive(ctx) as archive:
        count = add(
            archive,
            tabular.name,
            column,
            external_results(tabular, column),
            direction=tabular.direction,
            provenance=provenance_of(origin),
        )

    value = tabular.protocol(column).column
    for line in left_out(tabular.table, value):
        print_message(line)

    networks = len(tabular.table)
    if count < networks:
        print_message(
            f"{networks - count} of {networks} networks are left out: "
            f"their {value} is missing, or no finite number"
        )

    _print_import(ImportDocument(tabular.name, column, count), as_json)


@imports.command(short_help="Import published zero-cost proxies.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--task",
    "names",
    type=TASK,
    multiple=True,
    required=True,
    help="Task whose searches use the scores. May be repeated.",
)
@click.option(
    "--protocol",
    type=PROTOCOL,
    show_default="all protocols of a table, else the first",
    help="Protocol.",
)
@click.option(
    "--proxy",
    "columns",
    metavar="COLUMN",
    multiple=True,
    show_default="all numbers",
    help="Column. May be repeated.",
)
@json_option
@click.pass_context
def proxies(
    ctx: click.Context,
    file: Path,
    names: tuple[str, ...],
    protocol: str | None,
    columns: tuple[str, ...],
    as_json: bool,
) -> None:
    """Import zero-cost proxies of networks from FILE, such as a table of NAS-Bench-Suite-Zero.

    FILE is a CSV table: columns that describe a network, as in other tables, and a column for each
    proxy. Searches on the tasks use the scores. Leave out columns of trained quantities by --proxy.
    """
    from archive.exchange.importers.proxies import ProxyTask, import_proxies
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.tabular import TabularTask

    tasks = list(map(registry.get, names))
    proxy_tasks = []
    for task in tasks:
        decisions = _decisions(task)
        spaces = task.suitable_spaces()
        if protocol is None and isinstance(task, TabularTask):
            for rules in task.protocols:
                proxy_tasks.append(ProxyTask(task.name, rules.name, decisions, spaces))
        else:
            name = task.protocol(protocol).name
            proxy_tasks.append(ProxyTask(task.name, name, decisions, spaces))

    with open_archive(ctx) as archive:
        imported, count = import_proxies(archive, file, proxy_tasks, columns)

    _print_import(ProxyImport([task.name for task in tasks], imported, count), as_json)


@imports.command(short_help="Import an official NAS-Bench-101 file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--epochs",
    type=click.Choice(["4", "12", "36", "108"]),
    default="108",
    help="Length of the trainings to import.",
)
@provenance_options
@json_option
@click.pass_context
def nasbench101(
    ctx: click.Context, /, file: Path, epochs: str, as_json: bool, **origin: str | None
) -> None:
    """Import an official NAS-Bench-101 FILE, nasbench_only108.tfrecord, as evaluations of nb101."""
    from archive.exchange.importers.external import add
    from archive.exchange.importers.nasbench101 import TASK, external_results

    protocol = f"{TASK}/{epochs}"
    with open_archive(ctx) as archive:
        results = external_results(file, int(epochs))
        count = add(
            archive,
            TASK,
            protocol,
            results,
            direction="maximise",
            provenance=provenance_of(origin),
            notify=print_message,
        )

    _print_import(ImportDocument(TASK, protocol, count), as_json)


@imports.command(short_help="Import an official NAS-Bench-201 file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--task",
    metavar="NAME",
    default="nb201-cifar10",
    help="nb201-cifar10, nb201-cifar100 or nb201-imagenet16.",
)
@click.option(
    "--epochs",
    type=click.Choice(["12", "200"]),
    default="200",
    help="Length of the trainings to import.",
)
@provenance_options
@json_option
@click.pass_context
def nasbench201(
    ctx: click.Context,
    /,
    file: Path,
    task: str,
    epochs: str,
    as_json: bool,
    **origin: str | None,
) -> None:
    """Import an official NAS-Bench-201 FILE, NAS-Bench-201-v1_1-096897.pth, as evaluations of a
    task.

    Files of NATS-Bench are read, too: NATS-tss-v1_0-3ffb9.pickle.pbz2, or the folder
    NATS-tss-v1_0-3ffb9-simple. They are pickles. They are read without executing their code, and
    refused if they hold anything but numbers. Reading one file takes several times its size in
    memory; the folder, and `archive import table nb201-cifar10`, take little.
    """
    from archive.exchange.importers.external import add
    from archive.exchange.importers.nasbench201 import TASKS, external_results
    from archive.exchange.releases.nasbench201 import read

    if task not in TASKS:
        raise UnknownNameError("task of NAS-Bench-201", task, TASKS)

    content = read(file)
    protocol = f"nb201/{epochs}"
    with open_archive(ctx) as archive:
        results = external_results(file, content, task, int(epochs))
        count = add(
            archive,
            task,
            protocol,
            results,
            direction="maximise",
            provenance=provenance_of(origin),
            notify=print_message,
        )

    _print_import(ImportDocument(task, protocol, count), as_json)


for history in (git, mlflow, neptune, tensorboard, wandb):
    imports.add_command(history)

imports.add_command(hf)
imports.add_command(model)
imports.add_command(onnx_file)
imports.add_command(optuna)
imports.add_command(import_runs)
imports.add_command(zoo)


def _decisions(task: Task | TabularTask) -> Mapping[str, Any]:
    """Return the settings of the choices of a task's table; empty for other tasks."""
    from archive.trainer.tasks.tabular import TabularTask

    if not isinstance(task, TabularTask) or "choices" not in task.suitable_spaces():
        return {}

    return task.search_space().config


def _print_import(document: ImportDocument | ProxyImport, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_fields(vars(document), 12)
