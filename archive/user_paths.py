"""Paths as users write them: `~` and `~name` stand for home folders."""

from __future__ import annotations

import os
from pathlib import Path

from archive.errors import SettingsError


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
