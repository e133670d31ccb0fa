"""Best results of a study, as `archive study best` ranks them, whose weights are worth keeping."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from archive.store.snapshots import ranked

if TYPE_CHECKING:
    from archive.store.snapshots import Snapshot


def best_results(snapshot: Snapshot, saved: Collection[str], count: int) -> set[str]:
    """Return the ids of the best results of a study, and of several objectives those of the whole
    Pareto set.

    Args:
        snapshot: The study with its proposals.
        saved: Ids of the results with weights; others take no place of the `count` best.
        count: Number of results; 0 for none, not even the Pareto set.
    """
    if not count:
        return set()

    best = [view.id for view in ranked(snapshot.study, snapshot.proposals) if view.id in saved][
        :count
    ]
    if not snapshot.study.further:
        return set(best)

    # Imported here because it imports numpy, and `import archive` loads this module.
    from archive.store.ranking.pareto_front import pareto_front

    return {*best, *(view.id for view in pareto_front(snapshot))}
