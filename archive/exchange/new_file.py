"""Atomic publication of a file: it is written under a temporary name and renamed when complete."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from archive.errors import UsageError


def part_of(path: Path) -> Path:
    """Return a new temporary path beside a file."""
    return path.with_name(f".{path.name}-{secrets.token_hex(4)}.part")


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
        UsageError: The file exists, or cannot be written.
    """
    part = part_of(path)
    try:
        part.write_bytes(content)
        publish(part, path, replace=force)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def check_free(path: Path, *, force: bool) -> None:
    """Check, before the work, that `write` would not refuse to replace a file.

    Raises:
        UsageError: The file exists, and is not to be replaced.
    """
    if path.exists() and not force:
        raise _exists(path)


def _exists(path: Path) -> UsageError:
    return UsageError(f"{path} exists: choose another name, or replace it with --force")
