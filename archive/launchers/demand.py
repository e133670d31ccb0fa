"""The number of trainers that a queue needs."""

from __future__ import annotations


def demand(work: int, slots: int, lower: int, upper: int) -> int:
    """Return the number of trainers for an amount of work: `clip(ceil(work / slots), lower,
    upper)`.

    Args:
        work: Number of proposals that wait or run.
        slots: Number of trials that each trainer runs at a time, at least 1.
        lower: Smallest number of trainers, also of an empty queue.
        upper: Largest number of trainers.
    """
    return min(max(-(-work // slots), lower), upper)
