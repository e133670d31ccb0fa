"""Names of tasks on files that a user has named alone: what to type instead.

    pets.csv              csv:pets.csv#TARGET, with the columns of the file
    pets.csv#species      csv:pets.csv#species
    cells.csv             table:cells.csv#COLUMN, where its columns describe networks
    scans.npz             npz:scans.npz

Only for names that the user typed: a message quotes the header of the file.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path

from archive.errors import SettingsError
from archive.trainer.tasks.file_access import FORMS, reference_of
from archive.user_paths import expanded

MOST_COLUMNS = 12
"""Most columns that a message lists."""
NETWORKS = ("arch_str", "net_str", "genotype", "adjacency_rowmajor", "arch")
"""Columns by which a table describes networks; those of choices begin with their form."""


def of(name: str) -> str | None:
    """Return what to type instead of a name; None where it is a whole name, or that of no file."""
    form, separator, rest = name.partition(":")
    if separator and form in FORMS:
        path, column = reference_of(name) or ("", "")
        # Without its column, the name has the path alone.
        return (
            None
            if form == "npz" or (path and column)
            else _message(name, rest.removesuffix("#"), "", form)
        )

    path, column = reference_of(f"csv:{name}") or ("", "")
    return _message(name, name, "") or (_message(name, path, column) if column else None)


def _message(name: str, path: str, column: str, form: str = "") -> str | None:
    try:
        file = expanded(path)
        if not file.is_file():
            return None
    except (OSError, ValueError, SettingsError):
        return None

    if file.suffix == ".npz":
        return f"{name} is a file, not a task: its task is npz:{path}"

    head = _head(file)
    named = form or ("table" if _describes_networks(head) else "csv")
    wanted = "COLUMN" if named == "table" else "TARGET"
    columns = ", ".join(head[:MOST_COLUMNS]) + (", …" if len(head) > MOST_COLUMNS else "")
    listed = f"; its columns are {columns:.300}" if head and not column else ""
    what = f"{name} names no {wanted.lower()}" if form else f"{name} is a file, not a task"
    return f"{what}: its task is {named}:{path}#{column or wanted}{listed}"


def _head(file: Path) -> list[str]:
    """Return the names of the columns of a CSV; empty where it has none."""
    try:
        with (
            gzip.open(file, "rt", encoding="utf-8-sig", newline="")
            if file.suffix == ".gz"
            else file.open(encoding="utf-8-sig", newline="") as content
        ):
            rows = csv.reader(content)
            head = next((row for row in rows if any(entry.strip() for entry in row)), [])
    except (OSError, EOFError, ValueError, csv.Error):
        return []

    names = [entry.strip() for entry in head]
    return names if all(name.isprintable() for name in names) else []


def _describes_networks(head: Sequence[str]) -> bool:
    return any(name in NETWORKS or name.startswith(("chain:", "set:")) for name in head)
