"""The search loop: it performs all side effects, so that `Agent.propose` can be a pure function.

It lets the agent propose (`archive.agents.searcher`), stores the pairwise distances of evaluated
networks, and waits. Its whole state is in the archive: a loop that is killed at any moment can be
restarted, and two loops on one study share its budget, which the archive enforces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from archive.agents import provenance
from archive.agents.base import Agent, History
from archive.agents.searcher import Searcher
from archive.architecture.operations import vocabulary
from archive.constraints import NO_COSTS, KnownCosts
from archive.errors import SearchError
from archive.store.records import State
from archive.store.wake_up import ENDED, WakeUpReceiver

if TYPE_CHECKING:
    from archive.agents.distance_sync import DistanceSync
    from archive.api import Archive
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot
    from archive.store.studies.builds import ConfigurationBuilder

PAUSE = 0.2
"""Polling interval in seconds: far below the time of a training, and at most five reads a
second."""

IDLE_SHARE = 8
"""Intervals shorter than `PAUSE` grow to an eighth of the idle time: a change is then noticed at
most that late."""

LOOK_SECONDS = 0.005
"""Time between two looks at the modification time of the wake-up file (`archive.store.wake_up`)."""

FAILURES = 20
"""Number of failed proposals at which a search gives up, if they also outnumber the evaluations.

Proposals that failed before the search began do not count: the same search can begin again after
the user has removed the cause."""

FAILURES_IN_A_ROW = 5
"""The same number for failures without an evaluation in between, in searches of at most so many
evaluations. It grows with the budget that is left, up to `FAILURES`: in a long search, a few
networks may be too large."""


def never(snapshot: Snapshot) -> bool:
    """Return False: the search has no rule that ends it."""
    del snapshot
    return False


def run(
    archive: Archive,
    study: Study,
    agent: Agent,
    *,
    version: str,
    costs: KnownCosts = NO_COSTS,
    builder: ConfigurationBuilder | None = None,
    batch: int = 1,
    retrain: bool = False,
    pause: float = PAUSE,
    wait: Callable[[float], None] = time.sleep,
    stop: Callable[[Snapshot], bool] = never,
) -> Iterator[Snapshot]:
    """Search until the budget is spent or the agent has no further proposal.

    Args:
        archive: The archive of the study.
        study: The study, already in the archive.
        agent: The agent that proposes.
        version: Version of the software, recorded with the agent.
        costs: Known costs of the study's networks.
        builder: Builds the networks of its configurations; None for none.
        batch: Number of open proposals to maintain.
        retrain: Also train networks for which the archive has a result of the study's protocol, see
            `archive.queue.reuse`.
        pause: Polling interval in seconds; one shorter than `PAUSE` grows while nothing changes. On
            an embedded server it is `PAUSE`, because results end the wait.
        wait: Replaces `time.sleep`.
        stop: Returns whether the search should end before its budget is spent; open proposals are
            still awaited.

    Yields:
        A snapshot of the study after every read. Before the last one, all pairwise distances
        between the study's evaluated architectures have been stored.

    Raises:
        SearchError: Proposals keep failing; the message gives the last reason.
    """
    agent_id = archive.proposals.register_agent(agent.kind, agent.config, version)

    @cache
    def distance_sync() -> DistanceSync:
        # Made for the first networks with distances: it loads the kernels.
        from archive.agents.distance_sync import DistanceSync

        return DistanceSync(archive, agent.grams)

    searcher = Searcher(archive, costs, builder)
    look = archive.studies.follow(study.name)
    results = Results(archive, wait)
    pauses = Pauses(PAUSE if results.wake else pause)
    whole = False
    # Numbers of evaluated and failed proposals at which the agent last had no proposal. It may have
    # one again after they change.
    exhausted: tuple[int, int] | None = None
    limit: FailureLimit | None = None
    while True:
        results.forget()
        snapshot = look(whole=whole)
        whole = False
        limit = limit or FailureLimit(snapshot)
        # The budget is read again: another search may have changed it.
        study = snapshot.study
        counts = snapshot.counts
        pauses.observe(counts)
        evaluated = _count_evaluated(snapshot)
        waiting = counts[State.WAITING] + counts[State.RUNNING]
        new = {view.architecture_key for view in snapshot.news if view.state.evaluated}
        # Distances of cells are not stored (`archive.kernels.stored`).
        if new and not vocabulary(study.space).cells:
            distance_sync().keep(archive.architectures.get_many(sorted(new)))

        yield snapshot
        evaluations = evaluated, counts[State.FAILED]
        stopped = evaluated < study.budget and stop(snapshot)
        if not waiting and (evaluated >= study.budget or stopped or exhausted == evaluations):
            if snapshot.whole:
                return

            # The last snapshot misses nothing.
            whole = True
            continue

        limit.check(snapshot)
        count = min(batch - waiting, study.budget - evaluated - waiting)
        proposed = None
        if count > 0 and not stopped and exhausted != evaluations:
            proposed = searcher.propose(
                study, agent, agent_id, count, retrain=retrain, distance_sync=distance_sync
            )
            exhausted = None if proposed.made or proposed.lost else evaluations

        if proposed is None or not proposed.made:
            # There is nothing to propose, or another loop was faster.
            results.wait(pauses.next())


def history_of(archive: Archive, study: Study) -> History:
    """Read an agent's history of a study and its sources."""
    return provenance.history_of(archive, study)[0]


class Results:
    """Waits for results, and ends early where a process with the same home has stored one.

    Args:
        archive: The archive.
        sleep: Function that sleeps for some seconds.

    Attributes:
        wake: Whether every process that stores results has this home, as on an embedded server.
    """

    def __init__(self, archive: Archive, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait for results from now on."""
        settings = archive.connection.settings
        self.wake = settings.embedded
        self._receiver = WakeUpReceiver(settings, ENDED)
        self._sleep = sleep

    def forget(self) -> None:
        """Wait for later results only, because those until now are read next."""
        self._receiver.received()

    def wait(self, seconds: float) -> None:
        """Wait for so many seconds, at most until the next result."""
        while seconds > 0 and not self._receiver.received():
            self._sleep(min(seconds, LOOK_SECONDS))
            seconds -= LOOK_SECONDS


class Pauses:
    """Pauses between two reads of a study. They grow while its numbers of proposals stay the same.

    Args:
        shortest: The shortest pause in seconds.
    """

    def __init__(self, shortest: float) -> None:
        self._shortest = shortest
        self._counts: Mapping[State, int] = {}
        self._idle_seconds = 0.0

    def observe(self, counts: Mapping[State, int]) -> None:
        """Start again with the shortest pause if the proposals of a state changed in number."""
        if counts != self._counts:
            self._counts = counts
            self._idle_seconds = 0.0

    def next(self) -> float:
        """Return the seconds of the next pause, which the caller waits for."""
        seconds = max(self._shortest, min(self._idle_seconds / IDLE_SHARE, PAUSE))
        self._idle_seconds += seconds
        return seconds


class FailureLimit:
    """The limit of failed proposals of one search.

    Args:
        begin: The study as the search began.
    """

    def __init__(self, begin: Snapshot) -> None:
        """Keep the failures and the number of evaluations from before."""
        self._before = {view.id for view in begin.proposals if _is_failure(view)}
        self._failed: dict[str, ProposalView] = {}
        self._evaluated = self._last = _count_evaluated(begin)
        left = begin.study.budget - self._evaluated
        self._limit = min(max(left, FAILURES_IN_A_ROW), FAILURES)
        # Number of failures of this search when an evaluation was last new.
        self._excused = 0

    def check(self, snapshot: Snapshot) -> None:
        """Raise where proposals keep failing.

        Args:
            snapshot: The next snapshot of the follower: none may be left out.

        Raises:
            SearchError: Since the search began, at least `FAILURES` proposals failed, more than
                were evaluated, or so many in a row that the limit for the rest of the budget is
                reached; the message gives the last reason.
        """
        for view in snapshot.news:
            if _is_failure(view) and view.id not in self._before:
                self._failed[view.id] = view
            else:
                self._failed.pop(view.id, None)

        failed = self._failed.values()
        if (evaluated := _count_evaluated(snapshot)) != self._last:
            self._last = evaluated
            self._excused = len(failed)

        new = evaluated - self._evaluated
        in_a_row = self._limit < FAILURES and len(failed) - self._excused >= self._limit
        if len(failed) > new and (in_a_row or len(failed) >= FAILURES):
            raise SearchError(
                f"{len(failed)} proposals of the study {snapshot.study.name!r} failed and "
                f"{new or 'none'} {'was' if new < 2 else 'were'} evaluated since the search began; "
                f"the last reason: {max(failed, key=lambda view: view.number).reason}"
            )


def _is_failure(view: ProposalView) -> bool:
    # Cancelled proposals are no sign of a fault.
    return view.state is State.FAILED and not view.cancelled


def _count_evaluated(snapshot: Snapshot) -> int:
    return snapshot.counts[State.COMPLETE] + snapshot.counts[State.PRUNED]
