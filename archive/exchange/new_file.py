"""Atomic publication of a file: it is written under a temporary name and renamed when complete."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from archive.errors import UsageError


def part_of(path: Path) -> Path:
    """Return a new temporary path beside a file."""
    # Without the name of the file, which may have the most letters that a name can have.
    return path.parent / f".{secrets.token_hex(8)}.part"


def publish(part: Path, path: Path, *, replace: bool) -> None:
    """Give a complete file its final name.

    Args:
        part: The complete file; it may also keep this name.
        path: Final path, in the same folder.
        replace: Whether to replace an existing file.

    Raises:
        FileExistsError: The final path exists, and `replace` is not set.
        OSError: The file system refuses it.
    """
    if not replace:
        try:
            os.link(part, path)
            return
        except FileExistsError:
            raise
        except OSError:
            # The file system has no links: the process that creates the empty file owns the name.
            path.open("xb").close()

    os.replace(part, path)


def write(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file in one step.

    Args:
        path: Path of the file.
        content: Its content.
        force: Whether to replace an existing file.

    Raises:
        UsageError: The file exists, cannot be written, or is a folder or a device.
    """
    check_regular(path)
    part = part_of(path)
    try:
        part.write_bytes(content)
        publish(part, path, replace=force)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def check_free(path: Path, *, force: bool) -> None:
    """Check, before the work, that `write` would not refuse to replace a file.

    Raises:
        UsageError: The file exists and must not be replaced, or is a folder or a device.
    """
    check_regular(path)
    if os.path.exists(path) and not force:
        raise _exists(path)


def check_regular(path: Path) -> None:
    """Check that a path is free, or that of a regular file: a device that is replaced by a file is
    lost.

    Raises:
        UsageError: It is that of a folder, a device or a pipe.
    """
    # Unlike the methods of a path, these functions raise no error for a name that is too long.
    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(
            f"{path} is {'a folder' if os.path.isdir(path) else 'no regular file'}: "
            "choose another name"
        )


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists: choose another name, or replace it with --force")
