"""The checkpoint of a trial: the state that a recipe saves, and resumes from after an interruption.

    saved = trial.checkpoint.load()            at the start; None without a checkpoint of this trial
    if trial.checkpoint.due():                 after each step or epoch: costs one look at the clock
        trial.checkpoint.save({"epoch": epoch}, tensors=model.state_dict())

A checkpoint also holds the reported curve and the time spent, so that a resumed trial has one
curve. It belongs to one
trial: another architecture, task, protocol, seed, choice of hyperparameters or version of the
recipe starts from scratch.

In a folder, a checkpoint is on disk when `save` returns. With a URL, the training continues during
an upload; it waits for the upload only if it stops, at a rung or because the trainer is stopped.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from archive.architecture import codec
from archive.errors import CheckpointError, StorageUnavailableError, TrainingError
from archive.trainer.storage import checkpoints
from archive.trainer.storage.checkpoints import TrainingCheckpoint, Upload
from archive.trainer.storage.locations import printable
from archive.trainer.storage.timeouts import call_with_timeout

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor

    from archive.trainer.recipes.context import TrialContext


log = logging.getLogger("archive.trainer")

CHECKPOINT_SECONDS = 60.0
"""Time between two checkpoints of a trial: the most training that a kill loses."""

LOADING_SECONDS = 300.0
"""Longest time for reading a checkpoint."""
UPLOAD_SECONDS = 600.0
"""Longest wait for an upload."""

_TENSOR = "tensor."
_FILE = "file."


@dataclass(frozen=True, slots=True)
class SavedState:
    """What a recipe has saved.

    Attributes:
        state: Its JSON values.
        tensors: Its tensors by name, on the CPU.
        files: Content of its files, by their path in the saved folder.
    """

    state: Mapping[str, Any]
    tensors: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    def extract(self, folder: Path) -> Path:
        """Write the files into a folder, and return it."""
        for name, content in self.files.items():
            path = folder.joinpath(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

        return folder


class CheckpointSlot:
    """The checkpoint of one trial.

    Args:
        trial: The trial.
        path: File of the checkpoint, or its fsspec URL; None saves none.
        seconds: Least time between two checkpoints that are not asked for.

    Attributes:
        saved: Whether there is a checkpoint of this trial.
        save_seconds: Duration of the last save.
        run: Identity of the proposal's run, which a checkpoint must agree on; empty for none.
    """

    def __init__(self, trial: TrialContext, path: Path | str | None, seconds: float) -> None:
        self.path = path
        self.seconds = seconds
        self.saved = False
        self.save_seconds = 0.0
        self.run = ""
        self._trial = trial
        self._also: Mapping[str, Any] = {}
        self._has_progress = False
        self._saved_at = time.monotonic()
        self._upload: Upload | None = None

    def due(self) -> bool:
        """Whether to save now: enough time has passed, or the trial must stop."""
        interrupted = self._trial.beat()
        if interrupted or self.path is None or time.monotonic() - self._saved_at < self.seconds:
            return interrupted

        return self._upload is None or not self._upload.is_alive()

    def save(
        self,
        state: Mapping[str, Any] | None = None,
        *,
        tensors: Mapping[str, Any] | None = None,
        folder: Path | None = None,
    ) -> bool:
        """Replace the checkpoint; return whether that succeeded, as failures are only logged.

        A recipe that continues beyond its rung saves nothing more: the training continues from the
        rung. Ranks above 0 save nothing: the checkpoint of rank 0 is the trial's.

        Args:
            state: JSON values.
            tensors: Tensors or arrays by name.
            folder: Folder whose files are saved, too.

        Raises:
            TrainingError: The state cannot be saved at all.
        """
        if self.path is None or self._trial.overran:
            return False

        self._has_progress = True
        began = time.monotonic()
        if self._trial.rank:
            self._saved_at = began
            return True

        try:
            checkpoint = TrainingCheckpoint(
                self._metadata(state or {}), _tensors(tensors or {}, folder)
            )
            content = checkpoints.serialise(self._identity(), checkpoint)
            if not isinstance(self.path, Path):
                return self._save_remotely(self.path, content)

            checkpoints.write(self.path, content)
        except CheckpointError as error:
            log.warning("checkpoint not saved reason=%r", error.reason)
            return False
        finally:
            self._saved_at = time.monotonic()
            self.save_seconds = self._saved_at - began

        self._note_saved(self._trial.reports, len(content), self.save_seconds)
        return True

    def _save_remotely(self, uri: str, content: bytes) -> bool:
        """Start an upload after the previous one; wait for its end if the trial stops here."""
        reports = self._trial.reports
        trial = self._trial
        if self._upload is not None and not self._upload.wait(UPLOAD_SECONDS, trial.beat):
            raise CheckpointError(
                f"the upload to {printable(uri)} takes longer than {UPLOAD_SECONDS:g} s"
            )

        upload = self._upload = Upload(
            uri, content, lambda seconds: self._note_saved(reports, len(content), seconds)
        )
        upload.start()
        if not trial.interrupted and reports < trial.epochs:
            return True

        return upload.wait(UPLOAD_SECONDS, trial.beat) and upload.succeeded

    def _note_saved(self, reports: int, size: int, seconds: float) -> None:
        self.saved = True
        log.info("checkpoint saved epoch=%d bytes=%d seconds=%.4f", reports, size, seconds)

    def load(self, also: Mapping[str, Any] | None = None) -> SavedState | None:
        """Return the saved state of this trial; None, with a logged reason, to start afresh.

        The curve of the trial then continues after the reports that the checkpoint knows. Later
        calls, and those after a save of this attempt, return the state alone: a recipe may return
        to its best epoch and keep its curve.

        Args:
            also: What else must be equal for a checkpoint to be this trial's, as JSON values; None
                leaves it as it is.

        Raises:
            StorageUnavailableError: The location of the checkpoint does not answer. Another attempt
                may resume from it.
        """
        if also is not None:
            self._also = also

        try:
            saved = self._found()
        except CheckpointError as error:
            log.warning("starts from scratch reason=%r", error.reason)
            return None

        # A checkpoint beyond the requested rung belongs to a later attempt.
        if saved is None or not (self._has_progress or self._trial.resume(saved.metadata["trial"])):
            return None

        self.saved = self._has_progress = True
        self._saved_at = time.monotonic()
        files = {name: tensor.numpy().tobytes() for name, tensor in _under(_FILE, saved.tensors)}
        return SavedState(saved.metadata["state"], dict(_under(_TENSOR, saved.tensors)), files)

    def _found(self) -> TrainingCheckpoint | None:
        path = self.path
        if path is None or isinstance(path, Path):
            return None if path is None else checkpoints.load(path, self._identity())

        done = call_with_timeout(
            lambda: (checkpoints.load(path, self._identity()),), LOADING_SECONDS
        )
        if done is None:
            raise StorageUnavailableError(
                f"cannot read {printable(path)}: no answer within {LOADING_SECONDS:g} s"
            )

        return done[0]

    def _metadata(self, state: Mapping[str, Any]) -> dict[str, Any]:
        metadata = {"trial": self._trial.progress(), "state": dict(state)}
        try:
            json.dumps(metadata)
        except (TypeError, ValueError) as error:
            raise TrainingError(
                f"the state of a checkpoint must be JSON values: {error}"
            ) from error

        return metadata

    def _identity(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on for this trial to resume from it, as JSON values.

        Inherited weights do not count: another ancestor may be available when the trial is resumed,
        and the checkpoint holds the weights that the first attempt started from.
        """
        trial = self._trial
        return {
            "architecture": codec.to_dict(trial.architecture),
            "task": trial.task.name,
            "protocol": trial.protocol.as_dict(),
            "seed": trial.seed,
            "hyperparameters": dict(trial.hyperparameters),
            "device": trial.device.partition(":")[0],
            **({"world_size": trial.world_size} if trial.world_size > 1 else {}),
            **({"run": self.run} if self.run else {}),
            **trial.recipe,
            **self._also,
        }


def _tensors(values: Mapping[str, Any], folder: Path | None) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint: the recipe's, and the bytes of its files."""
    import numpy as np
    import torch

    tensors = {_TENSOR + name: tensor for name, tensor in as_tensors(values).items()}
    for path in sorted(folder.rglob("*")) if folder is not None else ():
        if path.is_file() and not path.is_symlink():
            name = PurePosixPath(path.relative_to(folder or path)).as_posix()
            tensors[_FILE + name] = torch.from_numpy(
                np.frombuffer(bytearray(path.read_bytes()), np.uint8)
            )

    return tensors


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    return (
        (name.removeprefix(prefix), tensor)
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    )


_TYPES = frozenset(
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 "
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz".split()
)
"""Types of numbers that safetensors has."""


def as_tensors(named: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return tensors or arrays by name as tensors that share no memory with each other.

    Raises:
        TrainingError: A value is neither, or a file cannot hold it: texts, objects, sparse or
            quantised tensors.
    """
    import numpy as np
    import torch

    if not isinstance(named, Mapping):
        raise TrainingError(
            "weights are a mapping of names to tensors or arrays, "
            f"as module.state_dict() returns it, got {type(named).__name__}"
        )

    tensors: dict[str, Tensor] = {}
    places: set[int] = set()
    for name, value in named.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor | np.ndarray):
            raise TrainingError(
                f"weights are tensors or arrays by name, got {type(value).__name__} as {name!r}"
            )

        tensor = (
            _dense(name, value) if isinstance(value, torch.Tensor) else _from_array(name, value)
        )
        # The file format refuses tied weights.
        address = tensor.untyped_storage().data_ptr()
        tensors[name] = tensor.clone() if address in places else tensor
        places.add(address)

    return tensors


def _dense(name: str, tensor: Tensor) -> Tensor:
    import torch

    if tensor.is_nested or tensor.layout is not torch.strided:
        raise _fault(
            name, f"a tensor that is {'nested' if tensor.is_nested else _name(tensor.layout)}"
        )

    if tensor.is_meta:
        raise _fault(name, "a tensor without values, on the device meta")

    if _name(tensor.dtype) not in _TYPES:
        raise _fault(name, f"a tensor of {_name(tensor.dtype)}")

    # A file holds memory alone, without the flags that conjugate or negate it on reading.
    return tensor.detach().resolve_conj().resolve_neg()


def _from_array(name: str, value: np.ndarray[Any, Any]) -> Tensor:
    import numpy as np
    import torch

    if value.dtype.name not in _TYPES:
        raise _fault(name, f"an array of {value.dtype}")

    # Native bytes in memory that may be written to, as PyTorch needs them; a single number has no
    # sides.
    array = np.require(
        value.astype(value.dtype.newbyteorder("="), order="C", copy=False), requirements=["C", "W"]
    )
    if hasattr(np, value.dtype.name):
        return torch.from_numpy(array)

    # Of a package such as ml_dtypes, as JAX has them.
    dtype: torch.dtype = getattr(torch, value.dtype.name)
    return torch.from_numpy(array.view(f"u{array.itemsize}")).view(dtype)


def _name(kind: torch.dtype | torch.layout) -> str:
    return str(kind).removeprefix("torch.")


def _fault(name: str, what: str) -> TrainingError:
    return TrainingError(
        "weights are dense tensors or arrays of a type that safetensors has, "
        f"got {what} as {name!r}"
    )
