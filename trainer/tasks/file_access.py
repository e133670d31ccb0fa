"""Access to files that studies name: permission to open them, and errors without their content.

A study's task may be a file: `csv:PATH#TARGET`, `parquet:PATH#TARGET`, `npz:PATH`, `images:FOLDER`,
`table:PATH#COLUMN`, `text:PATH`. The path then comes from the database, where every writer of the archive could choose it. A file is opened for a
study if its content is the one that the study's protocol names (a prefix of its SHA-256,
`csv/3f9a0c…`), and if its path, with links resolved, is

    below a folder of the trainer                     `--data-folder`, ARCHIVE_DATA_DIR, HOME/data
    in HOME/named-files.jsonl, with that SHA-256      named by a search of this user here

Any other path is refused with a message that does not depend on the file. Errors on such files are
recorded in the archive, where every reader sees them, and quote nothing of the content; a command
on a user's own file does quote it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from archive import named_files
from archive.errors import (
    ArchiveError,
    MissingDataError,
    UnknownNameError,
    UnusableFileError,
    UsageError,
)
from archive.files import absolute
from archive.named_files import RECORD, folder_sha256
from archive.named_files import recorded as _recorded
from archive.named_files import resolved as _resolved
from archive.named_files import sha256_of as _sha256

FORMS: Final = ("csv", "images", "npz", "parquet", "table", "text")
KINDS: Final = ("classes", "values")
"""Kinds of targets, at the end of a task's name: `csv:PATH#TARGET:classes`, `npz:PATH:values`."""
BALANCED: Final = "balanced"
"""Option of a task's name: the classes weigh the same in the training loss."""
SKIP_BAD: Final = "skip-bad"
"""Option of a task on images: files that cannot be read are left out."""
OPTIONS: Final = (*KINDS, BALANCED, SKIP_BAD)
_COLUMN = re.compile(
    r"(?<=\.csv)#|(?<=\.tsv)#|(?<=\.csv\.gz)#|(?<=\.tsv\.gz)#|(?<=\.parquet)#|(?<=\.pq)#"
)
_SIZE = re.compile(r"@\d+(?:x\d+)?")
_PROTOCOL = re.compile(
    r"(?:csv|images|npz|parquet|table|text)/(?P<digest>[0-9a-f]{12,64})"
    r"(?:/long|(?:/\d+[kMG]|/[\d.e]+flops)?(?:/muon)?(?:/mup)?)(?:\+.*)?"
)


def reference_of(task: str) -> tuple[str, str] | None:
    """Return the path and the column in the name of a task, each empty if missing.

    The column begins after the ending of a table's file name, so that both may contain `#`; after
    the last `#` of a name without such an ending. It includes the options of the target,
    `TARGET:classes:balanced`; an `npz` has no column, only the options, and a folder of images the
    size and the options, `@32:balanced`.

    Returns:
        None if the task is no file.
    """
    form, separator, reference = task.partition(":")
    if not separator or form not in FORMS:
        return None

    if form == "text":
        return reference, ""

    if form in ("npz", "images"):
        path, options = split_options(reference)
        column = ":".join(options)
        if form == "npz":
            return path, column

        plain, at, size = path.rpartition("@")
        if at and _SIZE.fullmatch(at + size):
            path = plain
            column = f"@{size}:{column}" if column else f"@{size}"
        elif column:
            column = f":{column}"

        # A path with and without a slash at its end is one folder.
        return path.rstrip("/") or path, column

    if named := _COLUMN.search(reference):
        return reference[: named.start()], reference[named.end() :]

    path, _, column = reference.rpartition("#")
    return path, column


def split_options(text: str) -> tuple[str, list[str]]:
    """Return a name without the options at its end, and the options in their order."""
    options: list[str] = []
    while True:
        rest, separator, option = text.rpartition(":")
        if not separator or option not in OPTIONS:
            return text, options

        text = rest
        options.insert(0, option)


def label_of(task: str) -> str:
    """Return the name of a task for public labels: a file without its folders."""
    reference = reference_of(task)
    if reference is None:
        return task

    path, column = reference
    form = task.partition(":")[0]
    label = f"{form}:{Path(path).name}"
    if not column:
        return label

    if form == "images":
        return f"{label}{column}"

    return f"{label}:{column}" if form == "npz" else f"{label}#{column}"


@dataclass(frozen=True)
class FileAccess:
    """The files that may be opened for studies.

    Attributes:
        folders: Folders of files that may be opened, with links resolved.
        record: File with the paths and SHA-256 of the files that commands of this user named; None
            for no such file.
    """

    folders: tuple[Path, ...] = ()
    record: Path | None = None

    @classmethod
    def of(cls, home: Path, folders: Iterable[str | os.PathLike[str]] = ()) -> FileAccess:
        """Return a trainer's access: its data folder, further folders, and its user's files."""
        return cls(named_files.data_folders(home, folders), home / RECORD)

    def check(self, path: str, protocol: str) -> None:
        """Check that a file may be opened, and has the content that a protocol names.

        Args:
            path: Path from the database.
            protocol: Name of the study's protocol.

        Raises:
            SettingsError: It may not be opened, or has another content; another trainer may have
                the file.
        """
        named = _PROTOCOL.fullmatch(protocol)
        real = _resolved(path)
        if named is None or real is None or not self._allows(real, named["digest"]):
            raise MissingDataError(
                f"the file {path} may not be read here: name it on this machine (archive search "
                "--task), or start the trainer with --data-folder and a folder above it"
            )

        check_content(path, protocol)

    def _allows(self, real: Path, digest: str) -> bool:
        if any(real.is_relative_to(folder) for folder in self.folders):
            return True

        # Another digest of a recorded path is refused like an unknown path: the refusal tells
        # nothing of the record.
        recorded = _recorded(self.record).get(str(real), ())
        return any(sha256.startswith(digest) for sha256 in recorded)


def check_content(path: str, protocol: str) -> None:
    """Check that a file has the content that a protocol names.

    Args:
        path: Path of the file, which may be opened.
        protocol: Name of a study's protocol; one that names no content passes.

    Raises:
        SettingsError: It has another content, or cannot be read.
    """
    named = _PROTOCOL.fullmatch(protocol)
    real = _resolved(path)
    try:
        digest = "" if real is None else sha256_of_path(real)
    except OSError as error:
        raise MissingDataError(f"cannot read {path}: {error.strerror}") from None

    if named is not None and not digest.startswith(named["digest"]):
        raise MissingDataError(
            f"the file {path} is not the one that the study was created with: its content is not "
            f"that of the protocol {protocol}; put that file back, or create another study with "
            "this one"
        )


def sha256_of_path(real: Path) -> str:
    """Return the digest of a file, or of a folder of images.

    Raises:
        OSError: It cannot be read.
    """
    return folder_sha256(real) if real.is_dir() else _sha256(real)


def record_file(home: Path, task: str, sha256: str) -> None:
    """Record that a command of this user named a file: trainers with the home may open it.

    Args:
        home: Folder of the archive.
        task: Name of the task; without a file, nothing is recorded.
        sha256: Digest of the file.

    Raises:
        SettingsError: The record cannot be written.
    """
    reference = reference_of(task)
    real = None if reference is None else _resolved(reference[0])
    if real is not None:
        named_files.record(home, real, sha256)


def find_path(reference: str) -> tuple[Path, os.stat_result]:
    """Return the path that a user named, from the root, and its status.

    Raises:
        UsageError: There is no such file or folder.
    """
    try:
        path = absolute(reference)
        return path, path.stat()
    except OSError as error:
        raise UsageError(f"cannot read {reference}: {error.strerror}") from None
    except ValueError as error:
        # The text cannot be a path.
        raise UsageError(f"cannot read {reference!r}: {error}") from None


def read_file(path: Path) -> bytes:
    """Return the content of a user's file.

    Raises:
        UsageError: It cannot be read, or is no regular file.
    """
    try:
        if not path.is_file() and not path.is_dir() and path.exists():
            # A pipe or a device may have no end.
            raise UsageError(f"cannot read {path}: it is no regular file")

        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


@contextmanager
def redacted_errors(path: str | Path) -> Iterator[None]:
    """Remove the content of a file from the errors on it, and from their tracebacks.

    Raises:
        UnusableFileError: The file cannot be used; with rows and columns of the fault, and no
            content.
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
