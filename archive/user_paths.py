"""Paths and modules as users write them, where `~` and `~name` stand for home folders; folders of
data and tables.

| environment        | data sets and tables are in               |
|--------------------|-------------------------------------------|
| `ARCHIVE_DATA_DIR` | its folder `data`, else the folder itself |
| none               | `ARCHIVE_HOME/data`, or `~/.archive/data` |
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from types import ModuleType

from archive.errors import SettingsError

DEFAULT_HOME = "~/.archive"
"""Folder of the archive."""


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path from the root, with the home folder of its user and without `..`: one path for
    one file.

    A `..` after a symbolic link to a folder stays, as its removal would name another file.

    Raises:
        SettingsError: No home folder of this user is known.
    """
    whole = expanded(path).absolute()
    normal = Path(os.path.normpath(whole))
    return normal if os.path.realpath(normal) == os.path.realpath(whole) else whole


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with the home folder of its user.

    Raises:
        SettingsError: No home folder of this user is known.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        user = Path(path).parts[0]
        raise SettingsError(
            f"no home folder of {user} is known on this machine, got {os.fspath(path)!r}"
        ) from None


def imported(module: str) -> ModuleType:
    """Import a module that a command names; modules of the current folder are found, as by `python
    -m`.

    What the module prints goes to stderr.

    Raises:
        Exception: Whatever the import raises.
    """
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)

    with redirect_stdout(sys.stderr):
        return import_module(module)


def home() -> Path:
    """Return the folder of the archive, from the environment.

    Raises:
        SettingsError: No home folder of this user is known.
    """
    return expanded(os.environ.get("ARCHIVE_HOME") or DEFAULT_HOME).absolute()


def data_folders() -> tuple[Path, ...]:
    """Return the folders of data sets and tables, the one to look into first ahead; new files
    belong into the last.

    Raises:
        SettingsError: No home folder of this user is known.
    """
    folder = os.environ.get("ARCHIVE_DATA_DIR")
    return (Path(folder) / "data", Path(folder)) if folder else (home() / "data",)
