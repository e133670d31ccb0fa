"""Parts of data sets on the disk, ready to be mapped into memory.

    HOME/data/parts/NAME-KEY/
        train-inputs.npy  train-targets.npy  valid-…  test-…       as `layout.cut` made them
        content.json                                                size, time and SHA-256 of each

The key is made of everything that the parts depend on, so a folder never changes once it has its name. It is built
aside and renamed: of two trials that build the same one, one wins, and both use it. A file whose size or time is
not the recorded one is hashed: if it has changed, the folder is built again, else its new time is recorded.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.trainer.datasets import sources
from archive.trainer.storage.atomic import write_atomically

if TYPE_CHECKING:
    from archive.trainer.datasets.layout import Parts
    from archive.trainer.datasets.tensors import Splits
    from archive.trainer.tasks.protocol import Protocol

log = logging.getLogger("archive.trainer")

FORMAT = 1
"""Of the files and of how they are computed; another number leaves what is there aside."""

NAMES = ("train", "valid", "test")
MANIFEST = "content.json"


def splits(name: str, protocol: Protocol, build: Callable[[], Parts]) -> Splits:
    """Return the parts of a data set, from the disk where they are there, else built and kept.

    Args:
        name: Of the data set and its edition; equal names have equal rows.
        protocol: Says which parts.
        build: Computes them.
    """
    folder = sources.home() / "parts" / f"{name}-{_key(name, protocol)}"
    if not _whole(folder):
        parts = build()
        try:
            _keep(folder, parts)
        except OSError as error:
            # The trial needs the numbers, not the copy.
            log.warning("data not kept folder=%s reason=%r", folder, str(error))
            return _splits(parts)
    return _splits({part: (_mapped(folder, f"{part}-inputs"), _mapped(folder, f"{part}-targets")) for part in NAMES})


def _key(name: str, protocol: Protocol) -> str:
    depends = [FORMAT, name, protocol.train, protocol.valid, protocol.test, protocol.split, protocol.split_seed]
    return hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:12]


def _mapped(folder: Path, name: str) -> Any:
    # Copy on write: torch warns of arrays that must not be written to.
    return np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False)


def _splits(parts: Parts) -> Splits:
    from archive.trainer.datasets.tensors import Part, Splits

    # Images are kept with the channels last, as the networks take them, and seen with the channels first.
    return Splits(
        *(
            Part(np.moveaxis(inputs, -1, 1) if inputs.ndim == 4 else inputs, targets)
            for inputs, targets in (parts[part] for part in NAMES)
        )
    )


def _keep(folder: Path, parts: Parts) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        for part, (inputs, targets) in parts.items():
            np.save(aside / f"{part}-inputs.npy", inputs)
            np.save(aside / f"{part}-targets.npy", targets)
        content = {path.name: {**_stat(path), "sha256": _sha256(path)} for path in sorted(aside.iterdir())}
        (aside / MANIFEST).write_text(json.dumps(content, indent=1))
        try:
            aside.rename(folder)
        except OSError:
            if not _whole(folder):
                shutil.rmtree(folder)
                aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _whole(folder: Path) -> bool:
    """Whether the folder holds what was put there."""
    try:
        content = json.loads((folder / MANIFEST).read_text())
        found = {name: {**_stat(folder / name), "sha256": known["sha256"]} for name, known in content.items()}
        touched = [name for name, known in content.items() if found[name] != known]
        if any(_sha256(folder / name) != content[name]["sha256"] for name in touched):
            return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    if touched:
        # Restored from a backup: without the new times on record, every trial would hash all of it once more.
        with suppress(OSError):
            write_atomically(folder / MANIFEST, json.dumps(found, indent=1).encode())
    return True


def _stat(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "modified": status.st_mtime_ns}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
