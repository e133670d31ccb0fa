"""Access to files that studies name: which may be opened here, and errors that quote nothing of them.

A study's task may be a file: `csv:PATH#TARGET`, `npz:PATH`, `table:PATH#COLUMN`. The path then comes from the
database, where every writer of the archive could choose it. A file is opened for a study if its content is the one
that the study's protocol names (a prefix of its SHA-256, `csv/3f9a0c…`), and if its path, with links resolved, is

    below a folder of the trainer                     `--data-folder`, ARCHIVE_DATA_DIR, HOME/data
    in HOME/named-files.jsonl, with that SHA-256      a search of this user, on this machine, named it

Any other path is refused with a message that does not depend on the file. Errors on such files are recorded in the
archive, where every reader sees them, and quote nothing of the content; a command on a user's own file does quote it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from archive.errors import ArchiveError, SettingsError, UnknownNameError, UnusableFileError

log = logging.getLogger("archive.trainer")

FORMS: Final = ("csv", "npz", "table")
RECORD = "named-files.jsonl"

_PROTOCOL = re.compile(r"(?:csv|npz|table)/(?P<digest>[0-9a-f]{12,64})(?:\+.*)?")
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def reference_of(task: str) -> tuple[str, str] | None:
    """Return the path and the column in the name of a task, each empty if missing; None if the task is no file."""
    form, separator, reference = task.partition(":")
    if not separator or form not in FORMS:
        return None
    if form == "npz":
        return reference, ""
    path, _, column = reference.rpartition("#")
    return path, column


def label_of(task: str) -> str:
    """Return the name of a task for public labels: a file without its folders."""
    reference = reference_of(task)
    if reference is None:
        return task
    path, column = reference
    return f"{task.partition(':')[0]}:{Path(path).name}" + (f"#{column}" if column else "")


@dataclass(frozen=True)
class FileAccess:
    """The files that may be opened for studies.

    Attributes:
        folders: Folders whose files may be opened, with links resolved.
        record: File with the paths and SHA-256 of the files that commands of this user named; None for no such file.
    """

    folders: tuple[Path, ...] = ()
    record: Path | None = None

    @classmethod
    def of(cls, home: Path, folders: Iterable[str | os.PathLike[str]] = ()) -> FileAccess:
        """Return the access of a trainer: the data folder of its home, further folders, and files named by its user."""
        data = os.environ.get("ARCHIVE_DATA_DIR")
        allowed = [home / "data", *([data] if data else []), *folders]
        return cls(tuple(Path(os.path.realpath(folder)) for folder in allowed), home / RECORD)

    def check(self, path: str, protocol: str) -> None:
        """Check that a file may be opened and has the content that a protocol names, before it is parsed.

        Args:
            path: Path from the database.
            protocol: Name of the study's protocol.

        Raises:
            SettingsError: It may not be opened, or has another content; another trainer may have the file.
        """
        named = _PROTOCOL.fullmatch(protocol)
        real = _resolved(path)
        if named is None or real is None or not self._allows(real, named["digest"]):
            raise SettingsError(
                f"the file {path} may not be read here: name it on this machine (archive search --task), or start the "
                "trainer with --data-folder and a folder above it"
            )
        try:
            digest = _sha256(real)
        except OSError as error:
            raise SettingsError(f"cannot read {path}: {error.strerror}") from None
        if not digest.startswith(named["digest"]):
            raise SettingsError(
                f"the file {path} is not the one that the study was created with: its content is not that of the "
                f"protocol {protocol}; put that file back, or create another study with this one"
            )

    def _allows(self, real: Path, digest: str) -> bool:
        if any(real.is_relative_to(folder) for folder in self.folders):
            return True
        # Another digest of a recorded path is refused like an unknown path: the refusal tells nothing of the record.
        return any(known.startswith(digest) for known in _recorded(self.record).get(str(real), ()))


def record_file(home: Path, task: str, sha256: str) -> None:
    """Record that a command of this user named a file, so that trainers with the same home may open it for a study.

    Args:
        home: Folder of the archive.
        task: Name of the task; without a file, nothing is recorded.
        sha256: Digest of the file.

    Raises:
        SettingsError: The record cannot be written.
    """
    reference = reference_of(task)
    real = None if reference is None else _resolved(reference[0])
    if real is None or sha256 in _recorded(home / RECORD).get(str(real), ()):
        return
    line = json.dumps({"sha256": sha256, "path": str(real)}) + "\n"
    try:
        home.mkdir(parents=True, exist_ok=True)
        # One write to the end of the file: searches that start at the same moment do not overwrite each other's line.
        record = os.open(home / RECORD, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(record, line.encode())
        finally:
            os.close(record)
    except OSError as error:
        raise SettingsError(
            f"cannot record in {home / RECORD} that trainers here may read {real}: {error.strerror}"
        ) from None


@contextmanager
def redacted_errors(path: str | Path) -> Iterator[None]:
    """Remove the content of a file from the errors on it, and from their tracebacks.

    Raises:
        UnusableFileError: The file cannot be used; with rows and columns of the fault, and no content.
        ArchiveError: Any other error of the archive, unchanged.
    """
    try:
        yield
    except UnusableFileError as error:
        raise UnusableFileError(error.fault) from None
    except UnknownNameError as error:
        # Its message lists the known names, here the header.
        raise UnusableFileError(f"unknown {error.kind} {error.name!r}") from None
    except ArchiveError:
        raise
    except Exception as error:
        raise UnusableFileError(f"{path} cannot be used: {type(error).__name__}") from None


def _resolved(path: str) -> Path | None:
    """Return a path with its links resolved; None if the text is no absolute path."""
    if not os.path.isabs(path):
        # Studies hold absolute paths. The database has no say in the meaning of `~` and `.` on this machine.
        return None
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return None


def _sha256(real: Path) -> str:
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
        known = (real, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if known not in _digests:
            if len(_digests) >= _MOST_DIGESTS:
                _digests.clear()
            _digests[known] = hashlib.file_digest(file, "sha256").hexdigest()
        return _digests[known]


_digests: dict[tuple[Path, int, int, int, int, int], str] = {}
_MOST_DIGESTS = 256


def _recorded(record: Path | None) -> dict[str, tuple[str, ...]]:
    """Return the recorded digests of each path; none if another user could have written the record."""
    if record is None:
        return {}
    try:
        status = record.stat()
    except OSError:
        return {}
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE:
        log.warning("named files ignored path=%s reason=%r", record, "other users may write to it: run chmod 600")
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
            path, sha256 = str(entry["path"]), str(entry["sha256"])
        except (ValueError, TypeError, KeyError):
            continue  # cut off by a kill
        digests[path] = (*digests.get(path, ()), sha256)
    return digests
