"""Limits of a running trial: its time, its temporary files, and the memory of its processes.

The memory is the sum over all processes of a trial, without swap:

    resident memory         quick; counts a page once for each process that shares it
    proportional shares     each page once; the kernel walks through all of them

A fork shares its parent's pages until it writes to them, so a data loader's workers may seem to
take a multiple of their memory. The second sum is taken only where the first one exceeds the limit.
Elsewhere than on Linux there is the first one alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil

from archive.trainer.daemon.scratch import ScratchFolder
from archive.trainer.trial import process_tree

MEASURE_SECONDS = 0.5
_LARGEST_SHARE = 0.05
"""Largest share of the daemon's time that measurements take."""


class TrialMemory:
    """The memory of a trial.

    Args:
        pids: Ids of the trial's processes without what they have started; empty for work that has
            none.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._bytes = 0
        self._next_at = 0.0

    def measure(self, limit: int) -> int:
        """Return the memory in bytes by the last measurement; quick while it is below the limit."""
        began = time.monotonic()
        if self._pids and began >= self._next_at:
            pids = set[int]().union(*map(process_tree.members, self._pids))
            self._bytes = sum(map(_resident_bytes, pids))
            if self._bytes > limit:
                self._bytes = sum(map(_share, pids))

            ended = time.monotonic()
            self._next_at = ended + max(MEASURE_SECONDS, (ended - began) / _LARGEST_SHARE)

        return self._bytes


def _resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:  # It has ended.
        return 0


def _share(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return 1024 * int(line.split()[1])

            return 0
    except OSError:
        return _resident_bytes(pid)


def excess(
    elapsed: float,
    seconds: float | None,
    scratch: ScratchFolder | None,
    scratch_bytes: int | None,
    memory: TrialMemory,
    memory_bytes: int | None,
) -> str | None:
    """Return the exceeded limit as a reason to kill a trial; None within all limits.

    Args:
        elapsed: Seconds since its start.
        seconds: Limit of them; None for no limit.
        scratch: Folder of its temporary files, if any.
        scratch_bytes: Limit of their size; None for no limit.
        memory: Memory of its processes.
        memory_bytes: Limit of it; None for no limit.
    """
    if seconds is not None and elapsed > seconds:
        return f"the trial took longer than its limit of {seconds:g} s (--trial-timeout)"

    if scratch_bytes is not None and scratch is not None:
        used = scratch.measure()
        if used > scratch_bytes:
            return (
                f"the trial's temporary files took {used} bytes, more than its limit of "
                f"{scratch_bytes} (--scratch-limit)"
            )

    if memory_bytes is not None:
        used = memory.measure(memory_bytes)
        if used > memory_bytes:
            return (
                f"the trial took {used} bytes of memory, "
                f"more than its limit of {memory_bytes} (--memory-limit)"
            )

    return None
