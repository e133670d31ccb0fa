"""The daemon's end of the archive: claims come in, and what became of them goes out, many in one transaction.

    claim(n) <── proposals that wait            one transaction, whatever n is
    say(…) ──> flush() ──> archive              everything said since the last time in one transaction
         └──> outbox                            a trial's end is on the disk before it is sent

The archive may be away for minutes. Reports are then left out, for the next one has the whole curve; how trials ended,
and what was handed back, waits in the outbox. A lease that runs out before costs its proposal an attempt; what is
handed back late does not, and means nothing any more if another worker has the proposal. A server that rejects whatever
is written is as good as away; an ending that is rejected while others are taken is set aside in the end.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from archive.errors import ArchiveError, QueryError, StoreError, UsageError
from archive.queue import workers
from archive.queue.updates import Answer, Completion, Failure, Notice, Report
from archive.store.records import Claim
from archive.trainer.daemon import events
from archive.trainer.daemon.options import Options
from archive.trainer.daemon.result_spool import Ending, Outbox

if TYPE_CHECKING:
    from archive.api import Archive

T = TypeVar("T")
Key = tuple[str, str]
"""Id and token of a claim."""
log = logging.getLogger("archive.trainer")

BATCH = 128
"""Proposals of a study on a table that are claimed at a time: on the embedded server, with eight workers, 64 instead of
32 were a quarter faster, and 128 an eighth more."""
BACKOFF_SECONDS = 2.0
"""Pause after the archive was away, before it is asked again."""
FIRST_PAUSE = 0.01
"""Pause after the queue was first found empty; each further look doubles it, up to `Options.poll_seconds`."""
ADOPT_SECONDS = 5.0
"""Age at which what another daemon left in the outbox is taken over: while it lives, it delivers much sooner."""
REST_SECONDS = 0.25
"""Pause after a trial failed through no fault of its own; each one that follows doubles it, up to `LONGEST_REST`."""
LONGEST_REST = 60.0
MOST_REFUSALS = 5
"""A single ending that the server rejects so often, while it takes what else is written, is set aside."""


class Queue:
    """Asks the archive for work and tells it what became of it; never raises because the archive is away.

    Args:
        archive: Where proposals come from and results go.
        worker: Who asks.
        options: How the daemon works.
        outbox: Where ends of trials wait until they are delivered.
        emit: Is told of deliveries and outages.

    Attributes:
        contact: When the archive last answered, in seconds since 1970.
    """

    def __init__(self, archive: Archive, worker: str, options: Options, outbox: Outbox, emit: events.Observer) -> None:
        self.contact = time.time()
        self._archive, self._worker, self._options = archive, worker, options
        self._outbox, self._emit = outbox, emit
        self._said: dict[Key, Notice] = {}
        self._refusals: dict[Key, int] = {}
        self._pauses: dict[Key, float] = {}
        self._away_since: float | None = None
        self._away_until = self._look_at = self._beat_at = 0.0
        self._empty_since: float | None = None
        self._pause = FIRST_PAUSE

    @property
    def empty_since(self) -> float | None:
        """When nothing was found to wait, or the archive went away, by `time.monotonic`; None after a claim."""
        return self._empty_since if self._away_since is None else self._away_since

    @property
    def away(self) -> bool:
        """Whether the archive did not answer a moment ago, and is left alone for another."""
        return time.monotonic() < self._away_until

    @property
    def idle_until(self) -> float:
        """When there is something to do here, by `time.monotonic`: the next look for work, or for the archive."""
        return max(self._look_at, self._away_until)

    def arrive(self, device: str) -> None:
        """Store that this worker begins.

        Raises:
            StoreError: The archive cannot be told.
        """
        host, pid, options = platform.node(), os.getpid(), self._options
        workers.arrive(
            self._archive.connection,
            self._worker,
            host=host,
            pid=pid,
            device=device,
            slots=options.slots,
            study=options.study,
        )

    def depart(self) -> None:
        """Store that this worker has left: one that falls silent without it counts as stale."""
        # An archive that is away learns of it by the silence.
        if not self.away:
            with suppress(StoreError):
                workers.leave(self._archive.connection, self._worker)

    def claim(self, most: int, study: str | None = None) -> list[Claim]:
        """Return at most so many proposals, none when nothing waits, or it is too early to look again.

        Args:
            most: How many.
            study: Of this study, which is answered at once; None goes by the daemon's options.
        """
        if most < 1 or self.away or time.monotonic() < self._look_at:
            return []
        seconds = self._options.lease_seconds
        wanted = study or self._options.study
        try:
            claims = self._ask(
                lambda: self._archive.proposals.claim_many(
                    self._worker, most, study=wanted, lease_seconds=seconds, whole=study is not None
                )
            )
        except ArchiveError as error:
            # A network of a space that is not installed here; its lease runs out, for a worker that has it.
            log.error("cannot read what was claimed reason=%r", str(error))
            self._away_until = time.monotonic() + BACKOFF_SECONDS
            return []
        if claims:
            self._pause, self._look_at, self._empty_since = FIRST_PAUSE, 0.0, None
        elif claims is not None:
            if study is None:
                self._empty_since = self._empty_since or time.monotonic()
            # A free slot beside a busy one would otherwise look for work after each of the other's epochs.
            self._pause = min(2 * self._pause, self._options.poll_seconds)
            self._look_at = time.monotonic() + self._pause
        return claims or []

    def rest(self, failures: int) -> None:
        """Look for no work for a while: so many trials in a row could not be done here, and others may do better."""
        self._look_at = time.monotonic() + min(REST_SECONDS * 2.0 ** min(failures - 1, 30), LONGEST_REST)

    def say(self, notice: Notice, *, keep: bool = True) -> None:
        """Note what is to be told; it takes the place of what was said of the same claim and not told yet.

        Args:
            notice: What to tell.
            keep: Whether the end of a trial goes to the disk at once; else only if the archive is away.
        """
        if keep and isinstance(notice, Completion | Failure):
            self._outbox.put(notice)
        if isinstance(notice, Ending):
            self._pauses.pop(_key(notice), None)  # that of a report
        self._said[_key(notice)] = notice

    def flush(self) -> list[Key]:
        """Tell the archive all that was said, and return the claims that have lost their lease."""
        now = time.monotonic()
        self._said |= {_key(ending): ending for ending in self._outbox.waiting}
        self._pauses = {key: until for key, until in self._pauses.items() if until > now}
        told = [notice for key, notice in self._said.items() if key not in self._pauses]
        if not told or self.away:
            return self._keep()
        try:
            answers = self._ask(lambda: self._archive.proposals.settle(told), rejected=True)
        except (QueryError, UsageError):
            return self._flush_singly(told)
        return self._keep() if answers is None else self._take(told, answers)

    def beat(self) -> None:
        """Be heard of, and look for what others left in the outbox, every now and then."""
        now = time.monotonic()
        if now - self._beat_at > self._options.lease_seconds / 2 and not self.away:
            self._beat_at = now
            self._is_heard()
            self._outbox.adopt(ADOPT_SECONDS)

    def _is_heard(self) -> bool:
        """Write that this worker lives, and return whether the server took it."""

        def write() -> bool:
            self._archive.proposals.worker_heartbeat(self._worker)
            return True

        return self._ask(write) is not None

    def _take(self, told: Iterable[Notice], answers: Iterable[Answer]) -> list[Key]:
        """Go through the answers of the archive."""
        lost = []
        for notice, answer in zip(told, answers, strict=True):
            del self._said[_key(notice)]
            self._refusals.pop(_key(notice), None)
            if isinstance(notice, Report):
                if isinstance(answer, ArchiveError):
                    log.warning("given up proposal=%s reason=%r", notice.id, str(answer))
                    lost.append(_key(notice))
            elif isinstance(answer, ArchiveError):
                self._refused(notice, answer)
            else:
                self._delivered(notice, answer)
        return lost

    def _delivered(self, notice: Notice, first: bool) -> None:
        if isinstance(notice, Completion):
            log.info("complete proposal=%s value=%.6g first=%s", notice.id, notice.result.value, first)
        if isinstance(notice, Ending):
            self._outbox.forget(notice)
        if isinstance(notice, Completion | Failure):
            self._emit(events.Delivered(notice.id, first))

    def _refused(self, notice: Notice, error: ArchiveError) -> None:
        if isinstance(notice, Completion):
            log.error("result refused proposal=%s reason=%r", notice.id, str(error))
            self._outbox.put(notice)
            self._outbox.set_aside(notice)
            self._emit(events.Refused(notice.id, str(error)))
        else:
            log.info("not ours any more proposal=%s reason=%r", notice.id, str(error))
            if isinstance(notice, Ending):
                self._outbox.forget(notice)

    def _flush_singly(self, told: list[Notice]) -> list[Key]:
        """Find the notices that the server cannot store among those that it can."""
        lost: list[Key] = []
        writes = False
        for notice in told:
            try:
                answers = self._ask(partial(self._archive.proposals.settle, [notice]), rejected=True)
            except UsageError as error:
                self._rejected(notice, error)
                continue
            except QueryError as error:
                # It may be no fault of the notice: a server can be made read-only, or another one's replica.
                writes = writes or self._is_heard()
                if not writes:
                    break
                self._rejected(notice, error)
                continue
            if answers is None:
                break
            writes = True
            lost += self._take([notice], answers)
        self._keep()
        return lost

    def _rejected(self, notice: Notice, error: QueryError | UsageError) -> None:
        """Leave alone for a while what is rejected by a server that takes other writes; an ending, not for ever."""
        key = _key(notice)
        if isinstance(notice, Report):
            # What is wrong with the curve says nothing of the lease, and the next report may pass.
            log.warning("report rejected proposal=%s reason=%r", notice.id, str(error))
        else:
            self._refusals[key] = self._refusals.get(key, 0) + 1
            if isinstance(error, UsageError) or self._refusals[key] >= MOST_REFUSALS:
                self._take([notice], [error])
                return
        self._pauses[key] = time.monotonic() + BACKOFF_SECONDS

    def _keep(self) -> list[Key]:
        """Save for later what the archive was not told; reports are not worth it."""
        for notice in self._said.values():
            if isinstance(notice, Ending):
                self._outbox.put(notice)
        self._said.clear()
        return []

    def _ask(self, call: Callable[[], T], *, rejected: bool = False) -> T | None:
        """Ask the archive; None, and a pause before it is asked again, when it cannot answer.

        Raises:
            QueryError: The server rejects what it was asked, if the caller wants to know of it.
            ArchiveError: Whatever is no fault of the server.
        """
        try:
            answer = call()
        except StoreError as error:
            if rejected and isinstance(error, QueryError):
                raise
            self._went_away(error)
            return None
        self.contact = time.time()
        if self._away_since is not None:
            seconds, self._away_since = time.monotonic() - self._away_since, None
            log.info("archive is back seconds=%.1f", seconds)
            self._emit(events.Back(seconds))
        return answer

    def _went_away(self, error: StoreError) -> None:
        log.warning("archive is away, will ask again: %s", error)
        self._away_until = time.monotonic() + BACKOFF_SECONDS
        if self._away_since is None:
            self._away_since = time.monotonic()
            self._emit(events.Away(str(error)))


def _key(notice: Notice) -> Key:
    return notice.id, notice.token
