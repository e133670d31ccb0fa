"""Storages of Optuna: opening of a study by its address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from archive.errors import ArchiveError, SettingsError, UnknownNameError, UsageError

if TYPE_CHECKING:
    import optuna


def open_study(reference: str) -> optuna.Study:
    """Open a study of Optuna.

    Args:
        reference: `URL#STUDY`: a storage as Optuna names it (`sqlite:///study.db`), and the study's
            name.

    Raises:
        UsageError: The text names no study, or the storage cannot be read.
        UnknownNameError: The storage has no such study.
        SettingsError: Optuna is not installed.
    """
    url, separator, name = _parts(reference)
    if not separator or not url or not name:
        raise UsageError(
            f"a study of Optuna is named as URL#STUDY, got {_without_password(reference)!r}"
        )

    try:
        import optuna
    except ImportError:
        raise SettingsError(
            "reading studies of Optuna needs it: pip install 'nas-archive[bench]'"
        ) from None

    if (file := _file(url)) is not None and not file.is_file():
        # Optuna would create an empty file.
        raise UsageError(f"there is no file {file}")

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        # It would create its tables in the database of another program.
        storage = optuna.storages.RDBStorage(url, skip_table_creation=True)
        names = optuna.get_all_study_names(storage)
        if name not in names:
            raise UnknownNameError("study of Optuna", name, names)

        return optuna.load_study(study_name=name, storage=storage)
    except ArchiveError:
        raise
    except Exception as error:
        # A database driver may raise any error, and its text may contain the address with a
        # password.
        what = type(error).__name__
        raise UsageError(
            f"Optuna cannot read the storage {_without_password(url)}: {what}"
        ) from None
    finally:
        optuna.logging.set_verbosity(before)


def _parts(reference: str) -> tuple[str, str, str]:
    """Return the storage, the separator and the name of a study; a file tells which `#` of several
    separates them.
    """
    parts = reference.rpartition("#")
    earlier = parts
    while earlier[1]:
        if (file := _file(earlier[0])) is not None and file.is_file():
            return earlier[0], "#", reference[len(earlier[0]) + 1 :]

        earlier = earlier[0].rpartition("#")

    return parts


def _file(url: str) -> Path | None:
    """Return the file of a storage; None for that of a server."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    _, at, place = rest.rpartition("@")
    return f"{scheme}{separator}…@{place}" if at else url
