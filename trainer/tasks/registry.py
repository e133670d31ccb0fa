"""The tasks by name: those of the catalogue, those of other packages, tables, and files of users.

    digits, naval, …              networks are trained on a data set that the product knows   catalogue
    csv:PATH#TARGET, npz:PATH     networks are trained on a file of yours                     userdata
    nb201-cifar10, nb101, …       a table answers, nothing is trained                         tabular
    table:PATH#COLUMN             a table of yours answers                                    tabular

Naming tasks loads neither torch nor scikit-learn; `Task.load` does. A package adds a task by an entry point of the
group `archive.tasks` that loads to a `Task`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.errors import SettingsError
from archive.registry import Registry
from archive.trainer.tasks import tabular, user_files
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.builtin import DIABETES, DIGITS
from archive.trainer.tasks.file_access import Access, discreet, reference_of, remember
from archive.trainer.tasks.protocol import Protocol
from archive.trainer.tasks.tabular import Reading, TabularTask

if TYPE_CHECKING:
    from pathlib import Path

    from archive.store.records import Study

__all__ = ["DIABETES", "DIGITS", "Protocol", "Task", "get", "name_file", "names", "of_study", "prepare", "registry"]

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
        "nb101": "archive.trainer.tasks.tabular:NB101",
        "nb201-cifar10": "archive.trainer.tasks.tabular:NB201_CIFAR10",
        "nb201-cifar100": "archive.trainer.tasks.tabular:NB201_CIFAR100",
        "protein": "archive.trainer.tasks.builtin:PROTEIN",
    },
)


def names() -> tuple[str, ...]:
    """Return the names of all tasks but those of users' files, sorted, loading none of them."""
    return registry.names()


def get(name: str) -> Task | TabularTask:
    """Return a task by its name, or by the path of a file: `csv:PATH#TARGET`, `npz:PATH`, `table:PATH#COLUMN`.

    Raises:
        UnknownNameError: There is none of this name.
        SettingsError: Another package offers it, but what it offers is no task.
        UsageError: The file cannot be read, or has no such column.
    """
    if name.startswith(tabular.PREFIX):
        return tabular.parse(name)
    if name.startswith(user_files.PREFIXES):
        return user_files.parse(name)
    task = registry.load(name)
    if not isinstance(task, Task | TabularTask):
        raise SettingsError(f"the task {name!r} of another package must be a Task, got a {type(task).__name__}")
    return task


def of_study(study: Study, access: Access) -> Task | TabularTask:
    """Return the task of a study of the archive; its file, if it is one, is the database's word and no user's.

    Args:
        study: Of which the task and the protocol count.
        access: Which files may be opened.

    Raises:
        UnknownNameError: There is no such task.
        SettingsError: The file may not be opened here, or is another one than the study was begun with.
        UnusableFileError: The file cannot be used; the message quotes nothing of it.
    """
    reference = reference_of(study.task)
    if reference is None or not reference[0]:
        return get(study.task)
    access.check(reference[0], study.protocol)
    with discreet(reference[0]):
        return get(study.task)


def name_file(task: Task | TabularTask, home: Path) -> None:
    """Let trainers over a home open a task's file for studies, because its user named it here.

    Args:
        task: As `get` returned it; one that is no file leaves nothing to do.
        home: Folder of the archive.

    Raises:
        SettingsError: It cannot be noted.
    """
    if reference_of(task.name) is not None:
        remember(home, task.name, task.table.sha256 if isinstance(task, TabularTask) else task.protocols[0].data)


def prepare(task: Task | TabularTask, protocol: Protocol | Reading) -> None:
    """See to it that the data of a task are here, before a search begins rather than in its trainers.

    Raises:
        SettingsError: They are not, and cannot be fetched; the message says what is missing and where to put it.
    """
    if isinstance(task, Task) and isinstance(protocol, Protocol) and task.fetch is not None:
        task.fetch(protocol)
