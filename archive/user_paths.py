"""Paths as users write them: `~` and `~name` stand for home folders."""

from __future__ import annotations

import os
from pathlib import Path

from archive.errors import SettingsError


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path from the root, with the home folder of its user and without `..`: one path for one file.

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
        raise SettingsError(f"no home folder of {user} is known on this machine, got {os.fspath(path)!r}") from None
