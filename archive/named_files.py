"""Files that may be opened although their path comes from the database.

Every writer of the database could choose such a path.

A named file may be a folder of images: its digest is over the names and the contents of its images
and of the CSV files directly in it.

below a data folder             ARCHIVE_DATA_DIR, HOME/data, and folders that a trainer is given
in HOME/named-files.jsonl       a command of this user, on this machine, named the file; with its SHA-256
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from archive.errors import SettingsError
from archive.files import expanded

log = logging.getLogger("archive.trainer")

RECORD = "named-files.jsonl"

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def data_folders(home: Path, folders: Iterable[str | os.PathLike[str]] = ()) -> tuple[Path, ...]:
    """Return the folders whose files may be opened, with links resolved.

    Args:
        home: Folder of the archive.
        folders: Further ones.

    Raises:
        SettingsError: `~name` names no user.
    """
    data = os.environ.get("ARCHIVE_DATA_DIR")
    allowed = [home / "data", *([data] if data else []), *folders]
    return tuple(Path(os.path.realpath(expanded(folder))) for folder in allowed)


def check_table(path: str, home: Path) -> None:
    """Check that the table of a recorded space may be opened.

    Args:
        path: Its path from the database.
        home: Folder of the archive.

    Raises:
        SettingsError: It may not; the message does not depend on the file.
    """
    real = resolved(path)
    if real is not None and any(real.is_relative_to(folder) for folder in data_folders(home)):
        return

    digests = () if real is None else recorded(home / RECORD).get(str(real), ())
    try:
        if real is not None and digests and sha256_of(real) in digests:
            return
    except OSError:
        pass

    raise SettingsError(
        f"the table {path} of the study's space may not be read here: "
        f"name it on this machine (archive search --task table:{path}#COLUMN), "
        "or set ARCHIVE_DATA_DIR to a folder above it"
    )


def record(home: Path, real: Path, sha256: str) -> None:
    """Record that a command of this user named a file.

    Args:
        home: Folder of the archive.
        real: The file, with links resolved.
        sha256: Digest of the file.

    Raises:
        SettingsError: The record cannot be written.
    """
    if sha256 in recorded(home / RECORD).get(str(real), ()):
        return

    line = json.dumps({"sha256": sha256, "path": str(real)}) + "\n"
    try:
        home.mkdir(parents=True, exist_ok=True)
        # One write to the end of the file: searches that start at the same moment do not overwrite
        # each other's line.
        handle = os.open(home / RECORD, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(handle).st_size
            # A kill may have cut the last line off.
            whole = not size or os.pread(handle, 1, size - 1) == b"\n"
            os.write(handle, (line if whole else f"\n{line}").encode())
        finally:
            os.close(handle)
    except OSError as error:
        raise SettingsError(
            f"cannot record in {home / RECORD} that trainers here may read {real}: {error.strerror}"
        ) from None


def resolved(path: str) -> Path | None:
    """Return a path with its links resolved; None if the text is no absolute path."""
    if not os.path.isabs(path):
        # Studies hold absolute paths. The database has no say in the meaning of `~` and `.` on this
        # machine.
        return None

    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return None


def sha256_of(real: Path) -> str:
    """Return the SHA-256 of a regular file.

    Raises:
        OSError: It cannot be read.
    """
    # Neither a pipe nor a link that has replaced the file meanwhile.
    handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no regular file")

        accepted = (
            real,
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        if accepted not in _digests:
            if len(_digests) >= _MOST_DIGESTS:
                _digests.clear()

            _digests[accepted] = hashlib.file_digest(file, "sha256").hexdigest()

        return _digests[accepted]


_digests: dict[tuple[Path, int, int, int, int, int], str] = {}
_MOST_DIGESTS = 256


IMAGES = frozenset(
    {".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)
"""Endings of the files that are images, in lower case."""


def list_folder(real: Path) -> list[str]:
    """Return the names of the images below a folder and of the CSV files in it, sorted.

    Hidden files and folders are left out, as are files with other endings.

    Args:
        real: The folder, with links resolved.

    Returns:
        Paths relative to the folder, with slashes.

    Raises:
        OSError: The folder cannot be read, or a link in it leads out of it.
    """

    def refuse(error: OSError) -> None:
        raise error

    names: list[str] = []
    for folder, folders, files in os.walk(real, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):
                raise OSError(0, "a folder in it is a link")

        for name in files:
            ending = os.path.splitext(name)[1].lower()
            is_table = ending == ".csv" and Path(folder) == real
            if name.startswith(".") or not (ending in IMAGES or is_table):
                continue

            path = os.path.join(folder, name)
            if os.path.islink(path) and not Path(os.path.realpath(path)).is_relative_to(real):
                raise OSError(0, "a link in it leads out of it")

            names.append(Path(path).relative_to(real).as_posix())

    return sorted(names)


def folder_sha256(real: Path) -> str:
    """Return the digest of a folder of images: of the names and the contents of its files.

    Args:
        real: The folder, with links resolved.

    Raises:
        OSError: It cannot be read.
    """
    names = list_folder(real)
    files = [Path(os.path.realpath(real / name)) for name in names]
    signature = hashlib.sha256()
    for name, file in zip(names, files, strict=True):
        status = file.stat()
        state = (name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        signature.update(repr(state).encode("utf-8", "surrogateescape"))

    seen = signature.hexdigest()
    if _folders.get(real, ("", ""))[0] != seen:
        digest = hashlib.sha256()
        for name, file in zip(names, files, strict=True):
            digest.update(f"{name}\0{sha256_of(file)}\n".encode("utf-8", "surrogateescape"))

        _folders[real] = (seen, digest.hexdigest())

    return _folders[real][1]


_folders: dict[Path, tuple[str, str]] = {}
"""State and digest of each folder."""


def recorded(record: Path | None) -> dict[str, tuple[str, ...]]:
    """Return the recorded digests of each path.

    There are none if another user could have written the record.
    """
    if record is None:
        return {}

    try:
        status = record.stat()
    except OSError:
        return {}

    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE:
        log.warning(
            "named files ignored path=%s reason=%r",
            record,
            "other users may write to it: run chmod 600",
        )
        return {}

    return _read_record(record, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _read_record(record: Path, _modified: int, _size: int) -> dict[str, tuple[str, ...]]:
    digests: dict[str, tuple[str, ...]] = {}
    try:
        lines = record.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return {}

    for line in lines:
        try:
            entry = json.loads(line)
            path = str(entry["path"])
            sha256 = str(entry["sha256"])
        except (ValueError, TypeError, KeyError):
            continue  # cut off by a kill

        digests[path] = (*digests.get(path, ()), sha256)

    return digests
