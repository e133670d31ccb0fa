"""How many processor cores this process may use."""

from __future__ import annotations

import os


def available() -> int:
    """Return the number of cores, at least 1: those that the process is bound to, where the system tells."""
    # macOS has no such call; a container, or `taskset`, may give fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
