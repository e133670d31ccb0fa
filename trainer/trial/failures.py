"""Classification of a trial's exceptions by phase and cause (`archive.queue.causes`).

| exception                              | cause           | before the training | in the training |
|----------------------------------------|-----------------|---------------------|-----------------|
| OSError: disk full, file size limited  | `disk-full`     | other worker        | other worker    |
| MemoryError; torch's, of host or GPU   | `out-of-memory` | alone, or elsewhere | the same        |
| of CUDA, its driver or its libraries   | `device`        | other worker        | attempt         |
| MissingDataError                       | `data`          | other worker        | attempt         |
| SettingsError, any other OSError       | `environment`   | other worker        | attempt         |
| ImportError                            | `environment`   | other worker        | final           |
| UnusableFileError: no content, a fault | `data`          | final               | final           |
| any other: its class and its message   | `training`      | final               | final           |

The reason of an exception ends with the line of the recipe: `(train.py, line 3)`. The training
begins with the first step of the recipe, as far as its context tells. Deaths without an exception
are classified by the exit status (`archive.trainer.trial.process`). The memory of a trial that ran
out of it is measured in its process, right after the exception (`memory_need`).
"""

from __future__ import annotations

import errno
import re
from dataclasses import replace

import psutil

from archive.errors import (
    ArchiveError,
    MissingDataError,
    SettingsError,
    TrainingError,
    UnusableFileError,
    first_line,
    with_line,
)
from archive.queue.causes import Cause, MemoryNeed
from archive.trainer.fit.memory import device_memory, out_of_memory
from archive.trainer.trial.messages import TrialFailed

_DEVICE = (
    "CUDA error",
    "CUDA driver error",
    "CUDA unknown error",
    "CUDA initialization",
    "CUBLAS_STATUS",
    "CUDNN_STATUS",
    "cuDNN error",
    "NVML_",
    "No CUDA GPUs are available",
    "NVIDIA driver",
    "not compiled with CUDA",
    "No HIP GPUs are available",
    "HIP error",
    "XPU device",
)
"""Parts of the messages of a device's errors."""
_PEER = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "DistNetworkError",
    "DistStoreError",
    "DistBackendError",
    "DistError",
    "/gloo/",
    "NCCL error",
    "ncclRemoteError",
    "ncclSystemError",
)
"""Parts of the reasons of a rank that has lost the connection to another one."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LONGEST = 2000
"""Largest length of a recorded reason; the log has the rest."""

OTHERS_BYTES = 2 << 30
"""Memory of a GPU that may be in use without a neighbour: contexts, the driver, a desktop, a spare
process."""
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_REQUEST = re.compile(r"(?:Tried|tried) to allocate (\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB)")


def failure_of(error: Exception, *, begun: bool = False, file: str | None = None) -> TrialFailed:
    """Return the terminal message for an exception.

    Args:
        error: The exception.
        begun: Whether the training had begun.
        file: File of the recipe; its line is part of the reason.
    """
    error = _readable(error)
    if (reason := _memory_reason(error)) is not None:
        return TrialFailed(reason, cause=Cause.OUT_OF_MEMORY)

    if isinstance(error, UnusableFileError):
        # The reason is public in the archive; a user's file is private.
        return TrialFailed(error.fault, cause=Cause.DATA)

    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        reason = "no space left on the disk"
        if error.filename is not None:
            reason += f" for {error.filename}"

        return TrialFailed(reason, retry=True, cause=Cause.DISK_FULL, refused=True)

    cause = _cause(error, begun)
    may_succeed = cause is not Cause.TRAINING
    return TrialFailed(
        _reason(error, cause, file),
        retry=may_succeed,
        cause=cause,
        refused=may_succeed and not begun,
    )


def is_of_peer(failed: TrialFailed) -> bool:
    """Whether a rank of a trial has failed because another one has failed or ended."""
    return failed.cause is not Cause.CRASH and any(words in failed.reason for words in _PEER)


def refusal_of(error: Exception) -> TrialFailed:
    """Return the terminal message for an exception in the daemon before the start of a trial."""
    failed = failure_of(error)
    cause = Cause.ENVIRONMENT if failed.cause is Cause.TRAINING else failed.cause
    return replace(failed, retry=True, refused=True, cause=cause)


def _readable(error: Exception) -> Exception:
    """Return an exception, or a substitute with its class if its message cannot be read."""
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


def _reason(error: Exception, cause: Cause, file: str | None) -> str:
    if isinstance(error, TrainingError):
        return error.reason

    if isinstance(error, ArchiveError):
        return str(error)

    if cause is Cause.DEVICE:
        return f"the device failed: {first_line(error)}"

    return with_line(error, file=file, most=_LONGEST)


def _memory_reason(error: Exception) -> str | None:
    """Return the reason if memory ran out; None for any other error."""
    # A recipe may wrap the exception of torch or of the system.
    if isinstance(error, TrainingError) and isinstance(error.__cause__, Exception):
        return None if _memory_message(error.__cause__) is None else error.reason

    message = _memory_message(error)
    if message is None:
        return None

    return f"out of memory: {message}" if message else "out of memory"


def _memory_message(error: Exception) -> str | None:
    if isinstance(error, MemoryError):
        return first_line(error) if str(error) else ""

    return None if isinstance(error, ArchiveError) else out_of_memory(error)


def memory_need(device: str, error: Exception) -> MemoryNeed:
    """Return the least memory that a trial needs, and the memory of its device.

    On a CPU, neighbours are known to the daemon alone (`MemoryNeed.alone`).

    Args:
        device: Device in torch's notation.
        error: The exception.
    """
    request = requested_bytes(error)
    if not device.startswith("cuda"):
        return MemoryNeed(
            int(psutil.Process().memory_info().rss) + request, device_memory(), alone=True
        )

    import torch

    free, total = torch.cuda.mem_get_info(device)
    reserved = torch.cuda.memory_reserved(device)
    needed = max(
        torch.cuda.max_memory_allocated(device), torch.cuda.memory_allocated(device) + request
    )
    return MemoryNeed(needed, total, alone=total - free - reserved <= OTHERS_BYTES)


def requested_bytes(error: BaseException) -> int:
    """Return the size of the failed allocation by torch's message; 0 if that does not tell it."""
    match = _REQUEST.search(str(error))
    if match is None:
        return 0 if error.__cause__ is None else requested_bytes(error.__cause__)

    return int(float(match[1]) * _UNITS[match[2]])
