"""Files on disk: atomic durable writes, advisory locks, users' paths, owners.

**Durability.** A written file is complete or absent. Its content goes to a partial file in the same
folder (`.….part`), is synced to the disk, and gets its name by a rename; then the folder is synced.
After a crash or a power cut, a reader finds the former content or the new one. Only caches
(`archive.cache`) skip the two syncs: their readers verify checksums, and a lost file is computed
again.

**Locks.** A lock is a `flock` of a file. The system releases it when the last process that holds
its descriptor ends, so that a killed process leaves no lock behind.

**Paths of users.** `~` and `~name` stand for home folders. Data sets and tables are in:

| environment        | folder                                    |
|--------------------|-------------------------------------------|
| `ARCHIVE_DATA_DIR` | its folder `data`, else the folder itself |
| none               | `ARCHIVE_HOME/data`, or `~/.archive/data` |

**Owners.** What a process obeys must belong to its user or to root, and no other user may write to
it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import grp
import os
import pwd
import secrets
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

from archive.errors import SettingsError, UsageError

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
