"""The length of the queue, and the number of its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.queue.depth import depths, total

if TYPE_CHECKING:
    from archive.api import Archive


def queue_length(archive: Archive, study: str | None) -> tuple[int, int]:
    """Return the number of proposals that wait or run, and the number of those that have ended.

    The cost does not grow with the number of proposals that have ended: a fleet's keeper asks every
    second.

    Args:
        archive: The archive.
        study: Name of a study; None for all.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    # Counted first: a proposal that is added meanwhile must not look like a result.
    proposals = total(archive.connection, study)
    work = sum(
        depth.waiting + depth.running
        for name, depth in depths(archive.connection).items()
        if study in (None, name)
    )
    return work, max(0, proposals - work)
