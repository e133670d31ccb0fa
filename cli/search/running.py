"""The run of a search: the agent's loop with the trainers, and its view."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from archive import __version__
from archive.agents import loop
from archive.cli.search.announcements import announce, announce_sources
from archive.cli.search.first_proxies import await_proxies
from archive.cli.search.interruption import Interruption
from archive.cli.search.live import LiveView
from archive.cli.search.outcome import evaluated, place
from archive.cli.search.unreported import reported
from archive.cli.search.waiting import ClaimWatch
from archive.errors import SearchError
from archive.store.records import State
from archive.trainer.tasks.tabular import TabularProtocol

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.cli.search.request import SearchRequest
    from archive.cli.search.trainers import SearchTrainers
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot

TABLE_PAUSE = 0.01
"""Seconds between two polls of a study on a tabular task."""


def run_search(
    archive: Archive,
    study: Study,
    request: SearchRequest,
    start: Callable[[int], SearchTrainers],
    *,
    trainers: int,
    batch: int,
    retrain: bool,
    command: str,
) -> Snapshot:
    """Run a search to its end, and return the last snapshot of its study.

    Args:
        archive: The archive of the study.
        study: The stored study.
        request: The search.
        start: Returns so many trainers of the study.
        trainers: Number of trainers, if anything is left to train.
        batch: Largest number of pending proposals.
        retrain: Whether known networks are trained again.
        command: Command that starts a trainer for the study, shown while its proposals are not claimed.

    Raises:
        SearchError: Proposals keep failing, or the trainings do not report what the search needs.
    """
    agent, protocol = request.agent, request.protocol
    counts = archive.studies.counts(study.name)
    evaluations, pending = evaluated(counts), counts[State.WAITING] + counts[State.RUNNING]
    history = loop.history_of(archive, study)
    warm = len(history.observations) - evaluations
    announce(study, evaluations, warm)
    announce_sources(history.sources, agent)
    own = start(trainers if evaluations < study.budget or pending else 0)
    snapshot: Snapshot | None = None
    view = LiveView(study, str(request.study.config["agent"]), place(archive), protocol.epochs, warm)
    claims = ClaimWatch(archive, study.name, command, own.absence if own.fleet.upper else None)
    with Interruption() as interruption, view, own:
        await_proxies(archive, study, agent, own, interruption)
        snapshots = loop.run(
            *(archive, study, agent),
            version=__version__,
            costs=request.costs,
            batch=batch,
            retrain=retrain,
            # A table answers at once: frequent polls let the agent use each result as soon as it is stored.
            pause=TABLE_PAUSE if isinstance(protocol, TabularProtocol) else loop.PAUSE,
            wait=interruption.wait,
        )
        for snapshot in reported(snapshots, request.costs):
            interruption.check()
            view.update(snapshot, claims.reason(snapshot))
            own.keep_alive(evaluated(snapshot.counts), study.budget)
    if snapshot is None:
        raise SearchError(f"the study {study.name!r} has no snapshot to show")
    return snapshot
