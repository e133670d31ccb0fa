"""Files behind fsspec URLs, replaced as a whole: a reader finds the former content or the new one.

Object stores publish an upload when it is complete. Other file systems get a file under another
name first, which is then renamed. The caller limits the time of calls to a location that does not
answer (`archive.trainer.storage.timeouts`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from archive.errors import SettingsError, StorageUnavailableError
from archive.trainer.storage.locations import file_system, printable, reason_of

ATTEMPTS = 3
PAUSE_SECONDS = 1.0
"""Pause after the first failed attempt to read; each further one doubles it."""
PART = ".part"

_OBJECT_STORES = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci", "memory"}
)


@dataclass(frozen=True)
class RemoteFile:
    """A file below a URL.

    Attributes:
        uri: Its address.
        name: Its name in its folder.
        bytes: Its size.
        modified: Time of its last change, in seconds since 1970; None if it is not known.
    """

    uri: str
    name: str
    bytes: int
    modified: float | None


def read(uri: str) -> bytes | None:
    """Return the content of a file; None if there is none.

    Raises:
        StorageUnavailableError: The location does not answer, repeatedly.
        SettingsError: The address is of no known kind.
    """
    for attempt in range(ATTEMPTS):
        try:
            system, path = file_system(uri, "checkpoints")
            content: bytes = system.cat_file(path)
            return content
        except FileNotFoundError:
            return None
        except Exception as error:
            if attempt + 1 == ATTEMPTS:
                raise StorageUnavailableError(
                    f"cannot read {printable(uri)}: {reason_of(error)}"
                ) from error

            time.sleep(PAUSE_SECONDS * 2**attempt)

    return None


def write(uri: str, content: bytes) -> None:
    """Replace a file.

    Raises:
        StorageUnavailableError: It cannot be written; the former content is intact.
    """
    try:
        system, path = file_system(uri, "checkpoints")
        if _is_object_store(system):
            system.pipe_file(path, content)
            return

        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        part = f"{path}.{secrets.token_hex(4)}{PART}"
        try:
            system.pipe_file(part, content)
            _rename(system, part, path)
        except BaseException:
            with suppress(Exception):
                system.rm_file(part)

            raise
    except SettingsError:
        raise
    except Exception as error:
        raise StorageUnavailableError(
            f"cannot write {printable(uri)}: {reason_of(error)}"
        ) from error


def remove(uri: str) -> None:
    """Remove a file, and the partial files of its killed writers.

    Raises:
        StorageUnavailableError: It cannot be removed.
    """
    try:
        system, path = file_system(uri, "checkpoints")
        paths = [path]
        if not _is_object_store(system):
            folder = path.rpartition("/")[0]
            names = system.ls(folder, detail=False) if system.exists(folder) else []
            for name in names:
                if name.startswith(f"{path}.") and name.endswith(PART):
                    paths.append(name)

        for name in paths:
            with suppress(FileNotFoundError):
                system.rm_file(name)
    except SettingsError:
        raise
    except Exception as error:
        raise StorageUnavailableError(
            f"cannot remove {printable(uri)}: {reason_of(error)}"
        ) from error


def listed(root: str) -> Iterator[RemoteFile]:
    """Yield the files directly below a URL; none if there is no such folder.

    Raises:
        StorageUnavailableError: The location cannot be read.
    """
    try:
        system, path = file_system(root, "checkpoints")
        system.invalidate_cache()
        entries: list[dict[str, Any]] = system.ls(path, detail=True)
    except FileNotFoundError:
        return
    except SettingsError:
        raise
    except Exception as error:
        raise StorageUnavailableError(
            f"cannot read {printable(root)}: {reason_of(error)}"
        ) from error

    for entry in entries:
        if entry["type"] == "file":
            name = entry["name"].rpartition("/")[2]
            yield RemoteFile(
                f"{root.rstrip('/')}/{name}", name, int(entry["size"]), modified(entry)
            )


def modified(entry: dict[str, Any]) -> float | None:
    """Return the time of a file's last change in seconds since 1970; None if it is not known."""
    for name in ("mtime", "LastModified", "last_modified", "created"):
        if name in entry:
            moment = entry[name]
            if isinstance(moment, datetime):
                return moment.timestamp()

            return float(moment) if isinstance(moment, int | float) else None

    return None


def _is_object_store(system: Any) -> bool:
    names = (system.protocol,) if isinstance(system.protocol, str) else system.protocol
    return not _OBJECT_STORES.isdisjoint(names)


def _rename(system: Any, part: str, path: str) -> None:
    try:
        system.mv(part, path)
    except FileExistsError:
        # The file system cannot replace a file in one step.
        system.rm_file(path)
        system.mv(part, path)
