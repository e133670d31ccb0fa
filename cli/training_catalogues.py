"""Commands that list what trainings are made of: tasks, protocols, recipes, observers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from archive.cli.catalogues import load_each, print_items, report_unused
from archive.cli.names import TASK
from archive.cli.parameters import settings_of
from archive.cli.render import json_option, print_json, print_table
from archive.values import read_summary

if TYPE_CHECKING:
    from archive.trainer.observers.base import TrialObserver
    from archive.trainer.tasks.registry import Task
    from archive.trainer.tasks.tabular import TabularTask

PROTOCOL_COLUMNS = ("task", "protocol", "epochs", "train", "valid", "test", "batch", "column")
"""Columns of all protocols; the protocols of one task have `MORE_COLUMNS` instead of the task."""
MORE_COLUMNS = ("optimiser", "learning_rate")


@dataclass(frozen=True)
class TaskItem:
    """A task.

    Attributes:
        task: Its name.
        summary: The data set.
        metric: Name of the metric.
        objective: Name of the metric that is optimised.
        direction: Whether larger or smaller values are better.
        spaces: Names of its search spaces, the default first.
        protocols: Names of its protocols, the default first.
    """

    task: str
    summary: str
    metric: str
    objective: str
    direction: Literal["maximise", "minimise"]
    spaces: list[str]
    protocols: list[str]


@dataclass(frozen=True)
class TaskList:
    """The tasks.

    Attributes:
        tasks: By name.
    """

    tasks: list[TaskItem]


@dataclass(frozen=True)
class ProtocolList:
    """The protocols of a task, or of all.

    Attributes:
        protocols: One object a protocol: its task, its name as `protocol`, and every choice that it
            makes, as it is recorded with a study.
    """

    protocols: list[dict[str, Any]]


@dataclass(frozen=True)
class RecipeItem:
    """A recipe.

    Attributes:
        recipe: Its name.
        origin: `built-in`, the package with its version, or `recipes.toml`.
        target: Module and function, or file and function.
    """

    recipe: str
    origin: str
    target: str


@dataclass(frozen=True)
class RecipeList:
    """The recipes of this machine.

    Attributes:
        recipes: By name.
    """

    recipes: list[RecipeItem]


@dataclass(frozen=True)
class ObserverItem:
    """An observer, to which trainers report their trials.

    Attributes:
        observer: Its name.
        summary: What it writes.
        options: Default of each option; null without a default.
        missing: Packages that it needs and that are not installed.
        extra: Extra of `nas-archive` that installs them, if one does.
    """

    observer: str
    summary: str
    options: dict[str, str | None]
    missing: list[str]
    extra: str | None


@dataclass(frozen=True)
class ObserverList:
    """The observers.

    Attributes:
        observers: By name.
    """

    observers: list[ObserverItem]


@click.command(short_help="List the tasks.")
@json_option
def tasks(as_json: bool) -> None:
    """List the tasks, their objectives, search spaces and protocols; the first of each is the
    default.

    A file of your own is a task, too: csv:PATH#TARGET, images:FOLDER, npz:PATH,
    parquet:PATH#TARGET, text:PATH, or table:PATH#COLUMN.
    """
    from archive.trainer.tasks import registry

    report_unused(registry.registry)
    items = [_task_item(task) for task in load_each(registry.names(), registry.get)]
    if as_json:
        print_json(TaskList(items))
    else:
        columns = ("task", "summary", "objective", "direction", "spaces", "protocols")
        print_items(columns, items)


def _task_item(task: Task | TabularTask) -> TaskItem:
    return TaskItem(
        task=task.name,
        summary=task.summary,
        metric=task.metric,
        objective=task.objective,
        direction=task.direction,
        spaces=list(task.suitable_spaces()),
        protocols=[protocol.name for protocol in task.protocols],
    )


@click.command()
@click.argument("task", type=TASK, required=False)
@json_option
def protocols(task: str | None, as_json: bool) -> None:
    """List the protocols of a TASK, or of all tasks; the first is the default. --json has every
    choice of a protocol.

    A trained task offers each protocol as NAME+morph as well, with which networks inherit weights.
    The protocol of a tabular task is a column of its table.
    """
    from archive.trainer.tasks import registry

    if task is None:
        selected = list(load_each(registry.names(), registry.get))
    else:
        selected = [registry.get(task)]

    rows: list[dict[str, Any]] = []
    for shown in selected:
        for protocol in shown.protocols:
            choices = protocol.as_dict()
            rows.append({"task": shown.name, "protocol": choices.pop("name"), **choices})

    if as_json:
        print_json(ProtocolList(rows))
        return

    names = PROTOCOL_COLUMNS if task is None else PROTOCOL_COLUMNS[1:] + MORE_COLUMNS
    columns = [name for name in names if any(row.get(name) is not None for row in rows)]
    print_table(columns, [[row.get(column) for column in columns] for row in rows])


@click.command(short_help="List the recipes.")
@json_option
@click.pass_context
def recipes(ctx: click.Context, as_json: bool) -> None:
    """List the recipes of this machine, by which networks are trained: `archive search --recipe
    NAME`.

    They are the built-in recipe, recipes of installed packages, and recipes of recipes.toml in the
    folder of the archive. Nothing is imported.
    """
    from archive import settings
    from archive.trainer.recipes.registry import RecipeAccess, registry

    sources = RecipeAccess(settings.load(**settings_of(ctx)).home).sources.values()
    items = [RecipeItem(source.name, source.origin, source.target) for source in sources]
    if as_json:
        print_json(RecipeList(items))
    else:
        print_items(("recipe", "origin", "target"), items)

    report_unused(registry)


@click.command(short_help="List the observers, which receive metrics of trials.")
@json_option
def observers(as_json: bool) -> None:
    """List the observers, which receive the metrics of trials: options, and packages that are not
    installed.

    `archive trainer` and `archive search` take them as --observe NAME[:KEY=VALUE,…].
    """
    from archive.trainer.observers import registry

    report_unused(registry.registry)
    items = []
    for name in registry.names():
        items += [_observer_item(name, kind) for kind in load_each([name], registry.get)]

    if as_json:
        print_json(ObserverList(items))
    else:
        print_items(("observer", "summary", "options", "missing"), items)


def _observer_item(name: str, kind: type[TrialObserver]) -> ObserverItem:
    from archive.trainer.observers import registry

    options: dict[str, str | None] = {}
    for key, value in registry.options(kind).items():
        options[key] = None if value is None else str(value)

    return ObserverItem(
        observer=name,
        summary=read_summary(kind),
        options=options,
        missing=list(registry.missing(kind)),
        extra=kind.extra,
    )
