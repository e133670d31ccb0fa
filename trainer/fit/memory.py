"""Recognition of exhausted memory in torch's errors."""

from __future__ import annotations

_NO_MEMORY = ("DefaultCPUAllocator", "CUDA out of memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def out_of_memory(error: Exception) -> str | None:
    """Return torch's message on exhausted memory; None for any other error."""
    if type(error).__name__ == "OutOfMemoryError" or any(word in str(error) for word in _NO_MEMORY):
        # The host's allocator begins with a position in its source code.
        return first_line(error).rpartition("DefaultCPUAllocator: ")[2]
    return None


def first_line(error: Exception) -> str:
    """Return the first line of an error's message that is not blank, or the name of its class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
