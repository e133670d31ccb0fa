"""Paths and modules as users write them, folders of data and tables, owners of files.

`~` and `~name` stand for home folders.

What a process obeys must belong to its user or to root, and nobody else may write to it.

| environment        | data sets and tables are in               |
|--------------------|-------------------------------------------|
| `ARCHIVE_DATA_DIR` | its folder `data`, else the folder itself |
| none               | `ARCHIVE_HOME/data`, or `~/.archive/data` |
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import stat
import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from types import ModuleType

from archive.errors import SettingsError

DEFAULT_HOME = "~/.archive"
"""Folder of the archive."""


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path from the root, with `~` expanded and without `..`: one path for one file.

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
    """Import a module that a command names.

    Modules of the current folder are found, as by `python -m`.

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
    """Return the folders of data sets and tables.

    The first one is searched first; new files belong into the last.

    Raises:
        SettingsError: No home folder of this user is known.
    """
    folder = os.environ.get("ARCHIVE_DATA_DIR")
    return (Path(folder) / "data", Path(folder)) if folder else (home() / "data",)


def check_obeyed(path: Path, what: str) -> None:
    """Refuse a file or folder that another user owns or may write to.

    A group whose only member is the owner, as most systems give each user, may write to it.

    Args:
        path: The file or folder; one that does not exist is accepted.
        what: Name for the message: `the configuration file`.

    Raises:
        SettingsError: It belongs to another user, or others may write to it.
    """
    fault = fault_of(path, what)
    if fault is not None:
        raise SettingsError(fault)


def fault_of(path: Path, what: str) -> str | None:
    """Return why a file or folder may not be obeyed, with the way out; None if it may.

    Args:
        path: The file or folder; one that does not exist is accepted.
        what: Name for the message.
    """
    try:
        status = path.stat()
    except OSError:
        return None

    if status.st_uid not in (0, os.geteuid()):
        return (
            f"{what} {path} belongs to the user {user_name(status.st_uid)}, and is not obeyed as "
            f"{user_name(os.geteuid())}: run the command as its owner, or run chown {user_name(os.geteuid())} {path}"
        )

    group_writes = status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid, status.st_uid)
    if group_writes or status.st_mode & stat.S_IWOTH:
        return (
            f"{what} {path} may be written by other users (mode {stat.S_IMODE(status.st_mode):04o}), and is not "
            f"obeyed: look at its content, then run chmod go-w {path}"
        )

    return None


def user_name(uid: int) -> str:
    """Return the name of a user, or its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def owner_of(path: Path) -> int | None:
    """Return the owner of a file; None if it does not exist, or cannot be looked at."""
    with contextlib.suppress(OSError):
        return path.stat().st_uid

    return None


def _is_private(gid: int, uid: int) -> bool:
    try:
        group = grp.getgrgid(gid)
        user = pwd.getpwuid(uid)
    except KeyError:
        return False

    return (
        group.gr_name == user.pw_name and user.pw_gid == gid and set(group.gr_mem) <= {user.pw_name}
    )
