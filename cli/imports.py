"""`archive import`: results of others as evaluations, or studies, of the archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from archive.cli.render import json_option, open_archive, print_fields, print_json
from archive.errors import UnknownNameError, UsageError


@click.group("import")
def imports() -> None:
    """Add results of others: tables, official benchmark files, studies of Optuna."""


@imports.command()
@click.argument("task")
@click.option("--protocol", help="How it was measured [the task's first].")
@json_option
@click.pass_context
def table(ctx: click.Context, task: str, protocol: str | None, as_json: bool) -> None:
    """Add every network of a table as an evaluation of a TASK: nb201-cifar10, nb101, table:PATH#COLUMN.

    Searches on the task then know all of them. Other columns become metrics.
    """
    from archive.exchange.importers.external import add
    from archive.exchange.importers.table import findings
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.tabular import TabularTask

    found = registry.get(task)
    if not isinstance(found, TabularTask):
        raise UsageError(f"the task {task!r} is trained, not answered from a table")
    reading = found.protocol(protocol).name
    with open_archive(ctx) as archive:
        count = add(archive, found.name, reading, findings(found, reading), direction=found.direction)
    _say({"task": found.name, "protocol": reading, "evaluations": count}, as_json)


@imports.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--epochs", type=click.Choice(["4", "12", "36", "108"]), default="108", show_default=True)
@json_option
@click.pass_context
def nasbench101(ctx: click.Context, file: Path, epochs: str, as_json: bool) -> None:
    """Add the trainings of an official NAS-Bench-101 FILE, nasbench_only108.tfrecord, as evaluations of nb101."""
    from archive.exchange.importers.external import add
    from archive.exchange.importers.nasbench101 import TASK, findings

    protocol = f"{TASK}/{epochs}"
    with open_archive(ctx) as archive:
        count = add(archive, TASK, protocol, findings(file, int(epochs)), direction="maximise")
    _say({"task": TASK, "protocol": protocol, "evaluations": count}, as_json)


@imports.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--task", default="nb201-cifar10", show_default=True, help="Or nb201-cifar100, nb201-imagenet16.")
@click.option("--epochs", type=click.Choice(["12", "200"]), default="200", show_default=True)
@json_option
@click.pass_context
def nasbench201(ctx: click.Context, file: Path, task: str, epochs: str, as_json: bool) -> None:
    """Add the trainings of an official NAS-Bench-201 FILE, NAS-Bench-201-v1_1-096897.pth, as evaluations of a task.

    The file is a pickle: it is read without running what it says, and refused if it names more than numbers. It
    needs some times its size in memory; `archive import table nb201-cifar10` needs little.
    """
    from archive.exchange.importers.external import add
    from archive.exchange.importers.nasbench201 import TASKS, findings, read

    if task not in TASKS:
        raise UnknownNameError("task of NAS-Bench-201", task, TASKS)
    content = read(file)
    protocol = f"nb201/{epochs}"
    with open_archive(ctx) as archive:
        count = add(archive, task, protocol, findings(file, content, task, int(epochs)), direction="maximise")
    _say({"task": task, "protocol": protocol, "evaluations": count}, as_json)


@imports.command()
@click.argument("reference", metavar="URL#STUDY")
@click.option("--task", required=True, help="What was learned.")
@click.option("--space", required=True, help="Where its architectures are from.")
@click.option("--protocol", help="How it was trained and measured [TASK/own].")
@click.option("--study", help="Name of the study in the archive [that of Optuna].")
@click.option("--objective", default="value", show_default=True, help="Name of the metric that was optimised.")
@click.option("--architecture", "function", metavar="MODULE:FUNCTION", help="Reads the parameters of a trial.")
@json_option
@click.pass_context
def optuna(
    ctx: click.Context,
    reference: str,
    task: str,
    space: str,
    protocol: str | None,
    study: str | None,
    objective: str,
    function: str | None,
    as_json: bool,
) -> None:
    """Add a study of Optuna, sqlite:///FILE#STUDY, whose trials hold architectures.

    A trial's architecture is its user attribute `architecture` (JSON, or a NAS-Bench-201 string), or what the
    FUNCTION makes of its parameters, or the decisions that `archive search --agent tpe` would make.
    """
    from archive import spaces
    from archive.agents.encodings.decisions import decisions_of, from_choices
    from archive.exchange.importers.optuna import import_study, open_study
    from archive.exchange.importers.optuna_trials import by_function, reader
    from archive.store.records import Study

    own = spaces.get(space)
    choose = by_function(_function(function)) if function else partial(from_choices, decisions_of(own, "tpe"))
    read = reader(own, choose)
    found = open_study(reference)
    name = study or found.study_name
    wanted = Study(name, task, protocol or f"{task}/own", own.name, objective, space_config=own.config)
    with open_archive(ctx) as archive:
        counts = import_study(archive, found, wanted, read)
    _say({"study": name, "task": task, **counts}, as_json)


def _function(reference: str) -> Callable[[Mapping[str, Any]], Any]:
    module, separator, name = reference.partition(":")
    try:
        found = getattr(import_module(module), name) if separator else None
    except (ImportError, AttributeError) as error:
        raise UsageError(f"--architecture {reference} cannot be loaded: {error}") from None
    if not callable(found):
        raise UsageError(f"--architecture is written MODULE:FUNCTION, got {reference!r}")
    read: Callable[[Mapping[str, Any]], Any] = found
    return read


def _say(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print_fields(found, 12)
