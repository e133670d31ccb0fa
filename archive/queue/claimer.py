"""Claimer: looks at the queue, and claims from it.

    look ──> empty: nothing more                                   one read, which locks nothing
      ├──> expired leases ──> end them ──> look                    a write, now and then
      └──> waiting ──> take a share ──> taken meanwhile ──> look   one write

Each claim, and most looks, are one statement. Searching the running proposals for expired leases costs time in
proportion to their number, and one worker of a fleet has to do it: a caller searches less often, the more workers there
are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from archive.database.write_lock import LONG
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
"""Number of other workers beside which every look searches."""

Caller = tuple[str, str | None]


class Claimer:
    """Claims for any number of workers. Safe to share between threads.

    Args:
        connection: Connection to the archive.
        architectures: Reader of networks.
    """

    def __init__(self, connection: Connection, architectures: Architectures) -> None:
        """Keep the connection."""
        self._connection, self._architectures = connection, architectures
        self._studies: dict[str, Study] = {}
        self._searches: dict[Caller, tuple[float, int]] = {}  # time of the last search, and other workers at that time

    def claim(self, request: ClaimRequest) -> list[Claim]:
        """Claim what a request asks for, by number; none when the queue is empty."""
        if request.again and (held := self._connection.write(partial(claims.held, request=request))):
            return self._complete(request, held)
        for collisions in range(claims.TRIES):
            queue = self._look(request)
            if not queue.waiting:
                return []
            if taken := self._take(request, queue, collisions):
                return self._complete(request, taken)
        return []

    def _look(self, request: ClaimRequest) -> QueueView:
        """Return the queue, after the end of the expired leases."""
        caller = (request.worker, request.study)
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
        look = partial(claims.look, request=request, others=others, search=search)
        # A search has several statements.
        return self._connection.read(look, single=not search)

    def _take(self, request: ClaimRequest, queue: QueueView, collisions: int) -> list[Taken]:
        runs = count()

        def work(tx: ManagedTransaction) -> list[Taken]:
            # A second run may mean that the first one was committed and only its acknowledgement was lost.
            run = next(runs)
            return claims.take(tx, request, queue, again=run > 0, collisions=collisions + run)

        # Batch claims collide, because all of them take the head of the queue.
        return self._connection.write(work, single=True, lane="claims" if request.count > LONG else None)

    def _complete(self, request: ClaimRequest, taken: Sequence[Taken]) -> list[Claim]:
        """Return claims with their networks and studies."""
        self._architectures.remember(one.network for one in taken if one.network and one.network[0])
        # Proposals with unreadable networks are left out; their leases expire.
        networks = self._architectures.get_readable(one.proposal.architecture_key for one in taken)
        return [
            Claim(one.proposal, network, self._study(one.proposal.study, one.study_created), request.token)
            for one in taken
            if (network := networks.get(one.proposal.architecture_key)) is not None
        ]

    def _study(self, name: str, created: int | None) -> Study:
        # A study never changes except for its budget, which workers do not need. A later time of creation means another
        # study of the same name, in an archive that was emptied or replaced.
        study = self._studies.get(name)
        if study is None or study.created != created:
            study = self._studies[name] = studies.read(self._connection, name)
        return study


def _pause(request: ClaimRequest, others: int) -> float:
    """Return the seconds between two searches for expired leases."""
    pause = SEARCH_SECONDS_A_WORKER * others if others > FEW_WORKERS else 0.0
    return max(pause, SEARCH_SECONDS) if request.whole else pause
