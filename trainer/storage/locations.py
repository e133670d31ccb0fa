"""Locations of trainers' files: a folder, or an fsspec URL such as s3://bucket/folder.

Other kinds of URL need the package that fsspec names for them (`pip install s3fs`), and take their
credentials from that package's configuration, never from the URL.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from archive.errors import SettingsError
from archive.files import expanded

_LOGIN = re.compile(r"://((?:(?!::)[^/])*|[^/:@]*:(?!\d+/)(?:(?!::).)*)@")
"""The login of each address in a URL: fsspec chains them, `simplecache::sftp://…`.

It ends before the path, in which an @ is part of a name. A password may have a / that is not
escaped; digits between the : and the / are a port.
"""


def check_location(root: Path | str, what: str = "weights", *, writable: bool = False) -> None:
    """Check that trials can use files at a location, without connecting to it.

    Args:
        root: A folder or an fsspec URL.
        what: The files, for the message.
        writable: Whether trials save files there; a folder of this machine is then looked at.

    Raises:
        SettingsError: The address is of no known kind, carries a password, or is in the memory of a
            process, which ends with the trial; or the folder cannot be written.
    """
    folder = local_folder(root)
    if folder is not None:
        if writable:
            _check_writable(folder, what)

        return

    _check_login(str(root))
    import fsspec

    for scheme in (part.partition("://")[0] for part in str(root).split("::")):
        try:
            fsspec.get_filesystem_class(scheme)
        except Exception as error:  # A package that is missing, or broken.
            raise SettingsError(
                f"{what} cannot be kept at {printable(str(root))}: {reason_of(error)}"
            ) from None

        if scheme == "memory":
            raise SettingsError(
                f"{what} cannot be kept at {printable(str(root))}: "
                "memory ends with each trial's process"
            )


def local_folder(location: Path | str) -> Path | None:
    """Return the path of a folder or a file on this machine; None for any other location.

    Raises:
        SettingsError: A file:// address of another machine, or a home folder that is not known.
    """
    if isinstance(location, Path):
        return location

    parts = urlsplit(location)
    if not parts.scheme:
        return expanded(location)

    if parts.scheme != "file":
        return None

    if parts.netloc not in ("", "localhost"):
        raise SettingsError(
            f"the address {printable(location)} is on another machine: "
            "file:///… is what can be used here"
        )

    return Path(unquote(parts.path))


def file_system(uri: str, what: str = "weights") -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        SettingsError: The address is of no known kind, or carries a password.
    """
    _check_login(uri)
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(uri)
    except Exception as error:  # Some packages connect at once, and raise any error.
        raise SettingsError(
            f"{what} cannot be kept at {printable(uri)}: {reason_of(error)}"
        ) from None

    return system, path


def printable(uri: str) -> str:
    """Return an address for messages: a local file by its path, any other without a login."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and not parts.netloc:
        return unquote(parts.path)

    return _LOGIN.sub("://", uri)


def reason_of(error: Exception) -> str:
    """Return the reason of an error of a file system, for messages."""
    if isinstance(error, OSError):
        return error.strerror or str(error)

    return str(error) or type(error).__name__


def _check_writable(folder: Path, what: str) -> None:
    above = folder
    while not os.path.exists(above):
        above = above.absolute().parent

    if not above.is_dir():
        problem = "it is no folder"
    else:
        problem = "" if os.access(above, os.W_OK | os.X_OK) else "no permission"

    if problem:
        where = "" if above == folder else f" ({above})"
        raise SettingsError(f"{what} cannot be kept at {folder}: {problem}{where}")


def _check_login(uri: str) -> None:
    for login in _LOGIN.finditer(uri):
        if ":" in login[1]:
            raise SettingsError(f"the address {printable(uri)} must not carry a password")
