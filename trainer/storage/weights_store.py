"""Storage of trained weights: files named by the SHA-256 of their content.

    ROOT/3f/3f9a….safetensors    ROOT: a folder, or s3://bucket/weights, gs://…, sftp://… (`fsspec`)

Every read is verified: a file that was cut off or altered is never used. Equal content is one file.
Writes to a folder are atomic; elsewhere, a file of the wrong size is written again
(`archive.trainer.storage.locations`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archive.errors import SettingsError, WeightsError
from archive.files import write_atomically
from archive.store.records import Weights
from archive.trainer.storage.locations import file_system, local_folder, printable, reason_of
from archive.trainer.storage.remote_files import modified

SUFFIX = ".safetensors"
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights.

    Attributes:
        uri: Its address.
        sha256: Digest of its content, by its name.
        bytes: Its size.
        modified: Time of its last change, in seconds since 1970; None if it is not known.
    """

    uri: str
    sha256: str
    bytes: int
    modified: float | None


def write(root: Path | str, content: bytes) -> Weights:
    """Write content durably, and return its address.

    Raises:
        WeightsError: It cannot be written.
    """
    digest = hashlib.sha256(content).hexdigest()
    folder = local_folder(root)
    if folder is not None:
        path = folder / digest[:2] / f"{digest}{SUFFIX}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
        except OSError as error:
            raise WeightsError(
                f"cannot write weights to {folder}: {error.strerror or error}"
            ) from error

        return Weights(path.absolute().as_uri(), digest, len(content))

    uri = f"{str(root).rstrip('/')}/{digest[:2]}/{digest}{SUFFIX}"
    try:
        system, path_ = file_system(uri)
        if not (system.exists(path_) and system.size(path_) == len(content)):
            system.makedirs(path_.rpartition("/")[0], exist_ok=True)
            system.pipe_file(path_, content)
    except Exception as error:
        raise WeightsError(
            f"cannot write weights to {printable(str(root))}: {reason_of(error)}"
        ) from error

    return Weights(uri, digest, len(content))


def read(saved: Weights) -> bytes:
    """Return the content of weights, verified by its SHA-256.

    Raises:
        WeightsError: The file is missing, cut off or altered.
    """
    shown = printable(saved.uri)
    try:
        content = _content(saved.uri)
    except Exception as error:
        raise WeightsError(f"cannot read weights from {shown}: {reason_of(error)}") from error

    if len(content) != saved.bytes:
        raise WeightsError(f"the weights {shown} must be {saved.bytes} bytes long, and are not")

    digest = hashlib.sha256(content).hexdigest()
    if digest != saved.sha256:
        raise WeightsError(
            f"the weights {shown} were altered: their SHA-256 must be {saved.sha256}, got {digest}"
        )

    return content


def exists(uri: str) -> bool:
    """Return whether there is a file at an address; an unreachable location has none.

    Raises:
        SettingsError: The address is of no known kind.
    """
    folder = local_folder(uri)
    if folder is not None:
        return folder.is_file()

    system, path = file_system(uri)
    try:
        return bool(system.exists(path))
    except Exception:
        return False


def is_stored_at(saved: Weights, location: Path | str) -> bool:
    """Return whether weights have the address that a location gives them, without connecting to it.

    The address comes from the database, perhaps from an imported dump: any other protocol, host or
    folder, and any chain of them (`simplecache::…`), has another address.

    Args:
        saved: Address and digest of the weights.
        location: A folder or an fsspec URL from this machine's configuration.
    """
    tail = address("", saved.sha256)
    if tail is None:
        return False

    folder = local_folder(location)
    if folder is None:
        return saved.uri == f"{str(location).rstrip('/')}/{tail}"

    try:
        path = local_folder(saved.uri)
        # Links give a folder several names.
        return (
            path is not None
            and path.parts[-2:] == tuple(tail.split("/"))
            and os.path.realpath(path.parent.parent) == os.path.realpath(folder)
        )
    except (SettingsError, OSError, ValueError):
        return False


def remove(uri: str) -> None:
    """Remove a file, if it is there.

    Raises:
        WeightsError: It cannot be removed.
    """
    folder = local_folder(uri)
    try:
        if folder is not None:
            folder.unlink(missing_ok=True)
            return

        system, path = file_system(uri)
        if system.exists(path):
            system.rm_file(path)
    except SettingsError:
        raise
    except Exception as error:
        raise WeightsError(
            f"cannot remove the weights {printable(uri)}: {reason_of(error)}"
        ) from error


def listed(root: Path | str) -> Iterator[WeightsFile]:
    """Yield all files of weights below a root; files with other names are skipped.

    Raises:
        WeightsError: The location cannot be read.
    """
    folder = local_folder(root)
    under = root_uri(root)
    if folder is not None:
        for path in sorted(folder.glob(f"??/*{SUFFIX}")):
            uri = path.absolute().as_uri()
            with suppress(FileNotFoundError):  # Another collection has removed it.
                status = path.stat()
                if uri == address(under, path.stem):
                    yield WeightsFile(uri, path.stem, status.st_size, status.st_mtime)

        return

    system, path_ = file_system(str(root))
    try:
        entries: dict[str, dict[str, Any]] = system.find(path_, detail=True)
    except Exception as error:
        raise WeightsError(f"cannot read {printable(str(root))}: {reason_of(error)}") from error

    for name, entry in sorted(entries.items()):
        stem = name.rpartition("/")[2].removesuffix(SUFFIX)
        if name.lstrip("/") == address(f"{path_.strip('/')}/", stem):
            yield WeightsFile(
                f"{under}{stem[:2]}/{stem}{SUFFIX}", stem, int(entry["size"]), modified(entry)
            )


def address(under: str, sha256: str) -> str | None:
    """Return the address of content below a root (`root_uri`); None if the text is no digest."""
    return f"{under}{sha256[:2]}/{sha256}{SUFFIX}" if _DIGEST.fullmatch(sha256) else None


def root_of(uri: str) -> str:
    """Return the root of an address."""
    return uri.rsplit("/", 2)[0]


def root_uri(root: Path | str) -> str:
    """Return the common prefix of all addresses below a root.

    Raises:
        SettingsError: The root is no location for weights.
    """
    folder = local_folder(root)
    if folder is not None:
        return folder.absolute().as_uri() + "/"

    file_system(str(root))
    return str(root).rstrip("/") + "/"


def _content(uri: str) -> bytes:
    path = local_folder(uri)
    if path is not None:
        return path.read_bytes()

    system, path_ = file_system(uri)
    content: bytes = system.cat_file(path_)
    return content
