"""What an exception in a trial means: whether memory ran out, the device broke, or the trial cannot be run.

| exception                                          | reason                       | another attempt may fare better |
|----------------------------------------------------|------------------------------|---------------------------------|
| MemoryError; torch's, of the host or of a GPU      | `out of memory …`            | no: it would need as much       |
| of CUDA or its libraries                           | `the device failed: …`       | yes, in another process         |
| TrainingError, any other of the archive            | its own words                | no                              |
| UnusableFileError                                  | its fault, no content        | no                              |
| SettingsError, OSError: data that are not here     | its own words                | yes, on a machine that has them |
| anything else                                      | its class and its words      | no                              |

Deaths without an exception are told from the exit status (`archive.trainer.trial.process`).
"""

from __future__ import annotations

from archive.errors import ArchiveError, SettingsError, TrainingError, UnusableFileError
from archive.trainer.trial.job import Failed

_NO_MEMORY = ("DefaultCPUAllocator", "CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
_DEVICE = ("CUDA error", "CUDA driver error", "CUBLAS_STATUS", "CUDNN_STATUS", "cuDNN error", "NVML_")


def failed(error: Exception) -> Failed:
    """Return what a daemon is told of an exception."""
    if isinstance(error, TrainingError):
        return Failed(error.reason)
    if isinstance(error, UnusableFileError):
        # The reason is for everybody to read, and a user's file is not.
        return Failed(error.fault)
    if isinstance(error, ArchiveError):
        return Failed(str(error), retry=isinstance(error, SettingsError))
    if isinstance(error, MemoryError):
        return Failed(f"out of memory: {first_line(error)}" if str(error) else "out of memory")
    if (reason := out_of_memory(error)) is not None:
        return Failed(f"out of memory: {reason}")
    if any(word in str(error) for word in _DEVICE):
        # It leaves the device unusable for this process alone.
        return Failed(f"the device failed: {first_line(error)}", retry=True)
    return Failed(f"{type(error).__name__}: {error}", retry=isinstance(error, OSError))


def out_of_memory(error: Exception) -> str | None:
    """Return what torch says of memory that ran out; None where the error says something else."""
    if type(error).__name__ == "OutOfMemoryError" or any(word in str(error) for word in _NO_MEMORY):
        # The host's allocator puts the place in its source first.
        return first_line(error).rpartition("DefaultCPUAllocator: ")[2]
    return None


def first_line(error: Exception) -> str:
    """Return the first line of an error's message that says anything."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
