"""Memory of running trials: that of all their processes together, without swap.

    sum of resident memory           quick; counts a page once for each process that shares it
    sum of proportional shares       each page once; the kernel walks through all of them

A fork shares its parent's pages until it writes to them, so a data loader's workers may seem to
take a multiple of what they do. The second sum is taken only where the first one exceeds the limit.
Elsewhere than on Linux there is the first one alone.
"""

from __future__ import annotations

import time

import psutil

from archive.trainer.trial import process_tree

MEASURE_SECONDS = 0.5
_LARGEST_SHARE = 0.05
"""Largest share of the daemon's time that measurements take."""


class TrialMemory:
    """The memory of a trial.

    Args:
        pid: Id of the trial's process; None for work that has none.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._bytes = 0
        self._next_at = 0.0

    def measure(self, limit: int) -> int:
        """Return the memory in bytes by the last measurement; at most the limit unless it exceeds
        the limit.
        """
        began = time.monotonic()
        if self._pid is not None and began >= self._next_at:
            pids = process_tree.members(self._pid)
            self._bytes = sum(map(_resident, pids))
            if self._bytes > limit:
                self._bytes = sum(map(_share, pids))

            ended = time.monotonic()
            self._next_at = ended + max(MEASURE_SECONDS, (ended - began) / _LARGEST_SHARE)

        return self._bytes


def _resident(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:  # It has ended.
        return 0


def _share(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return 1024 * sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except OSError:
        return _resident(pid)
