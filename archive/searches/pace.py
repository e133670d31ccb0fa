"""Pace of a study: evaluations per second, and the time that the rest of the budget takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from archive.store.studies.studies import UNBOUNDED

if TYPE_CHECKING:
    from archive.store.snapshots import Snapshot

LATEST = 20
"""Number of the latest results that the pace is measured on."""


@dataclass(frozen=True)
class Pace:
    """Pace of a study.

    Attributes:
        per_second: Evaluations per second.
        remaining: Seconds until the budget is spent; None without a budget.
    """

    per_second: float
    remaining: float | None


def pace(snapshot: Snapshot, *, since: int, now: int) -> Pace | None:
    """Return the pace of a study by its latest results; None before the first one.

    The time after the latest result counts, so that the pace of a stalled study falls.

    Args:
        snapshot: The study.
        since: Time from which results count, in milliseconds by the server's clock.
        now: The present time, likewise.
    """
    ends = []
    evaluated = 0
    for view in snapshot.proposals:
        if not view.state.evaluated:
            continue

        evaluated += 1
        if view.finished is not None and view.finished >= since:
            ends.append(view.finished)

    if not ends:
        return None

    latest = sorted(ends)[-LATEST:]
    begin = since
    count = len(latest)
    if len(ends) > LATEST:
        # Between n ends lie n - 1 evaluations.
        begin = latest[0]
        count -= 1

    seconds = max(now - begin, latest[-1] - begin, 1) / 1000
    per_second = count / seconds
    budget = snapshot.study.budget
    remaining = max(budget - evaluated, 0) / per_second if budget < UNBOUNDED else None
    return Pace(per_second, remaining)
