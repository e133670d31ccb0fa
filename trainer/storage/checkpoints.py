"""Checkpoints of trials: a training resumes from one as if it had never been interrupted.

    FOLDER/STUDY%23NUMBER.checkpoint     magic, SHA-256 of the rest, then safetensors: network,
                                         optimiser, generators, best weights; its one metadata entry
                                         `state` is JSON with identity and numbers

FOLDER is a folder or an fsspec URL. There is one file for each proposal, written atomically: its
last checkpoint. A file that was altered, or belongs to another training, is refused with a reason.
Workers that share the location resume each other's trials. Naming and removing files needs no
torch.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from archive.errors import CheckpointError, SettingsError
from archive.files import partial_files, write_atomically
from archive.trainer.storage import remote_files
from archive.trainer.storage.file_names import file_name
from archive.trainer.storage.locations import printable
from archive.trainer.storage.timeouts import WAIT_SECONDS

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger("archive.trainer")

SUFFIX = ".checkpoint"
_MAGIC = b"archive checkpoint 1\n"
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class TrainingCheckpoint:
    """The state of a training between two steps.

    Attributes:
        metadata: Numbers and texts, as JSON values.
        tensors: Tensors by name, on the CPU when read back.
    """

    metadata: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


@overload
def path_of(folder: Path, proposal: str) -> Path: ...


@overload
def path_of(folder: Path | str, proposal: str) -> Path | str: ...


def path_of(folder: Path | str, proposal: str) -> Path | str:
    """Return the checkpoint file of a proposal's trial: a path, or an address below a URL."""
    name = f"{file_name(proposal)}{SUFFIX}"
    return folder / name if isinstance(folder, Path) else f"{folder.rstrip('/')}/{name}"


def save(path: Path | str, identity: Mapping[str, Any], checkpoint: TrainingCheckpoint) -> int:
    """Replace a checkpoint; return its size in bytes.

    Args:
        path: The file.
        identity: The training and its conditions, as JSON values: only an equal one may resume.
        checkpoint: The new state.

    Raises:
        CheckpointError: The folder cannot be written, or the disk is full; the former checkpoint is
            intact.
    """
    content = serialise(identity, checkpoint)
    write(path, content)
    return len(content)


def serialise(identity: Mapping[str, Any], checkpoint: TrainingCheckpoint) -> bytes:
    """Return the content of a checkpoint's file."""
    from safetensors.torch import save as serialise_tensors

    note = json.dumps({"job": identity, "about": checkpoint.metadata})
    tensors = {name: tensor.cpu().contiguous() for name, tensor in checkpoint.tensors.items()}
    content = serialise_tensors(tensors, {"state": note})
    return b"".join((_MAGIC, hashlib.sha256(content).digest(), content))


def write(path: Path | str, content: bytes) -> None:
    """Replace the file of a checkpoint.

    Raises:
        CheckpointError: It cannot be written; the former checkpoint is intact.
    """
    try:
        if isinstance(path, Path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
        else:
            remote_files.write(path, content)
    except OSError as error:
        raise CheckpointError(
            f"cannot write the checkpoint {path}: {error.strerror or error}"
        ) from error
    except SettingsError as error:
        raise CheckpointError(f"checkpoint not written: {error}") from error


def load(path: Path | str, identity: Mapping[str, Any]) -> TrainingCheckpoint | None:
    """Return the checkpoint of a training; None if there is none.

    Raises:
        CheckpointError: The file cannot be read, was cut off or altered, or belongs to another
            training.
        StorageUnavailableError: The location does not answer: there may be a checkpoint.
    """
    from safetensors.torch import load as load_tensors

    whole = _content(path)
    if whole is None:
        return None

    shown = printable(str(path))
    content = whole[len(_MAGIC) + _DIGEST :]
    if not whole.startswith(_MAGIC):
        raise CheckpointError(f"the file {shown} is no checkpoint that this release can read")

    if hashlib.sha256(content).digest() != whole[len(_MAGIC) : len(_MAGIC) + _DIGEST]:
        raise CheckpointError(f"the checkpoint {shown} was cut off or altered")

    note = _note(content)
    _check_identity(shown, note["job"], json.loads(json.dumps(identity)))
    return TrainingCheckpoint(note["about"], load_tensors(content))


def remove(folder: Path | str | None, proposal: str | None) -> None:
    """Remove the checkpoint of a proposal, if there is one, and its partial files.

    A file that cannot be removed stays, with a line in the log: it only costs space.
    """
    if folder is None or not proposal:
        return

    path = path_of(folder, proposal)
    try:
        if isinstance(path, Path):
            for file in (path, *partial_files(path)):
                file.unlink(missing_ok=True)
        else:
            remote_files.remove(path)
    except OSError as error:
        log.warning("checkpoint not removed file=%s reason=%r", path, error.strerror or str(error))
    except SettingsError as error:
        log.warning("checkpoint not removed reason=%r", str(error))


def remove_stale(folder: Path, seconds: float) -> int:
    """Remove checkpoints and partial files that are older than this; return their number.

    Files that cannot be removed stay, with one line in the log for all of them.
    """
    removed = 0
    before = time.time() - seconds
    kept: list[OSError] = []
    for path in [*folder.glob(f"*{SUFFIX}"), *folder.glob(".*.part")]:
        try:
            if path.stat().st_mtime < before:
                path.unlink()
                removed += 1
        except FileNotFoundError:
            continue
        except OSError as error:
            kept.append(error)

    if kept:
        log.warning(
            "old checkpoints not removed folder=%s count=%d reason=%r",
            folder,
            len(kept),
            str(kept[0]),
        )

    return removed


def _content(path: Path | str) -> bytes | None:
    if not isinstance(path, Path):
        return remote_files.read(path)

    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(
            f"cannot read the checkpoint {path}: {error.strerror or error}"
        ) from error


def _note(content: bytes) -> dict[str, Any]:
    """Return the metadata of safetensors; the package reads it from files alone."""
    length = int.from_bytes(content[:8], "little")
    note: dict[str, Any] = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["state"])
    return note


def _check_identity(path: str, saved: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    for name in sorted(saved.keys() | present.keys()):
        if name == "run" and name not in saved:
            # Saved by a release that recorded none.
            continue

        ours = present.get(name)
        theirs = saved.get(name)
        if ours != theirs:
            values = f": {theirs!r}, not {ours!r}" if len(f"{ours!r}{theirs!r}") < 80 else ""
            raise CheckpointError(
                f"the checkpoint {path} is of a training with another {name}{values}"
            )


class Upload(threading.Thread):
    """One upload. If the process ends before, the former checkpoint stays intact.

    Args:
        uri: Address of the checkpoint.
        content: The whole file.
        on_success: Called with the seconds that it took.

    Attributes:
        succeeded: Whether the checkpoint is stored.
    """

    def __init__(self, uri: str, content: bytes, on_success: Callable[[float], None]) -> None:
        """Prepare the thread."""
        super().__init__(daemon=True, name="upload")
        self.succeeded = False
        self._uri = uri
        self._content = content
        self._on_success = on_success

    def run(self) -> None:
        """Write the file."""
        began = time.monotonic()
        try:
            write(self._uri, self._content)
        except CheckpointError as error:
            log.warning("checkpoint not saved reason=%r", error.reason)
            return
        finally:
            self._content = b""

        self.succeeded = True
        self._on_success(time.monotonic() - began)

    def wait(self, seconds: float, on_wait: Callable[[], object]) -> bool:
        """Wait for the end, and return whether it came in time.

        Args:
            seconds: Longest wait.
            on_wait: Called at intervals meanwhile.
        """
        deadline = time.monotonic() + seconds
        while self.is_alive() and (left := deadline - time.monotonic()) > 0:
            self.join(min(left, WAIT_SECONDS))
            on_wait()

        return not self.is_alive()
