"""Memory of the machine, and the recognition of exhausted memory in torch's errors."""

from __future__ import annotations

from archive.errors import first_line

_NO_MEMORY = (
    "DefaultCPUAllocator",
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)
_ADVICE = " Of the allocated memory"
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Limits of a container, which sees its own control group as the root."""


def out_of_memory(error: Exception) -> str | None:
    """Return torch's message on exhausted memory, without its advice; None for any other error."""
    if type(error).__name__ == "OutOfMemoryError" or any(word in str(error) for word in _NO_MEMORY):
        # The message of the CPU allocator begins with a position in torch's source code.
        message = first_line(error).rpartition("DefaultCPUAllocator: ")[2]
        return message.partition(_ADVICE)[0].rstrip(".")

    return None


def device_memory() -> int:
    """Return the memory of this machine in bytes, or the limit of the container if it is lower."""
    import psutil

    memory = int(psutil.virtual_memory().total)
    for path in _LIMITS:
        limit = _limit(path)
        if limit is not None:
            memory = min(memory, limit)

    return memory


def _limit(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return None

    return int(text) if text.isdecimal() else None
