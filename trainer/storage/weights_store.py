"""Storage of trained weights: files named by the SHA-256 of their content, in a folder or behind an fsspec URL.

    ROOT/3f/3f9a….safetensors        ROOT: a folder, or s3://bucket/weights, gs://…, sftp://… (`fsspec`)

Every read is verified: a file that was cut off or altered is never used. Equal content is one file. Writes to a folder
are atomic; elsewhere, a file of the wrong size is written again. Other kinds of URL need the package that fsspec names
for them (`pip install s3fs`), and take their credentials from that package's configuration, never from the URL.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from archive.errors import SettingsError, WeightsError
from archive.store.records import Weights
from archive.trainer.storage.atomic import write_atomically

SUFFIX = ".safetensors"
_DIGEST = re.compile("[0-9a-f]{64}")
_LOGIN = re.compile("://((?:(?!::).)*)@")
"""The login of each address in a URL: fsspec chains them, `simplecache::sftp://…`."""


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights; `modified` in seconds since 1970, None where the file system does not tell."""

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
            write_atomically(path, content)
        except OSError as error:
            raise WeightsError(f"cannot write weights to {folder}: {error.strerror or error}") from error
        return Weights(path.absolute().as_uri(), digest, len(content))
    uri = f"{str(root).rstrip('/')}/{digest[:2]}/{digest}{SUFFIX}"
    try:
        system, path_ = _remote(uri)
        if not (system.exists(path_) and system.size(path_) == len(content)):
            system.makedirs(path_.rpartition("/")[0], exist_ok=True)
            system.pipe_file(path_, content)
    except Exception as error:
        raise WeightsError(f"cannot write weights to {_printable(str(root))}: {_reason(error)}") from error
    return Weights(uri, digest, len(content))


def read(saved: Weights) -> bytes:
    """Return the content of weights, verified by its SHA-256.

    Raises:
        WeightsError: The file is missing, cut off or altered.
    """
    shown = _printable(saved.uri)
    try:
        content = _content(saved.uri)
    except Exception as error:
        raise WeightsError(f"cannot read weights from {shown}: {_reason(error)}") from error
    if len(content) != saved.bytes:
        raise WeightsError(f"the weights {shown} must be {saved.bytes} bytes long, and are not")
    digest = hashlib.sha256(content).hexdigest()
    if digest != saved.sha256:
        raise WeightsError(f"the weights {shown} were altered: their SHA-256 must be {saved.sha256}, got {digest}")
    return content


def check_location(root: Path | str) -> None:
    """Check that trials can save weights at a location, without connecting to it.

    Raises:
        SettingsError: The address is of no known kind, carries a password, or is in the memory of a process, which
            ends with the trial.
    """
    if local_folder(root) is not None:
        return
    _check_login(str(root))
    import fsspec

    for scheme in (part.partition("://")[0] for part in str(root).split("::")):
        try:
            fsspec.get_filesystem_class(scheme)
        except Exception as error:  # A package that is missing, or broken.
            raise SettingsError(f"weights cannot be kept at {_printable(str(root))}: {_reason(error)}") from None
        if scheme == "memory":
            raise SettingsError(
                f"weights cannot be kept at {_printable(str(root))}: memory ends with each trial's process"
            )


def exists(uri: str) -> bool:
    """Return whether there is a file at an address; an unreachable location has none.

    Raises:
        SettingsError: The address is of no known kind.
    """
    folder = local_folder(uri)
    if folder is not None:
        return folder.is_file()
    system, path = _remote(uri)
    try:
        return bool(system.exists(path))
    except Exception:
        return False


def is_stored_at(saved: Weights, location: Path | str) -> bool:
    """Return whether weights have the address that a location gives them, without connecting to it.

    The address comes from the database, perhaps from an imported dump: any other protocol, host or folder, and any
    chain of them (`simplecache::…`), has another address.

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
        system, path = _remote(uri)
        if system.exists(path):
            system.rm_file(path)
    except SettingsError:
        raise
    except Exception as error:
        raise WeightsError(f"cannot remove the weights {_printable(uri)}: {_reason(error)}") from error


def listed(root: Path | str) -> Iterator[WeightsFile]:
    """Yield all files of weights below a root; files with other names are skipped.

    Raises:
        WeightsError: The location cannot be read.
    """
    folder, under = local_folder(root), root_uri(root)
    if folder is not None:
        for path in sorted(folder.glob(f"??/*{SUFFIX}")):
            uri = path.absolute().as_uri()
            with suppress(FileNotFoundError):  # Another collection has removed it.
                status = path.stat()
                if uri == address(under, path.stem):
                    yield WeightsFile(uri, path.stem, status.st_size, status.st_mtime)
        return
    system, path_ = _remote(str(root))
    try:
        entries: dict[str, dict[str, Any]] = system.find(path_, detail=True)
    except Exception as error:
        raise WeightsError(f"cannot read {_printable(str(root))}: {_reason(error)}") from error
    for name, entry in sorted(entries.items()):
        stem = name.rpartition("/")[2].removesuffix(SUFFIX)
        if name.lstrip("/") == address(f"{path_.strip('/')}/", stem):
            yield WeightsFile(f"{under}{stem[:2]}/{stem}{SUFFIX}", stem, int(entry["size"]), _modified(entry))


def address(under: str, sha256: str) -> str | None:
    """Return the address of content below a root in the form of `root_uri`; None if the text is no digest."""
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
    _remote(str(root))
    return str(root).rstrip("/") + "/"


def local_folder(location: Path | str) -> Path | None:
    """Return the path of a folder or a file on this machine; None for any other location.

    Raises:
        SettingsError: A file:// address of another machine.
    """
    if isinstance(location, Path):
        return location
    parts = urlsplit(location)
    if not parts.scheme:
        return Path(location).expanduser()
    if parts.scheme != "file":
        return None
    if parts.netloc not in ("", "localhost"):
        raise SettingsError(
            f"the address {_printable(location)} is on another machine: file:///… is what can be used here"
        )
    return Path(unquote(parts.path))


def _content(uri: str) -> bytes:
    path = local_folder(uri)
    if path is not None:
        return path.read_bytes()
    system, path_ = _remote(uri)
    content: bytes = system.cat_file(path_)
    return content


def _remote(uri: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it."""
    _check_login(uri)
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(uri)
    except Exception as error:  # Some packages connect at once, and raise errors of their own.
        raise SettingsError(f"weights cannot be kept at {_printable(uri)}: {_reason(error)}") from None
    return system, path


def _check_login(uri: str) -> None:
    if any(":" in login[1] for login in _LOGIN.finditer(uri)):
        raise SettingsError(f"the address {_printable(uri)} must not carry a password")


def _modified(entry: dict[str, Any]) -> float | None:
    time = next((entry[name] for name in ("mtime", "LastModified", "last_modified", "created") if name in entry), None)
    if isinstance(time, datetime):
        return time.timestamp()
    return float(time) if isinstance(time, int | float) else None


def _printable(uri: str) -> str:
    """Return an address for messages: a local file by its path, any other without a login."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and not parts.netloc:
        return unquote(parts.path)
    return _LOGIN.sub("://", uri)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error) or type(error).__name__
