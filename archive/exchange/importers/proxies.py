"""Importer of published zero-cost proxies: a table with columns of scores of its networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError, UsageError
from archive.spaces.choices import Choices
from archive.spaces.tables.reader import Table

if TYPE_CHECKING:
    from archive.api import Archive


class ProxyTask(NamedTuple):
    """A task that proxies are imported for.

    Attributes:
        name: Its name.
        protocol: Name of its protocol.
        settings: Settings of its space: options of `choices` are found by their names, and the file
            may have one of a decision. Without settings, the settings of the file hold.
        spaces: Names of the spaces with networks that suit the task.
    """

    name: str
    protocol: str
    settings: Mapping[str, Any]
    spaces: Sequence[str]


def import_proxies(
    archive: Archive, file: Path, tasks: Iterable[ProxyTask], names: Sequence[str] = ()
) -> tuple[list[str], int]:
    """Store the scores of a table's networks for tasks; a second import changes nothing.

    The source of the scores is named by the file and its digest. The networks of several rows of
    one functional key are one, with the mean of the scores.

    Args:
        archive: The archive.
        file: A table of a form of `archive.spaces.tables.reader`.
        tasks: The tasks.
        names: Columns to import; empty for all columns of numbers.

    Returns:
        The names of the proxies, and the number of networks.

    Raises:
        UsageError: The file is no such table, has no such column, or has networks of another space
            or other choices than a task.
    """
    tasks = list(tasks)
    table = Table.load(file, _options(task.settings for task in tasks))
    for task in tasks:
        if table.space not in task.spaces:
            raise UsageError(
                f"{file} holds networks of the space {table.space}, "
                f"and the task {task.name!r} has those of {' or '.join(task.spaces)}"
            )

    columns = list(names) or [name for name in table.columns if _is_number(table, name)]
    if not columns:
        raise UsageError(f"{file} has no column of scores")

    scores = np.stack(list(map(table.column, columns)), axis=1)
    source = f"{file.name}@{table.sha256[:12]}"
    # Faults of all tasks come before anything is stored.
    of_tasks = [(task, _networks(file, table, task.name, task.settings)) for task in tasks]
    by_key = {}
    for _, networks in of_tasks:
        for network in networks:
            by_key[network.key] = network

    archive.architectures.add(by_key.values())
    for task, networks in of_tasks:
        rows = zip(networks, scores.tolist(), strict=True)
        of_networks = {network.key: dict(zip(columns, row, strict=True)) for network, row in rows}
        archive.proxies.add(task.name, task.protocol, source, of_networks)

    return columns, len(table)


def _options(settings: Iterable[Mapping[str, Any]]) -> dict[str, Sequence[str]]:
    """Return the options of each decision by name; of several tasks, the options of the first."""
    options: dict[str, Sequence[str]] = {}
    for space in filter(None, map(_choices, settings)):
        options = {**space.options, **options}

    return options


def _choices(settings: Mapping[str, Any]) -> Choices | None:
    decisions = {name: settings[name] for name in ("decisions", "form") if name in settings}
    return Choices(**decisions) if decisions else None


def _networks(
    file: Path, table: Table, task: str, settings: Mapping[str, Any]
) -> Sequence[Architecture]:
    """Return the networks of a file in the space of a task.

    Labels of choices are numbers of the options of one table.
    """
    others = _choices(settings)
    if table.space != Choices.name or others is None:
        return table.architectures

    space = Choices(**table.space_config)
    if space.form != others.form:
        raise UsageError(
            f"the choices of {file} are a {space.form}, those of the task {task!r} a {others.form}"
        )

    try:
        return [others.of_names(space.named(network)) for network in table.architectures]
    except InvalidArchitectureError as error:
        raise UsageError(f"{file} has other choices than the task {task!r}: {error}") from None


def _is_number(table: Table, name: str) -> bool:
    try:
        return bool(np.isfinite(table.column(name)).any())
    except UsageError:
        return False
