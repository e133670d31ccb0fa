"""Claimer: reads the head of the queue, and claims proposals from it.

    look ──> empty: nothing more                                   one read, which locks nothing
      ├──> expired leases ──> end them ──> look                    a write, now and then
      └──> waiting ──> take a share ──> taken meanwhile ──> look   one write

A worker that claims one proposal after the other looks twice a second: it keeps the rest of the
queue's head, and its next claims are one write each. So a change of the order by another process, a
promotion for example, takes effect within half a second; a change by this process takes effect at
once (`Claimer.forget`).

Each claim, and most looks, are one statement. Searching the running proposals for expired leases
takes time in proportion to their number. It is enough that one worker of a fleet searches, so the
interval between the searches of a caller grows with the number of workers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from archive.queue import claims
from archive.queue.claims import ClaimRequest, QueueView, Taken
from archive.store.records import Claim, Study
from archive.store.studies import studies

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection
    from archive.store.architectures import Architectures

SEARCH_SECONDS = 1.0
"""Minimum interval between two searches of a caller that takes the whole head, and polls often."""
SEARCH_SECONDS_A_WORKER = 0.25
FEW_WORKERS = 3
"""Number of other workers up to which every look searches for expired leases."""
UNMARKED_SECONDS = 10.0
"""Minimum interval between two looks for proposals that another program has put back without
marking them open."""
HEAD_SECONDS = 0.5
"""Time for which a caller claims from the rest of a head, one proposal after the other, without a
look."""

Caller = tuple[str, str | None]


@dataclass(frozen=True)
class _Head:
    """Head of the queue that a caller claims from.

    Attributes:
        queue: The head.
        parameters: Parameters of the look.
        until: Time of the monotonic clock until which it may be kept.
    """

    queue: QueueView
    parameters: Mapping[str, Any]
    until: float


class Claimer:
    """Claims for any number of workers. Safe to share between threads.

    Args:
        connection: Connection to the archive.
        architectures: Reader of networks.
    """

    def __init__(self, connection: Connection, architectures: Architectures) -> None:
        """Keep the connection."""
        self._connection = connection
        self._architectures = architectures
        self._studies: dict[str, Study] = {}
        # time of the last search, and other workers at that time
        self._searches: dict[Caller, tuple[float, int]] = {}
        self._unmarked: dict[Caller, float] = {}  # time of the last look for unmarked proposals
        self._heads: dict[Caller, _Head] = {}

    def claim(self, request: ClaimRequest) -> list[Claim]:
        """Claim what a request asks for, by number; none when the queue is empty."""
        if request.again and (
            held := self._connection.write(partial(claims.held, request=request))
        ):
            return self._complete(request, held)

        for collisions in range(claims.TRIES):
            head = self._kept(request) or self._new_head(request)
            if not head.queue.waiting:
                return []

            if taken := self._take(request, head, collisions):
                return self._complete(request, taken)

        return []

    def forget(self) -> None:
        """Look at the queue before the next claim, because its order has changed."""
        self._heads.clear()

    def _kept(self, request: ClaimRequest) -> _Head | None:
        """Return the rest of the last head, if it is recent and suits the request."""
        head = self._heads.get(_caller(request))
        if head is None or request.count > 1 or head.until <= time.monotonic():
            return None

        return (
            head
            if head.queue.waiting and head.parameters == request.claim_filter.parameters()
            else None
        )

    def _new_head(self, request: ClaimRequest) -> _Head:
        until = time.monotonic() + HEAD_SECONDS
        queue = self._look(request)
        return _Head(queue, request.claim_filter.parameters(), until)

    def _look(self, request: ClaimRequest) -> QueueView:
        """Return the queue, after the end of the expired leases."""
        caller = _caller(request)
        searched, others = self._searches.get(caller, (-math.inf, 0))
        search = time.monotonic() - searched >= _pause(request, others)
        queue = self._read(request, others, search)
        if search and not (request.whole and queue.waiting):
            self._searches[caller] = time.monotonic(), queue.others

        if queue.expired:
            expire = partial(claims.expire, ids=queue.expired, limit=request.limit)
            if self._connection.write(expire):
                return self._read(request, queue.others, False)

        return queue

    def _read(self, request: ClaimRequest, others: int, search: bool) -> QueueView:
        caller = _caller(request)
        now = time.monotonic()
        unmarked = search and now - self._unmarked.get(caller, -math.inf) >= UNMARKED_SECONDS
        look = partial(
            claims.look, request=request, others=others, search=search, unmarked=unmarked
        )
        # A search has several statements.
        queue = self._connection.read(look, single=not search)
        if unmarked and not queue:
            self._unmarked[caller] = now

        return queue

    def _take(self, request: ClaimRequest, head: _Head, collisions: int) -> list[Taken]:
        runs = count()
        ids = list[str]()

        def work(tx: ManagedTransaction) -> list[Taken]:
            # A second run may mean that the first one was committed and only its acknowledgement
            # was lost.
            run = next(runs)
            ids[:] = claims.candidates(head.queue, request, collisions + run)
            return claims.take(tx, request, ids, again=run > 0)

        # Proposals at the head of the queue share pages of ArcadeDB, and two in five simultaneous
        # claims had to run again. With eight workers, claims in one lane gave 145 life cycles a
        # second instead of 125.
        taken = self._connection.write(work, single=True, lane="claims")
        if request.count == 1:
            self._keep(request, head, ids, taken)

        return taken

    def _keep(
        self, request: ClaimRequest, head: _Head, ids: Sequence[str], taken: Sequence[Taken]
    ) -> None:
        """Keep the rest of a head after a claim.

        Candidates before the claimed one wait no longer.
        """
        caller = _caller(request)
        last = taken[0].proposal.id if taken else None
        if last in ids:
            self._heads[caller] = replace(
                head, queue=head.queue.without(ids[: ids.index(last) + 1])
            )
        else:
            self._heads.pop(caller, None)

    def _complete(self, request: ClaimRequest, taken: Sequence[Taken]) -> list[Claim]:
        """Return claims with their networks and studies."""
        self._architectures.remember(
            entry.network for entry in taken if entry.network and entry.network[0]
        )
        # Proposals with unreadable networks are left out; their leases expire.
        networks = self._architectures.get_readable(
            entry.proposal.architecture_key for entry in taken
        )
        granted = []
        for entry in taken:
            proposal = entry.proposal
            network = networks.get(proposal.architecture_key)
            if network is not None:
                study = self._study(proposal.study, entry.study_created)
                granted.append(Claim(proposal, network, study, request.token))

        return granted

    def _study(self, name: str, created: int | None) -> Study:
        # A study never changes except for its budget, which workers do not need. A later time of
        # creation means another study of the same name, in an archive that was emptied or replaced.
        study = self._studies.get(name)
        if study is None or study.created != created:
            study = self._studies[name] = studies.read(self._connection, name)

        return study


def _caller(request: ClaimRequest) -> Caller:
    return request.worker, request.study


def _pause(request: ClaimRequest, others: int) -> float:
    """Return the seconds between two searches for expired leases."""
    pause = SEARCH_SECONDS_A_WORKER * others if others > FEW_WORKERS else 0.0
    return max(pause, SEARCH_SECONDS) if request.whole else pause
