"""Importer of published zero-cost proxies: a table whose columns are scores of its networks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from archive.errors import UsageError
from archive.spaces.tables.reader import Table

if TYPE_CHECKING:
    from archive.api import Archive


def import_proxies(
    archive: Archive, file: Path, tasks: Iterable[tuple[str, str]], names: Sequence[str] = ()
) -> tuple[list[str], int]:
    """Store the scores of a table's networks for tasks; importing the same file again changes nothing.

    The source of the scores is named by the file and its digest. The networks of several rows of one functional key
    are one, with the mean of the scores.

    Args:
        archive: The archive.
        file: A table of a form of `archive.spaces.tables.reader`.
        tasks: Names of tasks with the names of their protocols.
        names: Columns to import; empty for all columns of numbers.

    Returns:
        The names of the proxies, and the number of networks.

    Raises:
        UsageError: The file is no such table, or has no such column.
    """
    table = Table.load(file)
    chosen = list(names) or [name for name in table.columns if _is_number(table, name)]
    if not chosen:
        raise UsageError(f"{file} has no column of scores")
    scores = np.stack([table.column(name) for name in chosen], axis=1)
    archive.architectures.add(table.architectures)
    by_key = {
        network.key: dict(zip(chosen, row, strict=True))
        for network, row in zip(table.architectures, scores.tolist(), strict=True)
    }
    source = f"{file.name}@{table.sha256[:12]}"
    for task, protocol in tasks:
        archive.proxies.add(task, protocol, source, by_key)
    return chosen, len(by_key)


def _is_number(table: Table, name: str) -> bool:
    try:
        return bool(np.isfinite(table.column(name)).any())
    except UsageError:
        return False
