"""What a search waits for: space on a full disk, or a trainer that claims its proposals."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn

from archive.errors import SearchError, StoreError
from archive.queue import workers
from archive.store.records import State

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot


QUIET_SECONDS = 10.0
"""Time without a change after which a search looks for the reason: a local trainer needs less to
start."""


def trainer_command(archive_command: str, study: str) -> str:
    """Return the command that starts a trainer for a study.

    Args:
        archive_command: The command `archive`, with the options that lead to the archive.
        study: Name of the study.
    """
    return f"{archive_command} trainer --study {shlex.quote(study)}"


class ClaimWatch:
    """Finds out why the proposals of one study are not claimed, or their results not stored.

    Args:
        archive: The archive.
        study: Name of the study.
        command: Command that starts a trainer for the study.
        absence: Function that returns why none of the search's own trainers serves; None where it
            has none.
        clock: Function that returns the time in seconds.
    """

    def __init__(
        self,
        archive: Archive,
        study: str,
        command: str,
        absence: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._archive = archive
        self._study = study
        self._command = command
        self._absence = absence
        self._clock = clock
        self._open: tuple[tuple[str, State, int], ...] = ()
        self._due = 0.0
        self._reason: str | None = None
        self._full: str | None = None

    def reason(self, snapshot: Snapshot) -> str | None:
        """Return what the study waits for; None while something runs, or a change may be due."""
        if full := self._full_disk():
            return full

        views = snapshot.open
        now = self._clock()
        present = tuple((view.id, view.state, view.attempts) for view in views)
        if present != self._open:
            self._open = present
            self._due = now + QUIET_SECONDS
            self._reason = None

        if not views or any(view.state is State.RUNNING for view in views):
            return None

        if now >= self._due:
            self._due = now + QUIET_SECONDS
            self._reason = self._found(views[0])

        return self._reason

    def _full_disk(self) -> str | None:
        """Return why an embedded archive stores nothing, in the same words until there is space."""
        try:
            self._archive.connection.require_space()
        except StoreError as error:
            self._full = self._full or f"no result can be stored: {error}"
        else:
            self._full = None

        return self._full

    def _found(self, view: ProposalView) -> str:
        statuses = workers.statuses(self._archive.connection)
        serving = []
        for status in statuses:
            if status.alive and status.study in (None, self._study):
                serving.append(status)

        resting = [worker for worker in serving if worker.state == "resting"]
        waiting = f"#{view.number} waits:"
        if not serving:
            if self._absence is not None and view.reason is not None:
                return f"{waiting} the last trainer that tried it has ended: {view.reason}"

            if self._absence is not None:
                return f"{waiting} {self._absence()}"

            return f"{waiting} no trainer serves the study; start one with: {self._command}"

        if len(resting) == len(serving):
            last = resting[-1]
            return (
                f"{waiting} {_name_trainers(resting, 'rests', 'rest')} for up to a minute, "
                "because trials failed for reasons that another machine might not have; "
                f"the last reason: {last.rest_reason}"
            )

        idle = [worker for worker in serving if worker.state == "idle"]
        if not idle:
            return f"{waiting} {_name_trainers(serving, 'is', 'are')} busy with other studies"

        why = "; see the log of the trainer" if view.reason is None else f": {view.reason}"
        return f"{waiting} {_name_trainers(idle, 'is idle and does', 'are idle and do')} not claim it{why}"


def _name_trainers(trainers: list[workers.WorkerStatus], singular: str, plural: str) -> str:
    if len(trainers) == 1:
        return f"the trainer {trainers[0].id} {singular}"

    return f"{len(trainers)} trainers {plural}"


ENOUGH = 3
"""Trainings after which a quantity that none of them reported is not expected any more."""


def check_reports(snapshots: Iterable[Snapshot], computed: Collection[str]) -> Iterator[Snapshot]:
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

        study = snapshot.study
        names = {objective.name for objective in study.objectives}
        names |= {constraint.name for constraint in study.constraints}
        _check_objective(snapshot, former)
        for name in names - {study.objective, *computed}:
            _check_quantity(snapshot, name)


def _check_objective(snapshot: Snapshot, former: Collection[str]) -> None:
    """Check the first objective: a training that does not report it fails."""
    from archive.trainer.recipes.run import metrics_in_reason

    study = snapshot.study
    if any(view.state.evaluated for view in snapshot.proposals):
        return

    trainings = 0
    metrics: set[str] = set()
    for view in snapshot.proposals:
        if view.state is State.FAILED and view.id not in former:
            reported = metrics_in_reason(view.reason, study.objective)
            if reported is not None:
                trainings += 1
                metrics.update(reported)

    if trainings >= ENOUGH:
        _end(study, study.objective, trainings, metrics)


def _check_quantity(snapshot: Snapshot, name: str) -> None:
    """Check a further objective or the quantity of a constraint: results may lack it."""
    study = snapshot.study
    complete = [view for view in snapshot.proposals if view.state is State.COMPLETE]
    if any(name in view.metrics for view in complete):
        return

    # Results that other studies had, or that were imported, may have fewer metrics.
    trained = [view for view in complete if view.worker is not None]
    if len(trained) < ENOUGH:
        return

    metrics = {study.objective}
    for view in trained:
        metrics.update(view.metrics)

    _end(study, name, len(trained), metrics)


def _end(study: Study, name: str, trainings: int, metrics: Collection[str]) -> NoReturn:
    if name != study.objective:
        way_out = "the results are kept: search for one of these with another --study"
    elif metrics:
        way_out = "correct the recipe, or search for one of these with another --study"
    else:
        way_out = "correct the recipe"

    raise SearchError(
        f"none of the {trainings} trainings of the study {study.name} reported {name!r}, which the "
        f"search needs; they reported {', '.join(sorted(metrics)) or 'nothing'}: {way_out}"
    )
