"""Memory of a trial that ran out of it, measured in its process right after the exception."""

from __future__ import annotations

import re

import psutil

from archive.queue.causes import MemoryNeed
from archive.trainer.fit.memory import device_memory

OTHERS_BYTES = 2 << 30
"""Memory of a GPU that may be in use without a neighbour: contexts, the driver, a desktop, a spare
process."""

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_REQUEST = re.compile(r"(?:Tried|tried) to allocate (\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB)")


def memory_need(device: str, error: Exception) -> MemoryNeed:
    """Return what a trial needs at least, and what its device has.

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
    """Return the size of the allocation that failed, as torch's message tells it;

    0 if it does not.
    """
    match = _REQUEST.search(str(error))
    if match is None:
        return requested_bytes(error.__cause__) if error.__cause__ is not None else 0

    return int(float(match[1]) * _UNITS[match[2]])
