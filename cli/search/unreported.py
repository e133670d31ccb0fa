"""End of a search whose results lack a quantity that it needs: a further objective, or that of a constraint."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from archive.errors import SearchError
from archive.store.records import State

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot

ENOUGH = 3
"""Trainings after which a quantity that none of them reported is not expected any more."""


def reported(snapshots: Iterable[Snapshot], computed: Collection[str]) -> Iterator[Snapshot]:
    """Yield the snapshots of a search while its trainings report what it needs.

    A recipe reports metrics of any name, so that a misspelt one is noticed in its results at the earliest.

    Args:
        snapshots: Snapshots of one study.
        computed: Names of the quantities that need no training.

    Raises:
        SearchError: No training of the study has reported an objective, or the quantity of a constraint.
    """
    for snapshot in snapshots:
        yield snapshot
        for name in _needed(snapshot.study, computed):
            _check(snapshot, name)


def _needed(study: Study, computed: Collection[str]) -> set[str]:
    names = {each.name for each in study.objectives} | {each.name for each in study.constraints}
    return names - {study.objective, *computed}


def _check(snapshot: Snapshot, name: str) -> None:
    study = snapshot.study
    complete = (view for view in snapshot.proposals if view.state is State.COMPLETE)
    if any(name in view.metrics for view in complete):
        return
    # Results that other studies had, or that were imported, may have fewer metrics.
    trained = [view for view in snapshot.proposals if view.state is State.COMPLETE and view.worker is not None]
    if len(trained) < ENOUGH:
        return
    metrics = ", ".join(sorted({study.objective, *(each for view in trained for each in view.metrics)}))
    raise SearchError(
        f"none of the {len(trained)} trainings of the study {study.name} reported {name!r}, which the search needs; "
        f"they reported {metrics}. The results are kept: search for one of these with another --study"
    )
