"""Cache of the parts of data sets: arrays on disk that trials map into memory.

    HOME/data/parts/NAME-KEY/
        train-inputs.npy  train-targets.npy  valid-…  test-…       from `layout.cut`
        content.json                                                size, time and SHA-256 of each

The key contains everything that the parts depend on, so a folder never changes. It is built under a
temporary name and renamed: of two trials that build the same one, one wins, and both use it. A file
with another size or time than the recorded ones is hashed: if it has changed, the folder is built
again, else its new time is recorded.
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
from numpy.typing import NDArray

from archive.files import write_atomically
from archive.trainer.datasets import sources
from archive.trainer.datasets.splits import DataPart, Splits

if TYPE_CHECKING:
    from archive.trainer.datasets.layout import Parts
    from archive.trainer.protocols.base import TrainingProtocol

log = logging.getLogger("archive.trainer")

FORMAT = 1
"""Version of the files and of their computation; folders of another version are ignored."""

NAMES = ("train", "valid", "test")
MANIFEST = "content.json"


SCALING = "target.json"
"""File of the target's mean and deviation; it is not of the manifest, which older versions check."""

TargetScaling = Callable[[], "tuple[float, float] | None"]


def splits(
    name: str,
    protocol: TrainingProtocol,
    build: Callable[[], Parts],
    target_scaling: TargetScaling | None = None,
) -> Splits:
    """Return the parts of a data set from the cache, or build and cache them.

    Args:
        name: Name of the data set and its edition; equal names have equal rows.
        protocol: Protocol with the sizes and the split of the parts.
        build: Computes the parts.
        target_scaling: Computes the mean and the deviation of a regression's target.
    """
    folder = sources.home() / "parts" / f"{name}-{_key(name, protocol)}"
    if not _is_intact(folder):
        parts = build()
        try:
            _store(folder, parts)
        except OSError as error:
            # The trial needs the arrays, not the cache.
            log.warning("data not cached folder=%s reason=%r", folder, str(error))
            return _splits(parts, None if target_scaling is None else target_scaling())

    mapped: Parts = {}
    for part in NAMES:
        mapped[part] = (_map(folder, f"{part}-inputs"), _map(folder, f"{part}-targets"))

    is_regression = mapped["train"][1].dtype.kind == "f"
    if target_scaling is None or not is_regression:
        return _splits(mapped)

    return _splits(mapped, _cached_scaling(folder / SCALING, target_scaling))


def _cached_scaling(file: Path, compute: TargetScaling) -> tuple[float, float] | None:
    with suppress(OSError, ValueError, TypeError):
        mean, deviation = json.loads(file.read_text())
        return float(mean), float(deviation)

    target = compute()
    if target is not None:
        with suppress(OSError):
            write_atomically(file, json.dumps(target).encode())

    return target


def _key(name: str, protocol: TrainingProtocol) -> str:
    depends = [
        FORMAT,
        name,
        protocol.train,
        protocol.valid,
        protocol.test,
        protocol.split,
        protocol.split_seed,
    ]
    return hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:12]


def _map(folder: Path, name: str) -> Any:
    # Copy on write: torch warns of read-only arrays.
    return np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False)


def _splits(parts: Parts, target: tuple[float, float] | None = None) -> Splits:
    return Splits(
        _part(*parts["train"]), _part(*parts["valid"]), _part(*parts["test"]), target=target
    )


def _part(inputs: NDArray[np.float32], targets: NDArray[Any]) -> DataPart:
    # Images are stored with the channels last, as the networks use them; the view has the channels
    # first.
    return DataPart(np.moveaxis(inputs, -1, 1) if inputs.ndim == 4 else inputs, targets)


def _store(folder: Path, parts: Parts) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    try:
        for part, (inputs, targets) in parts.items():
            np.save(aside / f"{part}-inputs.npy", inputs)
            np.save(aside / f"{part}-targets.npy", targets)

        content: dict[str, dict[str, Any]] = {}
        for path in sorted(aside.iterdir()):
            content[path.name] = {**_stat(path), "sha256": _sha256(path)}

        (aside / MANIFEST).write_text(json.dumps(content, indent=1))
        try:
            aside.rename(folder)
        except OSError:
            if not _is_intact(folder):
                shutil.rmtree(folder)
                aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _is_intact(folder: Path) -> bool:
    """Whether the files of a folder are unchanged."""
    try:
        content = json.loads((folder / MANIFEST).read_text())
        present: dict[str, dict[str, Any]] = {}
        touched: list[str] = []
        for name, recorded in content.items():
            present[name] = {**_stat(folder / name), "sha256": recorded["sha256"]}
            if present[name] != recorded:
                touched.append(name)

        for name in touched:
            if _sha256(folder / name) != content[name]["sha256"]:
                return False
    except (OSError, ValueError, KeyError, TypeError):
        return False

    if touched:
        # Restored from a backup: without the new times in the manifest, every trial would hash all
        # files again.
        with suppress(OSError):
            write_atomically(folder / MANIFEST, json.dumps(present, indent=1).encode())

    return True


def _stat(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "modified": status.st_mtime_ns}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
