"""Classification of a trial's exceptions by phase and cause (`archive.queue.causes`).

| exception                                          | cause           | before the training | in the training |
|----------------------------------------------------|-----------------|---------------------|-----------------|
| OSError: the disk is full, the file size limited   | `disk-full`     | other worker        | other worker    |
| MemoryError; torch's, of the host or of a GPU      | `out-of-memory` | alone, or elsewhere | the same        |
| of CUDA, its driver or its libraries               | `device`        | other worker        | attempt         |
| MissingDataError                                   | `data`          | other worker        | attempt         |
| SettingsError, any other OSError                   | `environment`   | other worker        | attempt         |
| ImportError                                        | `environment`   | other worker        | final           |
| UnusableFileError: its fault, no content           | `data`          | final               | final           |
| any other: its class and its message               | `training`      | final               | final           |

The reason of an exception ends with the line of the recipe: `(train.py, line 3)`. The training
begins with the first step of the recipe, as far as its context tells. Deaths without an exception
are classified by the exit status (`archive.trainer.trial.process`).
"""

from __future__ import annotations

import errno
from dataclasses import replace

from archive.errors import (
    ArchiveError,
    MissingDataError,
    SettingsError,
    TrainingError,
    UnusableFileError,
    first_line,
    with_line,
)
from archive.queue.causes import Cause
from archive.trainer.fit.memory import out_of_memory
from archive.trainer.trial.messages import TrialFailed

_DEVICE = (
    *(
        "CUDA error",
        "CUDA driver error",
        "CUDA unknown error",
        "CUDA initialization",
        "CUBLAS_STATUS",
        "CUDNN_STATUS",
    ),
    *(
        "cuDNN error",
        "NVML_",
        "No CUDA GPUs are available",
        "NVIDIA driver",
        "not compiled with CUDA",
    ),
    *("No HIP GPUs are available", "HIP error", "XPU device"),
)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LONGEST = 2000
"""Largest length of a recorded reason; the log has the rest."""


def failure_of(error: Exception, *, begun: bool = False, file: str | None = None) -> TrialFailed:
    """Return the terminal message for an exception.

    Args:
        error: The exception.
        begun: Whether the training had begun.
        file: File of the recipe, whose line is part of the reason.
    """
    error = _readable(error)
    # A recipe may wrap the exception of torch or of the system.
    original = (
        error.__cause__
        if isinstance(error, TrainingError) and isinstance(error.__cause__, Exception)
        else error
    )
    if (reason := _memory(original)) is not None:
        return TrialFailed(
            error.reason if isinstance(error, TrainingError) else reason, cause=Cause.OUT_OF_MEMORY
        )

    if isinstance(error, UnusableFileError):
        # The reason is public in the archive; a user's file is private.
        return TrialFailed(error.fault, cause=Cause.DATA)

    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        place = "" if error.filename is None else f" for {error.filename}"
        return TrialFailed(
            f"no space left on the disk{place}", retry=True, cause=Cause.DISK_FULL, refused=True
        )

    cause = _cause(error, begun)
    reason = _reason(error, cause, file)
    return TrialFailed(
        reason, cause is not Cause.TRAINING, cause=cause, refused=_refused(cause, begun)
    )


def refusal_of(error: Exception) -> TrialFailed:
    """Return the terminal message for an exception of the daemon that kept it from starting a
    trial.
    """
    failed = failure_of(error)
    cause = Cause.ENVIRONMENT if failed.cause is Cause.TRAINING else failed.cause
    return replace(failed, retry=True, refused=True, cause=cause)


def _readable(error: Exception) -> Exception:
    """Return an exception itself, or one with its class where its message cannot be read."""
    try:
        str(error)
    except Exception as second:
        return TrainingError(
            f"{type(error).__name__}, whose message cannot be read: {type(second).__name__}"
        )

    return error


def _cause(error: Exception, begun: bool) -> Cause:
    if isinstance(error, MissingDataError):
        return Cause.DATA

    if isinstance(error, SettingsError):
        return Cause.ENVIRONMENT

    if isinstance(error, ArchiveError):
        return Cause.TRAINING

    if any(word in str(error) for word in _DEVICE):
        return Cause.DEVICE

    if isinstance(error, OSError) or (isinstance(error, ImportError) and not begun):
        return Cause.ENVIRONMENT

    return Cause.TRAINING


def _refused(cause: Cause, begun: bool) -> bool:
    return not begun and cause is not Cause.TRAINING


def _reason(error: Exception, cause: Cause, file: str | None) -> str:
    if isinstance(error, TrainingError):
        return error.reason

    if isinstance(error, ArchiveError):
        return str(error)

    if cause is Cause.DEVICE:
        return f"the device failed: {first_line(error)}"

    return with_line(error, file=file, most=_LONGEST)


def _memory(error: Exception) -> str | None:
    if isinstance(error, MemoryError):
        return f"out of memory: {first_line(error)}" if str(error) else "out of memory"

    reason = None if isinstance(error, ArchiveError) else out_of_memory(error)
    return None if reason is None else f"out of memory: {reason}"
