"""Limits of a running trial: its time, its temporary files, and the memory of its processes."""

from __future__ import annotations

from archive.trainer.daemon.limits.scratch import ScratchFolder
from archive.trainer.daemon.limits.trial_memory import TrialMemory


def excess(
    elapsed: float,
    seconds: float | None,
    scratch: ScratchFolder | None,
    scratch_bytes: int | None,
    memory: TrialMemory,
    memory_bytes: int | None,
) -> str | None:
    """Return which limit a trial has exceeded, as a reason to kill it; None if it keeps to all.

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

    if (
        scratch_bytes is not None
        and scratch is not None
        and (used := scratch.measure()) > scratch_bytes
    ):
        return (
            f"the trial's temporary files took {used} bytes, more than its limit of "
            f"{scratch_bytes} (--scratch-limit)"
        )

    if memory_bytes is not None and (used := memory.measure(memory_bytes)) > memory_bytes:
        return (
            f"the trial took {used} bytes of memory, more than its limit of {memory_bytes} "
            "(--memory-limit)"
        )

    return None
