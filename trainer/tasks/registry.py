"""Tasks by name: built-in ones, those of other packages, tables, and files of users.

    digits, naval, …              training on a built-in data set                 bundled, downloaded
    csv:PATH#TARGET, npz:PATH     training on a user's file                       user_files
    nb201-cifar10, nb101, …       results from a built-in table, no training      benchmark_tables
    table:PATH#COLUMN             results from a user's table                     tabular
    nb201-cifar10~0.005, …        results from a table, with noise                tabular

Naming a task loads neither torch nor scikit-learn; `Task.load` does. Another package adds a task
with an entry point of the group `archive.tasks` that loads to a `Task`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.queue.capabilities import NOISE
from archive.registry import Registry
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks import file_hints, tabular, user_files
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.bundled import DIABETES, DIGITS
from archive.trainer.tasks.file_access import FileAccess, record_file, redacted_errors, reference_of
from archive.trainer.tasks.tabular import TabularProtocol, TabularTask

if TYPE_CHECKING:
    from pathlib import Path

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
        "cifar10": "archive.trainer.tasks.downloaded:CIFAR10",
        "diabetes": "archive.trainer.tasks.bundled:DIABETES",
        "digits": "archive.trainer.tasks.bundled:DIGITS",
        "fashion-mnist": "archive.trainer.tasks.downloaded:FASHION_MNIST",
        "mnist": "archive.trainer.tasks.downloaded:MNIST",
        "naval": "archive.trainer.tasks.downloaded:NAVAL",
        "nb101": "archive.trainer.tasks.benchmark_tables:NB101",
        "nb201-cifar10": "archive.trainer.tasks.benchmark_tables:NB201_CIFAR10",
        "nb201-cifar10-200": "archive.trainer.tasks.benchmark_tables:NB201_CIFAR10_200",
        "nb201-cifar100": "archive.trainer.tasks.benchmark_tables:NB201_CIFAR100",
        "nbmacro": "archive.trainer.tasks.benchmark_tables:NBMACRO",
        "protein": "archive.trainer.tasks.downloaded:PROTEIN",
        "transnas-autoencoder": "archive.trainer.tasks.benchmark_tables:TRANSNAS_AUTOENCODER",
        "transnas-object": "archive.trainer.tasks.benchmark_tables:TRANSNAS_OBJECT",
        "transnas-scene": "archive.trainer.tasks.benchmark_tables:TRANSNAS_SCENE",
    },
)


def names() -> tuple[str, ...]:
    """Return the sorted names of all tasks except those on users' files, without loading the
    tasks.
    """
    return registry.names()


def get(name: str) -> Task | TabularTask:
    """Return a task by its name, or by the path of a file: `csv:PATH#TARGET`, `npz:PATH`,
    `table:PATH#COLUMN`.

    Raises:
        UnknownNameError: There is no task of this name.
        SettingsError: Another package's entry point of this name is no task.
        UsageError: The file cannot be read, or has no such column, or noise is added to a training;
            or the name is that of a file alone, and the message says how its task is named.
    """
    if name not in registry.names() and (meant := file_hints.of(name)):
        raise UsageError(meant)

    return _of_name(name)


def _of_name(name: str) -> Task | TabularTask:
    """Return a task by a name that may come from the database: no error quotes a file that the name
    does not open.
    """
    if name.startswith(tabular.PREFIX):
        return tabular.parse(name)

    if name.startswith(user_files.PREFIXES):
        return user_files.parse(name)

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
        raise UnknownNameError("task", name, [*registry.names(), *user_files.FORMS])

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
    """Return the task of a study; the path of its file, if it has one, comes from the database and
    not from a user.

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
    """Download the data of a task if needed, so that a search fails at its start rather than in its
    trainers.

    Raises:
        SettingsError: The data cannot be fetched; the message names the missing file and where to
            put it.
    """
    if isinstance(task, Task) and isinstance(protocol, TrainingProtocol) and task.fetch is not None:
        task.fetch(protocol)
