"""Disk cache of arrays that one process computes and later ones read.

It holds parsed tables, listed spaces and features.

    HOME/cache/<kind>/<digest>.npz        HOME is ARCHIVE_HOME, else ~/.archive

The digest covers everything that the arrays depend on: their identity (the inputs of the
computation) and the code of this package (`fingerprint`), so that no file outlives an edit or an
update. A file repeats its identity, and its parts have checksums: a truncated or damaged file, or
one of another identity, counts as missing and is written again.

A file is written under a temporary name and renamed, so that processes can read and write the same
file concurrently. Files may be deleted at any time. Each kind keeps at most `MOST_BYTES`; the least
recently read files are deleted first. If the home is not writable, the arrays are computed each
time.
"""

from __future__ import annotations

import os
import sys
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive import files
from archive.files import PARTIAL, open_new

Arrays = dict[str, NDArray[Any]]

FORMAT = 1
"""Version of the file format; files of other versions are ignored."""

MOST_BYTES = 2**30
"""Size of all files of one kind together; a single larger file is kept alone."""

WORTH = 500
"""Number of networks from which a file pays off; fewer are computed in a fraction of a second."""

ABANDONED_SECONDS = 3600
"""Age at which a partial file counts as left behind by a killed process."""

# Folders of the package that compute no cached arrays.
_UNCACHED = {"__pycache__", "benchmarks", "cli", "trainer"}


def path(kind: str, identity: str, home: Path | None = None) -> Path:
    """Return the path of the file for the arrays of an identity.

    Args:
        kind: Name of the folder.
        identity: Text of everything that the arrays are computed from; equal identities have equal
            arrays.
        home: Folder of the archive; None for ARCHIVE_HOME.
    """
    digest = blake2b(f"{fingerprint()} {identity}".encode(), digest_size=16).hexdigest()
    return (home or files.home()) / "cache" / kind / f"{digest}.npz"


def read(kind: str, identity: str, home: Path | None = None) -> Arrays | None:
    """Return the arrays of an identity, or None if they are not in the cache.

    Arguments as for `path`.
    """
    file = path(kind, identity, home)
    with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        with file.open("rb") as opened:
            content = np.load(opened, allow_pickle=False)
            arrays: Arrays = {name: content[name] for name in content.files}

        if arrays.pop("identity").tobytes() == identity.encode():
            # The least recently read file is deleted first.
            with suppress(OSError):
                os.utime(file)

            return arrays

    return None


def write(
    kind: str, identity: str, arrays: Mapping[str, NDArray[Any]], home: Path | None = None
) -> None:
    """Write the arrays of an identity, if the disk permits it; see `path` for the arguments."""
    file = path(kind, identity, home)
    with suppress(OSError):
        _make(file.parent)
        content: dict[str, Any] = {"identity": np.frombuffer(identity.encode(), np.uint8), **arrays}
        with open_new(file, durable=False) as opened:
            np.savez(opened, **content)

        _prune(file)


def delete(kind: str, identity: str, home: Path | None = None) -> None:
    """Delete the arrays of an identity from the cache; see `path` for the arguments."""
    with suppress(OSError):
        path(kind, identity, home).unlink()


@cache
def fingerprint() -> str:
    """Return a digest of the code that computes cached arrays.

    It includes the versions of Python and numpy.

    It covers the whole package except command line and trainer, because a list of dependencies
    could be incomplete.
    """
    digest = blake2b(f"{FORMAT} {np.__version__} {sys.version_info[:2]}".encode(), digest_size=16)
    for folder, folders, names in os.walk(Path(__file__).parent, followlinks=True):
        folders[:] = sorted(set(folders) - _UNCACHED)
        for name in sorted(names):
            if name.endswith(".py"):
                digest.update(name.encode())
                digest.update(Path(folder, name).read_bytes())

    return digest.hexdigest()


def _make(folder: Path) -> None:
    folder.parent.parent.mkdir(parents=True, exist_ok=True)
    for path in (folder.parent, folder):
        path.mkdir(mode=0o700, exist_ok=True)


def _prune(newest: Path) -> None:
    room = MOST_BYTES - newest.stat().st_size
    others = [(file.stat(), file) for file in newest.parent.iterdir() if file != newest]
    for status, file in sorted(others, key=lambda other: -other[0].st_mtime_ns):
        if file.suffix == PARTIAL:
            abandoned = time.time() - status.st_mtime > ABANDONED_SECONDS
        else:
            room -= status.st_size
            abandoned = room < 0

        if abandoned:
            file.unlink()
