"""`archive import`: external results as evaluations and studies of the archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archive import files
from archive.cli.exchange.import_models import model, onnx_file
from archive.cli.groups import CommandGroup
from archive.cli.names import PROTOCOL, SPACE, TASK
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


@dataclass(frozen=True)
class StudyImport:
    """A study that was imported.

    Attributes:
        study: Its name in the archive.
        task: Name of the task.
        protocol: How it was measured.
        evaluated: Trials with a result.
        pruned: Trials that were pruned after they had reported a value.
        failed: Trials without one.
        left_out: Trials that are not finished.
    """

    study: str
    task: str
    protocol: str
    evaluated: int
    pruned: int
    failed: int
    left_out: int


@click.group("import", cls=CommandGroup)
def imports() -> None:
    """Import external results: tables, official benchmark files, Optuna studies, models."""


@imports.command()
@click.argument("task", type=TASK)
@click.option(
    "--protocol",
    type=PROTOCOL,
    show_default="the task's first",
    help="Protocol: the column to import.",
)
@json_option
@click.pass_context
def table(ctx: click.Context, task: str, protocol: str | None, as_json: bool) -> None:
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
@json_option
@click.pass_context
def nasbench101(ctx: click.Context, file: Path, epochs: str, as_json: bool) -> None:
    """Import an official NAS-Bench-101 FILE, nasbench_only108.tfrecord, as evaluations of nb101."""
    from archive.exchange.importers.external import add
    from archive.exchange.importers.nasbench101 import TASK, external_results

    protocol = f"{TASK}/{epochs}"
    with open_archive(ctx) as archive:
        results = external_results(file, int(epochs))
        count = add(archive, TASK, protocol, results, direction="maximise", notify=print_message)

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
@json_option
@click.pass_context
def nasbench201(ctx: click.Context, file: Path, task: str, epochs: str, as_json: bool) -> None:
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
        count = add(archive, task, protocol, results, direction="maximise", notify=print_message)

    _print_import(ImportDocument(task, protocol, count), as_json)


@imports.command(short_help="Import an Optuna study.")
@click.argument("reference", metavar="URL#STUDY")
@click.option("--task", type=TASK, required=True, help="Task of the study.")
@click.option("--space", type=SPACE, required=True, help="Search space of the architectures.")
@click.option(
    "--protocol", metavar="NAME", show_default="TASK/own", help="Name of the training protocol."
)
@click.option(
    "--study",
    metavar="NAME",
    show_default="Optuna's name",
    help="Name of the study in the archive.",
)
@click.option(
    "--objective",
    "objectives",
    metavar="NAME",
    multiple=True,
    show_default="Optuna's metric names, else value",
    help="Name of an optimised metric; of several, in their order. May be repeated.",
)
@click.option(
    "--architecture",
    "function",
    metavar="MODULE:FUNCTION",
    help="Function that returns the architecture for the parameters of a trial.",
)
@json_option
@click.pass_context
def optuna(
    ctx: click.Context,
    reference: str,
    task: str,
    space: str,
    protocol: str | None,
    study: str | None,
    objectives: tuple[str, ...],
    function: str | None,
    as_json: bool,
) -> None:
    """Import an Optuna study, sqlite:///FILE#STUDY, whose trials describe architectures.

    The architecture of a trial is its user attribute `architecture` (JSON, a NAS-Bench-201 string
    or a genotype), the result of --architecture for its parameters, or the network of its
    parameters as decisions of `archive search --agent tpe`. Several objectives, constraints, pruned
    trials with their curves, times and user attributes are kept; a NaN or an infinity fails its
    trial.
    """
    from archive import spaces
    from archive.agents.encodings import decisions_of, from_choices
    from archive.exchange.importers.optuna import import_study, objective_names, open_study
    from archive.exchange.importers.optuna.trials import by_function, reader
    from archive.store.records import Objective, Study

    search_space = spaces.get(space)
    if function:
        choose = by_function(_load_function(function))
    else:
        choose = partial(from_choices, decisions_of(search_space, "tpe"))

    read = reader(search_space, choose)
    external = open_study(reference)
    name = study or external.study_name
    with open_archive(ctx) as archive:
        first, *others = map(Objective, objective_names(archive, external, name, objectives))
        target = Study(
            name,
            task,
            protocol or f"{task}/own",
            search_space.name,
            first.name,
            space_config=search_space.config,
            further=tuple(others),
        )
        counts = import_study(archive, external, target, read, print_message)

    _print_import(StudyImport(name, task, target.protocol, **counts), as_json)


imports.add_command(model)
imports.add_command(onnx_file)


def _decisions(task: Task | TabularTask) -> Mapping[str, Any]:
    """Return the settings of the choices of a task's table; empty for other tasks."""
    from archive.trainer.tasks.tabular import TabularTask

    if not isinstance(task, TabularTask) or "choices" not in task.suitable_spaces():
        return {}

    return task.search_space().config


def _load_function(reference: str) -> Callable[[Mapping[str, Any]], Any]:
    module, separator, name = reference.partition(":")
    if not separator or not module or not name:
        raise UsageError(f"--architecture takes MODULE:FUNCTION, got {reference!r}")

    try:
        function = attrgetter(name)(files.imported(module))
    except (Exception, SystemExit) as error:
        reason = f"{next(iter(str(error).splitlines()), ''):.200}"
        if not isinstance(error, ImportError | AttributeError):
            reason = f"{type(error).__name__}: {reason}"

        raise UsageError(f"--architecture {reference} cannot be loaded: {reason}") from None

    if not callable(function):
        raise UsageError(
            f"--architecture {reference} must be a function, got {type(function).__name__}"
        )

    read: Callable[[Mapping[str, Any]], Any] = function
    return read


def _print_import(document: ImportDocument | ProxyImport | StudyImport, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_fields(vars(document), 12)
