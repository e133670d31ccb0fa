"""Tasks by name: built-in tasks, tasks of other packages, tables, and files of users.

    digits, naval, …              training on a built-in data set                 builtin
    csv:PATH#TARGET, npz:PATH     training on a user's file                       user_files
    parquet:PATH#TARGET           likewise                                        user_files
    images:FOLDER                 training on a folder of images                  user_files
    text:PATH                     training on a user's text                       text
    nb201-cifar10, nb101, …       results from a built-in table, no training      benchmark_tables
    table:PATH#COLUMN             results from a user's table                     tabular
    nb201-cifar10~0.005, …        results from a table, with noise                tabular

Where a user has typed the name of a file alone, the message tells the name of its task:

    pets.csv                      csv:pets.csv#TARGET, with the columns of the file
    pets.csv#species              csv:pets.csv#species
    cells.csv                     table:cells.csv#COLUMN, where its columns describe networks
    pets.parquet                  parquet:pets.parquet#TARGET
    scans.npz                     npz:scans.npz
    shapes/                       images:shapes

Naming a task loads neither torch nor scikit-learn; `Task.load` does. Another package adds a task
with an entry point of the group `archive.tasks` that loads to a `Task`.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.files import expanded
from archive.named_files import list_folder
from archive.queue.capabilities import NOISE
from archive.registry import Registry
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks import tabular, text, user_files
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.builtin import DIABETES, DIGITS
from archive.trainer.tasks.file_access import (
    FORMS,
    FileAccess,
    record_file,
    redacted_errors,
    reference_of,
)
from archive.trainer.tasks.tabular import TabularProtocol, TabularTask

if TYPE_CHECKING:
    from archive.store.records import Study

__all__ = [
    "DIABETES",
    "DIGITS",
    "Task",
    "TrainingProtocol",
    "get",
    "name_file",
    "names",
    "of_study",
    "prepare",
    "registry",
]

registry = Registry(
    "task",
    "archive.tasks",
    {
        "cifar10": "archive.trainer.tasks.builtin:CIFAR10",
        "diabetes": "archive.trainer.tasks.builtin:DIABETES",
        "digits": "archive.trainer.tasks.builtin:DIGITS",
        "fashion-mnist": "archive.trainer.tasks.builtin:FASHION_MNIST",
        "mnist": "archive.trainer.tasks.builtin:MNIST",
        "naval": "archive.trainer.tasks.builtin:NAVAL",
        "nb101": "archive.trainer.tasks.benchmark_tables:NB101",
        "nb201-cifar10": "archive.trainer.tasks.benchmark_tables:NB201_CIFAR10",
        "nb201-cifar10-200": "archive.trainer.tasks.benchmark_tables:NB201_CIFAR10_200",
        "nb201-cifar100": "archive.trainer.tasks.benchmark_tables:NB201_CIFAR100",
        "nbmacro": "archive.trainer.tasks.benchmark_tables:NBMACRO",
        "protein": "archive.trainer.tasks.builtin:PROTEIN",
        "pydoc-topics": "archive.trainer.tasks.builtin_text:PYDOC_TOPICS",
        "transnas-autoencoder": "archive.trainer.tasks.benchmark_tables:TRANSNAS_AUTOENCODER",
        "transnas-object": "archive.trainer.tasks.benchmark_tables:TRANSNAS_OBJECT",
        "transnas-scene": "archive.trainer.tasks.benchmark_tables:TRANSNAS_SCENE",
    },
)

HEAD_CHARACTERS = 2**16
"""Characters of a CSV in which its header is looked for."""
MOST_COLUMNS = 12
"""Most columns that a message lists."""
TEXT_SUFFIXES = (".jsonl", ".md")
SUFFIXES = (".csv", ".gz", ".npz", ".parquet", ".pq", ".tsv", ".txt", *TEXT_SUFFIXES)
"""Endings of files that tasks learn from."""
NETWORKS = ("arch_str", "net_str", "genotype", "adjacency_rowmajor", "arch")
"""Columns by which a table describes networks; those of choices begin with their form."""


def names() -> tuple[str, ...]:
    """Return the sorted names of all tasks except users' files, without loading the tasks."""
    return registry.names()


def get(name: str) -> Task | TabularTask:
    """Return a task by its name, or by a file: `csv:PATH#TARGET`, `images:FOLDER`, and others.

    Raises:
        UnknownNameError: There is no task of this name.
        SettingsError: Another package's entry point of this name is no task.
        UsageError: The file cannot be read, or has no such column, or noise is added to a training;
            or the name is the path of a file alone, and the message tells the name of its task.
    """
    if name not in registry.names() and (advice := name_advice(name)):
        raise UsageError(advice)

    return _of_name(name)


def _of_name(name: str) -> Task | TabularTask:
    """Return a task by a name from anywhere: errors quote only the file that the name opens."""
    if name.startswith(tabular.PREFIX):
        return tabular.parse(name)

    if name.startswith(user_files.PREFIXES):
        return user_files.parse(name)

    if name.startswith(text.PREFIX):
        return text.parse(name)

    plain, separator, deviation = name.rpartition(NOISE)
    if separator and name not in registry.names():
        task = _of_name(plain)
        if not isinstance(task, TabularTask):
            raise UsageError(
                "only results of a table can have noise added, and networks are "
                f"trained on {plain!r}"
            )

        return task.with_noise(deviation)

    if name not in registry.names():
        raise UnknownNameError("task", name, [*registry.names(), *user_files.FORMS, text.FORM])

    task = registry.load(name)
    if not isinstance(task, Task | TabularTask):
        raise SettingsError(
            f"the task {name!r} of {registry.package(name)} must be a Task, got "
            f"{type(task).__name__}"
        )

    if task.name != name:
        # Trainers look a study's task up by the name that the study records.
        raise SettingsError(
            f"the task {name!r} of {registry.package(name)} has the name {task.name!r}: the "
            "entry point needs the same"
        )

    return task


def of_study(study: Study, access: FileAccess) -> Task | TabularTask:
    """Return the task of a study; the path of its file comes from the database, not from a user.

    Args:
        study: Study with the names of its task and its protocol.
        access: Files that may be opened.

    Raises:
        UnknownNameError: There is no such task.
        SettingsError: The file may not be opened here, or is not the one that the study was created
            with.
        UnusableFileError: The file cannot be used; the message quotes nothing of it.
    """
    reference = reference_of(study.task)
    if reference is None or not reference[0]:
        return _of_name(study.task)

    access.check(reference[0], study.protocol)
    with redacted_errors(reference[0]):
        return _of_name(study.task)


def name_file(task: Task | TabularTask, home: Path) -> None:
    """Allow trainers with a home to open a task's file for studies, because its user named it here.

    Args:
        task: Task from `get`; without a file, nothing is done.
        home: Folder of the archive.

    Raises:
        SettingsError: The permission cannot be written.
    """
    if reference_of(task.name) is not None:
        record_file(
            home,
            task.name,
            task.table.sha256 if isinstance(task, TabularTask) else task.protocols[0].data,
        )


def prepare(task: Task | TabularTask, protocol: TrainingProtocol | TabularProtocol) -> None:
    """Download a task's data if needed: a search then fails at its start, not in its trainers.

    Raises:
        SettingsError: The data cannot be fetched; the message names the missing file and where to
            put it.
    """
    if isinstance(task, Task) and isinstance(protocol, TrainingProtocol) and task.fetch is not None:
        task.fetch(protocol)


def name_advice(name: str) -> str | None:
    """Return a message with the name of a file's task; None for a whole name, or without a file."""
    form, separator, rest = name.partition(":")
    if separator and form in FORMS:
        path, column = reference_of(name) or ("", "")
        if form in ("npz", "images", "text") or (path and column):
            return None

        # Without its column, the name has the path alone.
        return _message(name, rest.removesuffix("#"), "", form)

    path, column = reference_of(f"csv:{name}") or ("", "")
    message = _message(name, name, "")
    if message is None and path and column:
        return _message(name, path, column)

    return message


def _message(name: str, path: str, column: str, form: str = "") -> str | None:
    try:
        file = expanded(path)
        if file.is_dir() and not form:
            return _folder_message(name, path, file)

        if not file.is_file():
            # A study in a database may name any text: only a text that looks like a file is one.
            is_named = not form and file.suffix in SUFFIXES and not column
            return f"there is no file {path}, and no task of this name" if is_named else None
    except (OSError, ValueError, SettingsError):
        return None

    if file.suffix == ".npz":
        return f"{name} is a file, not a task: its task is npz:{path}"

    head = _head(file)
    # A table may end in .txt, too.
    is_text = file.suffix in TEXT_SUFFIXES or (file.suffix == ".txt" and len(head) < 2)
    if is_text and not form:
        return f"{name} is a file, not a task: its task is {text.PREFIX}{path}"

    task_form = form or ("table" if _describes_networks(head) else "csv")
    if file.suffix in (".parquet", ".pq"):
        task_form = "parquet"
    part = "COLUMN" if task_form == "table" else "TARGET"
    fault = f"{name} names no {part.lower()}" if form else f"{name} is a file, not a task"
    message = f"{fault}: its task is {task_form}:{path}#{column or part}"
    if column or not head:
        return message

    columns = ", ".join(head[:MOST_COLUMNS])
    if len(head) > MOST_COLUMNS:
        columns += ", …"

    return f"{message}; its columns are {columns:.300}"


def _folder_message(name: str, path: str, folder: Path) -> str | None:
    """Return a message with the name of a folder's task; None for one without images."""
    folder = Path(os.path.realpath(folder))
    if any(not name.lower().endswith(".csv") for name in list_folder(folder)):
        return f"{name} is a folder, not a task: its task is images:{path}"

    return None


def _head(file: Path) -> list[str]:
    """Return the names of the columns of a CSV; empty where it has none."""
    head: list[str] = []
    try:
        if file.suffix in (".parquet", ".pq"):
            return _parquet_head(file)

        with _open_text(file) as content:
            lines = content.readlines(HEAD_CHARACTERS)
            from archive.trainer.datasets.user_readers import separator_of

            separator = separator_of("".join(lines))
            for row in csv.reader(lines, delimiter=separator):
                if any(map(str.strip, row)):
                    head = row
                    break
    except (OSError, EOFError, ValueError, csv.Error):
        return []

    names = [entry.strip() for entry in head]
    return names if all(name.isprintable() for name in names) else []


def _parquet_head(file: Path) -> list[str]:
    from pyarrow import parquet

    from archive.trainer.datasets.mixed_tables import flatten_structs

    names: list[str] = flatten_structs(parquet.read_schema(file).empty_table()).column_names
    return [name for name in names if name.isprintable()]


def _open_text(file: Path) -> IO[str]:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")

    return file.open(encoding="utf-8-sig", newline="")


def _describes_networks(head: Sequence[str]) -> bool:
    return any(name in NETWORKS or name.startswith(("chain:", "set:")) for name in head)
