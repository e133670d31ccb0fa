"""The state of a trial on disk: all that it needs to go on as if it had never been interrupted.

    FOLDER/STUDY%23NUMBER.state      magic, SHA-256 of what follows, then safetensors: network, optimiser, generators,
                                     best weights; its one metadata entry `state` is JSON with the job and the rest

A file is whole or not there, one for each proposal, the last one written. What was altered, or belongs to another
job, is refused with a reason. The folder may be shared by workers. Naming and removing states needs no torch.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.errors import CheckpointError
from archive.trainer.storage.atomic import rests_of, write_atomically
from archive.trainer.storage.file_names import file_name

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger("archive.trainer")

_MAGIC = b"archive state 1\n"
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class State:
    """A moment of a training.

    Attributes:
        about: Numbers and texts, as JSON values.
        tensors: By name, on the CPU when read back.
    """

    about: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


def path_of(folder: Path, proposal: str) -> Path:
    """Return the file with the state of a proposal's trial."""
    return folder / f"{file_name(proposal)}.state"


def save(path: Path, job: Mapping[str, Any], state: State) -> int:
    """Put a state in the place of the one before; return its size in bytes.

    Args:
        path: Where.
        job: What is trained, and how, as JSON values: only a job that equals it may go on from the state.
        state: What to keep.

    Raises:
        CheckpointError: The folder cannot be written to, or the disk is full; the state before is still there.
    """
    from safetensors.torch import save as serialise

    note = json.dumps({"job": job, "about": state.about})
    content = serialise({name: tensor.cpu().contiguous() for name, tensor in state.tensors.items()}, {"state": note})
    try:
        write_atomically(path, b"".join((_MAGIC, hashlib.sha256(content).digest(), content)))
    except OSError as error:
        raise CheckpointError(f"cannot write the state to {path}: {error.strerror or error}") from error
    return len(content)


def load(path: Path, job: Mapping[str, Any]) -> State | None:
    """Read the state of a job; None where there is none.

    Raises:
        CheckpointError: The file cannot be read, was cut off or altered, or belongs to another job.
    """
    from safetensors.torch import load as load_tensors

    try:
        whole = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"cannot read the state {path}: {error.strerror or error}") from error
    content = whole[len(_MAGIC) + _DIGEST :]
    if not whole.startswith(_MAGIC):
        raise CheckpointError(f"the file {path} is no state that this release can read")
    if hashlib.sha256(content).digest() != whole[len(_MAGIC) : len(_MAGIC) + _DIGEST]:
        raise CheckpointError(f"the state {path} was cut off or altered")
    note = _note(content)
    _check_same_job(path, note["job"], json.loads(json.dumps(job)))
    return State(note["about"], load_tensors(content))


def forget(folder: Path | None, proposal: str | None) -> None:
    """Remove the state of a proposal, if there is one, and what killed trials have left of it.

    What cannot be removed stays, with a line in the log: it costs space alone.
    """
    if folder is not None and proposal:
        path = path_of(folder, proposal)
        try:
            for one in (path, *rests_of(path)):
                one.unlink(missing_ok=True)
        except OSError as error:
            log.warning("state not removed file=%s reason=%r", path, error.strerror or str(error))


def sweep(folder: Path, seconds: float) -> int:
    """Remove states, and rests of writes, that nobody has touched for so long; return how many.

    What cannot be removed stays, with one line in the log for all of it.
    """
    removed, before = 0, time.time() - seconds
    kept: list[OSError] = []
    for path in [*folder.glob("*.state"), *folder.glob(".*.part")]:
        try:
            if path.stat().st_mtime < before:
                path.unlink()
                removed += 1
        except FileNotFoundError:
            continue
        except OSError as error:
            kept.append(error)
    if kept:
        log.warning("old states not removed folder=%s count=%d reason=%r", folder, len(kept), str(kept[0]))
    return removed


def _note(content: bytes) -> dict[str, Any]:
    """Read the metadata of safetensors, which the package reads from files alone."""
    length = int.from_bytes(content[:8], "little")
    note: dict[str, Any] = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["state"])
    return note


def _check_same_job(path: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name in sorted(saved.keys() | wanted.keys()):
        ours, theirs = wanted.get(name), saved.get(name)
        if ours != theirs:
            values = f": {theirs!r}, not {ours!r}" if len(f"{ours!r}{theirs!r}") < 80 else ""
            raise CheckpointError(f"the state {path} is that of a job with another {name}{values}")
