"""Classification of a trial's exceptions: the recorded reason, and whether another attempt may succeed.

| exception                                          | reason                       | retry                           |
|----------------------------------------------------|------------------------------|---------------------------------|
| OSError: the disk is full                          | `no space left …`            | yes, on a machine with space    |
| MemoryError; torch's, of the host or of a GPU      | `out of memory …`            | no: it would need as much       |
| of CUDA or its libraries                           | `the device failed: …`       | yes, in another process         |
| TrainingError, any other of the archive            | its message                  | no                              |
| UnusableFileError                                  | its fault, no content        | no                              |
| SettingsError, OSError: data that are not here     | its message                  | yes, on a machine that has them |
| any other                                          | its class and its message    | no                              |

Deaths without an exception are classified by the exit status (`archive.trainer.trial.process`).
"""

from __future__ import annotations

import errno

from archive.errors import ArchiveError, SettingsError, TrainingError, UnusableFileError
from archive.trainer.fit.memory import first_line, out_of_memory
from archive.trainer.trial.messages import TrialFailed

_DEVICE = ("CUDA error", "CUDA driver error", "CUBLAS_STATUS", "CUDNN_STATUS", "cuDNN error", "NVML_")
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_LONGEST = 2000
"""Largest length of a recorded reason; the log has the rest."""


def failure_of(error: Exception) -> TrialFailed:
    """Return the terminal message for an exception."""
    if isinstance(error, TrainingError):
        return TrialFailed(error.reason)
    if isinstance(error, UnusableFileError):
        # The reason is public in the archive; a user's file is private.
        return TrialFailed(error.fault)
    if isinstance(error, ArchiveError):
        return TrialFailed(str(error), retry=isinstance(error, SettingsError))
    if isinstance(error, MemoryError):
        return TrialFailed(f"out of memory: {first_line(error)}" if str(error) else "out of memory")
    if (reason := out_of_memory(error)) is not None:
        return TrialFailed(f"out of memory: {reason}")
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        place = "" if error.filename is None else f" for {error.filename}"
        return TrialFailed(f"no space left on the disk{place}", retry=True)
    if any(word in str(error) for word in _DEVICE):
        # The device is unusable for this process alone.
        return TrialFailed(f"the device failed: {first_line(error)}", retry=True)
    return TrialFailed(f"{type(error).__name__}: {error}"[:_LONGEST], retry=isinstance(error, OSError))
