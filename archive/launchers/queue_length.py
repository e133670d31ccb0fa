"""The length of the queue, and the number of its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.store.records import State

if TYPE_CHECKING:
    from archive.api import Archive


def queue_length(archive: Archive, study: str | None) -> tuple[int, int]:
    """Return the number of proposals that wait or run, and the number of those that have ended.

    Args:
        archive: The archive.
        study: Name of a study; None for all.
    """
    counts = [each.counts for each in archive.studies.list()] if study is None else [archive.studies.counts(study)]
    work = sum(each[State.WAITING] + each[State.RUNNING] for each in counts)
    return work, sum(sum(each.values()) for each in counts) - work
