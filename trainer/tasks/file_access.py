"""Files that studies name: which of them may be opened here, and what may be said of them.

A study's task may be a file: `csv:PATH#TARGET`, `npz:PATH`, `table:PATH#COLUMN`. The path is then the database's word,
and everybody who can write there could choose it. A file is opened for a study if it holds what the study's protocol
names (a prefix of its SHA-256, `csv/3f9a0c…`), and if its path, links followed, is

    below a folder of the trainer                     `--data-folder`, ARCHIVE_DATA_DIR, HOME/data
    in HOME/named-files.jsonl, with that SHA-256      a search of this user, on this machine, named it

Any other path is refused in words that do not depend on what is there. Errors on such files go on record for everybody
to read, and quote nothing of them; a user's own command, who names a file of his, is told what it holds.
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
    """Return the path and the column that the name of a task has in it; None where the task is no file.

    Either is empty where the name lacks it.
    """
    form, separator, reference = task.partition(":")
    if not separator or form not in FORMS:
        return None
    if form == "npz":
        return reference, ""
    path, _, column = reference.rpartition("#")
    return path, column


def label_of(task: str) -> str:
    """Return the name of a task as anybody may see it: a file by its name alone, without the folders."""
    reference = reference_of(task)
    if reference is None:
        return task
    path, column = reference
    return f"{task.partition(':')[0]}:{Path(path).name}" + (f"#{column}" if column else "")


@dataclass(frozen=True)
class Access:
    """Which files may be opened for studies.

    Attributes:
        folders: All below these, links followed.
        record: File with the paths and SHA-256 of what commands of this user named; None where there is none.
    """

    folders: tuple[Path, ...] = ()
    record: Path | None = None

    @classmethod
    def of(cls, home: Path, folders: Iterable[str | os.PathLike[str]] = ()) -> Access:
        """Return what may be opened beside an archive's home: the folders of data, those given, and files by name."""
        data = os.environ.get("ARCHIVE_DATA_DIR")
        chosen = [home / "data", *([data] if data else []), *folders]
        return cls(tuple(Path(os.path.realpath(folder)) for folder in chosen), home / RECORD)

    def check(self, path: str, protocol: str) -> None:
        """See that a file may be opened, and holds what a protocol names, before anything of it is parsed.

        Args:
            path: From the database.
            protocol: Name of the study's protocol.

        Raises:
            SettingsError: It may not, or does not; another trainer may have it.
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
                f"the file {path} is not the one that the study was begun with: its content is not that of the "
                f"protocol {protocol}; put that file back, or begin a study of its own with this one"
            )

    def _allows(self, real: Path, digest: str) -> bool:
        if any(real.is_relative_to(folder) for folder in self.folders):
            return True
        # What else the record holds of a path is nobody's business: a digest that it does not have is a refusal.
        return any(known.startswith(digest) for known in _recorded(self.record).get(str(real), ()))


def remember(home: Path, task: str, sha256: str) -> None:
    """Note that a command of this user named a file, so that trainers over the same home may open it for a study.

    Args:
        home: Folder of the archive.
        task: Name of the task; one that is no file leaves nothing to note.
        sha256: Of the file.

    Raises:
        SettingsError: It cannot be noted.
    """
    reference = reference_of(task)
    real = None if reference is None else _resolved(reference[0])
    if real is None or sha256 in _recorded(home / RECORD).get(str(real), ()):
        return
    line = json.dumps({"sha256": sha256, "path": str(real)}) + "\n"
    try:
        home.mkdir(parents=True, exist_ok=True)
        # One write to the end of the file: searches that begin at the same moment do not overwrite each other's line.
        record = os.open(home / RECORD, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(record, line.encode())
        finally:
            os.close(record)
    except OSError as error:
        raise SettingsError(
            f"cannot note in {home / RECORD} that trainers here may read {real}: {error.strerror}"
        ) from None


@contextmanager
def discreet(path: str | Path) -> Iterator[None]:
    """Take what a file holds out of the errors on it, and out of their tracebacks.

    Raises:
        UnusableFileError: The file cannot be used; what is wrong in rows and columns, and no content.
        ArchiveError: Any other error of the archive's own, as it was.
    """
    try:
        yield
    except UnusableFileError as error:
        raise UnusableFileError(error.fault) from None
    except UnknownNameError as error:
        # It would list the names that there are: the header.
        raise UnusableFileError(f"unknown {error.kind} {error.name!r}") from None
    except ArchiveError:
        raise
    except Exception as error:
        raise UnusableFileError(f"{path} cannot be used: {type(error).__name__}") from None


def _resolved(path: str) -> Path | None:
    """Return a path with its links followed; None where the text is no absolute path."""
    if not os.path.isabs(path):
        # Studies hold absolute ones. Whose home `~` is, or which folder `.`, is not for the database to ask.
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
    # Neither a pipe nor a link that has taken the file's place meanwhile.
    handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(0, "it is no regular file")
        known = (real, about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        if known not in _digests:
            if len(_digests) >= _MOST_DIGESTS:
                _digests.clear()
            _digests[known] = hashlib.file_digest(file, "sha256").hexdigest()
        return _digests[known]


_digests: dict[tuple[Path, int, int, int, int, int], str] = {}
_MOST_DIGESTS = 256


def _recorded(record: Path | None) -> dict[str, tuple[str, ...]]:
    """Return the digests of each path on record; nothing where others could have written it."""
    if record is None:
        return {}
    try:
        about = record.stat()
    except OSError:
        return {}
    if about.st_uid != os.geteuid() or about.st_mode & _OTHERS_MAY_WRITE:
        log.warning("no files by name path=%s reason=%r", record, "others may write to it: run chmod 600")
        return {}
    return _read_record(record, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=4)
def _read_record(record: Path, _modified: int, _size: int) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
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
        found[path] = (*found.get(path, ()), sha256)
    return found
