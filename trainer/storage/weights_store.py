"""Where trained weights are kept: files named by the SHA-256 of their content, in a folder or behind any fsspec URL.

    ROOT/3f/3f9a….safetensors        ROOT: a folder, or s3://bucket/weights, gs://…, sftp://… (`fsspec`)

What is read is verified: a file that was cut off or altered is never taken for weights. Equal content is one file. In a
folder a file is whole or not there; elsewhere, a file that is not of the right size is written again.
Other kinds of URL need the package that fsspec names for them (`pip install s3fs`), and take their credentials from
where that package looks for them, never from the URL.
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

from archive.errors import CheckpointError, SettingsError
from archive.store.records import Checkpoint
from archive.trainer.storage.atomic import write_atomically

SUFFIX = ".safetensors"
_DIGEST = re.compile("[0-9a-f]{64}")
_LOGIN = re.compile("://((?:(?!::).)*)@")
"""Of each address in a URL: fsspec chains them, `simplecache::sftp://…`."""


@dataclass(frozen=True)
class Kept:
    """A file of weights; `modified` in seconds since 1970, None where the place does not tell."""

    uri: str
    sha256: str
    bytes: int
    modified: float | None


def write(root: Path | str, content: bytes) -> Checkpoint:
    """Keep content, so that it is there, whole, when this returns.

    Raises:
        CheckpointError: It cannot be written.
    """
    digest = hashlib.sha256(content).hexdigest()
    folder = local_folder(root)
    if folder is not None:
        path = folder / digest[:2] / f"{digest}{SUFFIX}"
        try:
            write_atomically(path, content)
        except OSError as error:
            raise CheckpointError(f"cannot write weights to {folder}: {error.strerror or error}") from error
        return Checkpoint(path.absolute().as_uri(), digest, len(content))
    uri = f"{str(root).rstrip('/')}/{digest[:2]}/{digest}{SUFFIX}"
    try:
        system, path_ = _remote(uri)
        if not (system.exists(path_) and system.size(path_) == len(content)):
            system.makedirs(path_.rpartition("/")[0], exist_ok=True)
            system.pipe_file(path_, content)
    except Exception as error:
        raise CheckpointError(f"cannot write weights to {_shown(str(root))}: {_said(error)}") from error
    return Checkpoint(uri, digest, len(content))


def read(checkpoint: Checkpoint) -> bytes:
    """Return the content, if every byte of it is as it was written.

    Raises:
        CheckpointError: The file is missing, cut off or altered.
    """
    shown = _shown(checkpoint.uri)
    try:
        content = _content(checkpoint.uri)
    except Exception as error:
        raise CheckpointError(f"cannot read weights from {shown}: {_said(error)}") from error
    if len(content) != checkpoint.bytes:
        raise CheckpointError(f"the weights {shown} must be {checkpoint.bytes} bytes long, and are not")
    digest = hashlib.sha256(content).hexdigest()
    if digest != checkpoint.sha256:
        raise CheckpointError(
            f"the weights {shown} were altered: their SHA-256 must be {checkpoint.sha256}, got {digest}"
        )
    return content


def check_place(root: Path | str) -> None:
    """Make sure that trials can keep weights at a place, as far as can be told without asking it.

    Raises:
        SettingsError: It is an address of no kind that is known here, carries a password, or is in the memory of a
            process, which ends with the trial.
    """
    if local_folder(root) is not None:
        return
    _check_login(str(root))
    import fsspec

    for scheme in (part.partition("://")[0] for part in str(root).split("::")):
        try:
            fsspec.get_filesystem_class(scheme)
        except Exception as error:  # A package that is missing, or broken.
            raise SettingsError(f"weights cannot be kept at {_shown(str(root))}: {_said(error)}") from None
        if scheme == "memory":
            raise SettingsError(f"weights cannot be kept at {_shown(str(root))}: memory ends with each trial's process")


def exists(uri: str) -> bool:
    """Return whether there is a file at an address; a place that cannot be asked has none.

    Raises:
        SettingsError: It is an address of no kind that is known here.
    """
    folder = local_folder(uri)
    if folder is not None:
        return folder.is_file()
    system, path = _remote(uri)
    try:
        return bool(system.exists(path))
    except Exception:
        return False


def is_kept_at(checkpoint: Checkpoint, place: Path | str) -> bool:
    """Return whether weights have the address that a place keeps them by; nothing is asked there.

    An address is the database's word, and may come from a file that somebody sent: any other protocol, host or folder,
    and any chain of them (`simplecache::…`), has another address.

    Args:
        checkpoint: The weights.
        place: A folder or an fsspec URL that this machine is configured with.
    """
    tail = address("", checkpoint.sha256)
    if tail is None:
        return False
    folder = local_folder(place)
    if folder is None:
        return checkpoint.uri == f"{str(place).rstrip('/')}/{tail}"
    try:
        path = local_folder(checkpoint.uri)
        # A folder may be known by several names, through links.
        return (
            path is not None
            and path.parts[-2:] == tuple(tail.split("/"))
            and os.path.realpath(path.parent.parent) == os.path.realpath(folder)
        )
    except (SettingsError, OSError, ValueError):
        return False


def remove(uri: str) -> None:
    """Remove a file; one that is gone already is none to remove.

    Raises:
        CheckpointError: It cannot be removed.
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
        raise CheckpointError(f"cannot remove the weights {_shown(uri)}: {_said(error)}") from error


def listed(root: Path | str) -> Iterator[Kept]:
    """Yield all files of weights below a root; what others keep there, under names of their own, is not touched.

    Raises:
        CheckpointError: The place cannot be read.
    """
    folder, under = local_folder(root), root_uri(root)
    if folder is not None:
        for path in sorted(folder.glob(f"??/*{SUFFIX}")):
            uri = path.absolute().as_uri()
            with suppress(FileNotFoundError):  # Another collection has removed it.
                found = path.stat()
                if uri == address(under, path.stem):
                    yield Kept(uri, path.stem, found.st_size, found.st_mtime)
        return
    system, path_ = _remote(str(root))
    try:
        entries: dict[str, dict[str, Any]] = system.find(path_, detail=True)
    except Exception as error:
        raise CheckpointError(f"cannot read {_shown(str(root))}: {_said(error)}") from error
    for name, entry in sorted(entries.items()):
        stem = name.rpartition("/")[2].removesuffix(SUFFIX)
        if name.lstrip("/") == address(f"{path_.strip('/')}/", stem):
            yield Kept(f"{under}{stem[:2]}/{stem}{SUFFIX}", stem, int(entry["size"]), _modified(entry))


def address(under: str, sha256: str) -> str | None:
    """Return the address of content below a root, as `root_uri` gives it; None where the text is no digest."""
    return f"{under}{sha256[:2]}/{sha256}{SUFFIX}" if _DIGEST.fullmatch(sha256) else None


def root_of(uri: str) -> str:
    """Return the root that an address is below."""
    return uri.rsplit("/", 2)[0]


def root_uri(root: Path | str) -> str:
    """Return a root as the beginning of the addresses of all that is kept in it.

    Raises:
        SettingsError: The root is no place that weights can be kept in.
    """
    folder = local_folder(root)
    if folder is not None:
        return folder.absolute().as_uri() + "/"
    _remote(str(root))
    return str(root).rstrip("/") + "/"


def local_folder(place: Path | str) -> Path | None:
    """Return the path of a folder or a file on this machine; None for any other place.

    Raises:
        SettingsError: A file:// address of another machine.
    """
    if isinstance(place, Path):
        return place
    parts = urlsplit(place)
    if not parts.scheme:
        return Path(place).expanduser()
    if parts.scheme != "file":
        return None
    if parts.netloc not in ("", "localhost"):
        raise SettingsError(f"the address {_shown(place)} is on another machine: file:///… is what can be used here")
    return Path(unquote(parts.path))


def _content(uri: str) -> bytes:
    path = local_folder(uri)
    if path is not None:
        return path.read_bytes()
    system, path_ = _remote(uri)
    found: bytes = system.cat_file(path_)
    return found


def _remote(uri: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it."""
    _check_login(uri)
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(uri)
    except Exception as error:  # Some connect at once, and raise whatever their package does.
        raise SettingsError(f"weights cannot be kept at {_shown(uri)}: {_said(error)}") from None
    return system, path


def _check_login(uri: str) -> None:
    if any(":" in found[1] for found in _LOGIN.finditer(uri)):
        raise SettingsError(f"the address {_shown(uri)} must not carry a password")


def _modified(entry: dict[str, Any]) -> float | None:
    found = next((entry[name] for name in ("mtime", "LastModified", "last_modified", "created") if name in entry), None)
    if isinstance(found, datetime):
        return found.timestamp()
    return float(found) if isinstance(found, int | float) else None


def _shown(uri: str) -> str:
    """Return an address as people may see it: a local file by its path, any other without a login."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and not parts.netloc:
        return unquote(parts.path)
    return _LOGIN.sub("://", uri)


def _said(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error) or type(error).__name__
