"""End of a search whose trainings do not report a quantity that it needs: an objective, or that of
a constraint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn

from archive.errors import SearchError
from archive.store.records import State
from archive.trainer.recipes import unreported

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot

ENOUGH = 3
"""Trainings after which a quantity that none of them reported is not expected any more."""


def reported(snapshots: Iterable[Snapshot], computed: Collection[str]) -> Iterator[Snapshot]:
    """Yield the snapshots of a search while its trainings report the quantities that it needs.

    A recipe reports metrics of any name, so that a misspelt one is noticed in its results at the
    earliest.

    Args:
        snapshots: Snapshots of one study.
        computed: Names of the quantities that need no training.

    Raises:
        SearchError: No training of the study has reported an objective, or the quantity of a
            constraint.
    """
    former: set[str] | None = None
    for snapshot in snapshots:
        yield snapshot
        if former is None:
            # The recipe may have been corrected since an earlier search of the study.
            former = {view.id for view in snapshot.proposals if view.state is State.FAILED}

        _check_objective(snapshot, former)
        for name in _needed(snapshot.study, computed):
            _check(snapshot, name)


def _needed(study: Study, computed: Collection[str]) -> set[str]:
    names = {each.name for each in study.objectives} | {each.name for each in study.constraints}
    return names - {study.objective, *computed}


def _check_objective(snapshot: Snapshot, former: Collection[str]) -> None:
    """Check the first objective: a training that does not report it fails."""
    study = snapshot.study
    if any(view.state.evaluated for view in snapshot.proposals):
        return

    failed = [
        view for view in snapshot.proposals if view.state is State.FAILED and view.id not in former
    ]
    lists = [unreported.reported(view.reason, study.objective) for view in failed]
    metrics = [each for each in lists if each is not None]
    if len(metrics) >= ENOUGH:
        _end(study, study.objective, len(metrics), {name for each in metrics for name in each})


def _check(snapshot: Snapshot, name: str) -> None:
    study = snapshot.study
    complete = (view for view in snapshot.proposals if view.state is State.COMPLETE)
    if any(name in view.metrics for view in complete):
        return

    # Results that other studies had, or that were imported, may have fewer metrics.
    trained = [
        view
        for view in snapshot.proposals
        if view.state is State.COMPLETE and view.worker is not None
    ]
    if len(trained) < ENOUGH:
        return

    _end(
        study,
        name,
        len(trained),
        {study.objective, *(each for view in trained for each in view.metrics)},
    )


def _end(study: Study, name: str, trainings: int, metrics: Collection[str]) -> NoReturn:
    if name == study.objective:
        way_out = "correct the recipe" + (
            ", or search for one of these with another --study" if metrics else ""
        )
    else:
        way_out = "the results are kept: search for one of these with another --study"

    raise SearchError(
        f"none of the {trainings} trainings of the study {study.name} reported {name!r}, which "
        "the search needs; they "
        f"reported {', '.join(sorted(metrics)) or 'nothing'}: {way_out}"
    )
