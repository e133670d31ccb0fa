"""`archive tasks` and `archive protocols`: what networks can be trained on, and by which rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archive.cli.catalogues.registered import cell, loaded, report_unused
from archive.cli.names import TASK
from archive.cli.render import json_option, print_json, print_table

if TYPE_CHECKING:
    from archive.trainer.tasks.registry import Task
    from archive.trainer.tasks.tabular import TabularTask

TASK_COLUMNS = ("task", "summary", "objective", "direction", "spaces", "protocols")
PROTOCOL_COLUMNS = tuple("task protocol epochs train valid test batch column".split())
"""Columns of the list of all protocols; that of one task has `MORE_COLUMNS` instead of the task."""
MORE_COLUMNS = ("optimiser", "learning_rate")


@click.command(short_help="List the tasks.")
@json_option
def tasks(as_json: bool) -> None:
    """List the tasks, their objectives, search spaces and protocols; the first of each is the
    default.

    A file of your own is a task, too: csv:PATH#TARGET, npz:PATH, or table:PATH#COLUMN.
    """
    from archive.trainer.tasks import registry

    report_unused(registry.registry)
    rows = [_described(task) for task in loaded(registry.names(), registry.get)]
    if as_json:
        print_json({"tasks": rows})
    else:
        print_table(TASK_COLUMNS, [[cell(row[column]) for column in TASK_COLUMNS] for row in rows])


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

    shown = loaded(registry.names(), registry.get) if task is None else [registry.get(task)]
    rows = [row for each in shown for row in _protocol_rows(each)]
    if as_json:
        print_json({"protocols": rows})
    else:
        listed = PROTOCOL_COLUMNS if task is None else PROTOCOL_COLUMNS[1:] + MORE_COLUMNS
        columns = [name for name in listed if any(row.get(name) is not None for row in rows)]
        print_table(columns, [[row.get(column) for column in columns] for row in rows])


def _described(task: Task | TabularTask) -> dict[str, Any]:
    return {
        "task": task.name,
        "summary": task.summary,
        "metric": task.metric,
        "objective": task.objective,
        "direction": task.direction,
        "spaces": list(task.suitable_spaces()),
        "protocols": [protocol.name for protocol in task.protocols],
    }


def _protocol_rows(task: Task | TabularTask) -> list[dict[str, Any]]:
    rows = [protocol.as_dict() for protocol in task.protocols]
    return [{"task": task.name, "protocol": row.pop("name"), **row} for row in rows]
