"""The loop of a search: it owns every effect, so that `Agent.propose` can be a pure function.

It lets the agent propose (`archive.agents.searcher`), keeps the pairwise distances of what has been evaluated, and
waits. All that it cannot do without is in the archive: killed at any moment and started again, it goes on; two loops on
one study share its budget, which the archive enforces.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from archive.agents import provenance
from archive.agents.base import Agent, History
from archive.agents.distance_sync import DistanceSync
from archive.agents.searcher import Searcher
from archive.errors import SearchError
from archive.kernels.stored import worth_keeping
from archive.store.records import State

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot

PAUSE = 0.2
"""Seconds between two looks at the archive: far below the time of a training, and five looks a second at most."""

LATE = 8
"""Shorter pauses grow up to that while nothing changes: what happens is seen late by an eighth of the wait at most."""

FAILURES = 20
"""A study in which this many proposals failed, and more than were evaluated, has a fault of its own."""


def run(
    archive: Archive,
    study: Study,
    agent: Agent,
    *,
    version: str,
    batch: int = 1,
    retrain: bool = False,
    pause: float = PAUSE,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[Snapshot]:
    """Search until the budget of the study is spent, or the agent has no proposal although nothing is under way.

    Args:
        archive: Where everything is kept.
        study: The study, already in the archive.
        agent: Who proposes.
        version: Of the software, recorded with the agent.
        batch: How many proposals are kept open at a time.
        retrain: Train networks too whose result under the study's protocol the archive has; see `archive.queue.reuse`.
        pause: Seconds between two looks at the archive; shorter ones than `PAUSE` grow while nothing changes.
        wait: Stands in for `time.sleep`.

    Yields:
        What the archive holds of the study, after every look. Before the last one, all pairwise distances between
        the study's evaluated architectures have been stored.

    Raises:
        SearchError: Proposals keep failing; the message gives the last reason.
    """
    agent_id = archive.proposals.register_agent(agent.kind, agent.config, version)
    keeper, searcher = DistanceSync(archive, agent.grams), Searcher(archive)
    look, measured = archive.studies.follow(study.name), 0
    # How much was known when the agent last had no proposal: it may have one again once more is.
    exhausted: tuple[int, int] | None = None
    # What was seen last, and how long it has been so.
    before: Mapping[State, int] = {}
    idle = 0.0
    while True:
        snapshot = look()
        # The budget is the archive's: another search may have set it anew in the meantime.
        study, counts = snapshot.study, snapshot.counts
        before, idle = counts, idle if counts == before else 0.0
        evaluated = counts[State.COMPLETE] + counts[State.PRUNED]
        waiting = counts[State.WAITING] + counts[State.RUNNING]
        if evaluated > measured and worth_keeping(study.space):
            own = [proposal.architecture_key for proposal in snapshot.proposals if proposal.state.evaluated]
            keeper.keep(archive.architectures.get_many(own))
            measured = evaluated
        yield snapshot
        known = evaluated, counts[State.FAILED]
        if not waiting and (evaluated >= study.budget or exhausted == known):
            return
        check_failures(snapshot)
        wanted = min(batch - waiting, study.budget - evaluated - waiting)
        proposed = None
        if wanted > 0 and exhausted != known:
            proposed = searcher.propose(study, agent, agent_id, wanted, retrain=retrain, keeper=keeper)
            exhausted = None if proposed.made or proposed.lost else known
        if proposed is None or not proposed.made:
            # Nothing to propose, or another loop was faster: there is nothing to see for a moment either.
            seconds = max(pause, min(idle / LATE, PAUSE))
            wait(seconds)
            idle += seconds


def history_of(archive: Archive, study: Study) -> History:
    """Read what an agent may learn from: evaluations of the study and of its sources, what is open, what failed."""
    return provenance.history_of(archive, study)[0]


def check_failures(snapshot: Snapshot) -> None:
    """Give up a study that has a fault of its own.

    Raises:
        SearchError: More proposals failed than were evaluated, and not only a few; the message gives the last reason.
    """
    failed = [proposal for proposal in snapshot.proposals if proposal.state is State.FAILED]
    evaluated = snapshot.counts[State.COMPLETE] + snapshot.counts[State.PRUNED]
    if len(failed) >= FAILURES and len(failed) > evaluated:
        raise SearchError(
            f"{len(failed)} proposals of the study {snapshot.study.name!r} failed and only {evaluated} were evaluated; "
            f"the last reason: {failed[-1].reason}"
        )
