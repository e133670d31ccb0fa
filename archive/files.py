"""Files on disk: atomic durable writes, and advisory locks.

**Durability.** A written file is complete or absent. Its content goes to a partial file in the same
folder (`.….part`), is synced to the disk, and gets its name by a rename; then the folder is synced.
After a crash or a power cut, a reader finds the former content or the new one. Only caches
(`archive.cache`) skip the two syncs: their readers verify checksums, and a lost file is computed
again.

**Locks.** A lock is a `flock` of a file. The system releases it when the last process that holds
its descriptor ends, so that a killed process leaves no lock behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from archive.errors import UsageError

PARTIAL = ".part"
"""Suffix of a partial file."""

_UNSYNCED_FOLDER = {errno.EINVAL, errno.ENOTSUP, errno.EACCES}
"""Errors of file systems that cannot sync a folder, and of folders that the process cannot read."""


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace a file atomically and durably; only its owner can read it.

    Args:
        path: Path of the file, in an existing folder.
        content: Its content; a text is encoded as UTF-8.

    Raises:
        OSError: It could not be written; nothing is left behind.
    """
    data = content.encode() if isinstance(content, str) else content
    with open_new(path) as file:
        file.write(data)


@contextlib.contextmanager
def open_new(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a partial file that replaces a file at the end of the block; after an error, remove it.

    Args:
        path: Final path. Only the owner can read the file.
        durable: Whether to sync; only a cache does without.

    Raises:
        OSError: It could not be written; nothing is left behind.
    """
    part = partial_path(path)
    handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if durable:
                sync(file)

        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()

        raise

    if durable:
        sync_folder(path.parent)


def write_export(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file for the user atomically and durably, with the usual permissions.

    Args:
        path: Path of the file.
        content: Its content.
        force: Whether to replace an existing file.

    Raises:
        UsageError: The file exists, cannot be written, or is a folder or a device.
    """
    check_regular(path)
    part = partial_path(path)
    try:
        with part.open("xb") as file:
            file.write(content)
            sync(file)

        publish(part, path, replace=force)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def publish(part: Path, path: Path, *, replace: bool) -> None:
    """Give a complete, synced partial file its final name.

    Args:
        part: The complete file; it may also keep this name.
        path: Final path, in the same folder.
        replace: Whether to replace an existing file.

    Raises:
        FileExistsError: The final path exists, and `replace` is not set.
        OSError: The file system refuses it.
    """
    if replace:
        os.replace(part, path)
    else:
        _publish_new(part, path)

    sync_folder(path.parent)


def partial_path(path: Path) -> Path:
    """Return a new path for the partial file of a file."""
    return path.with_name(f"{_partial_prefix(path)}{secrets.token_hex(4)}{PARTIAL}")


def partial_files(path: Path) -> list[Path]:
    """Return the partial files that killed writers of a file have left."""
    return list(path.parent.glob(f"{glob.escape(_partial_prefix(path))}*{PARTIAL}"))


def sync(file: BinaryIO) -> None:
    """Write the content of an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk: a renamed file survives a power cut only then."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _UNSYNCED_FOLDER:
            raise


def check_free(path: Path, *, force: bool) -> None:
    """Check, before the work, that `write_export` would not refuse to replace a file.

    Raises:
        UsageError: The file exists and must not be replaced, or is a folder or a device.
    """
    check_regular(path)
    if os.path.exists(path) and not force:
        raise _exists(path)


def check_regular(path: Path) -> None:
    """Check that a path is free or names a regular file: a replaced device would be lost.

    Raises:
        UsageError: It names a folder, a device or a pipe.
    """
    # Unlike the methods of a path, these functions raise no error for a name that is too long.
    if os.path.exists(path) and not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "no regular file"
        raise UsageError(f"{path} is {kind}: choose another name")


def lock_file(handle: int, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file; return whether it is locked now.

    Args:
        handle: Descriptor of the file; closing all its copies releases the lock.
        shared: Whether other shared locks may exist beside this one.
        wait: Whether to wait for other processes to release their locks.

    Raises:
        OSError: The file system has no locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False

    return True


def unlock_file(handle: int) -> None:
    """Release the lock of an open file, also where forked processes hold its descriptor."""
    fcntl.flock(handle, fcntl.LOCK_UN)


def try_lock(path: Path) -> int | None:
    """Lock a file without waiting; return its descriptor, or None if another process holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if lock_file(handle):
            return handle
    except BaseException:
        os.close(handle)
        raise

    os.close(handle)
    return None


def is_locked(path: Path) -> bool:
    """Return whether another process holds a lock file."""
    handle = try_lock(path)
    if handle is None:
        return True

    os.close(handle)
    return False


@contextlib.contextmanager
def closing(handle: int) -> Iterator[None]:
    """Close a descriptor at the end of the block, and so release its lock."""
    try:
        yield
    finally:
        os.close(handle)


def _partial_prefix(path: Path) -> str:
    # The whole name may already have the largest length of a file name.
    return f".{path.name[:16]}-{zlib.crc32(os.fsencode(path.name)):08x}-"


def _publish_new(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        # The file system has no links: the process that creates the empty file owns the name.
        path.open("xb").close()
        os.replace(part, path)


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists: choose another name, or replace it with --force")
