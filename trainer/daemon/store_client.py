"""The daemon's client of the store: claims proposals and delivers notices, many in one transaction.

    claim(n)                    one transaction, whatever n is
    enqueue(…) ──> flush()      all pending notices in one transaction
         └──> result spool      a trial's end is on disk before it is sent

An outage of the store may last minutes. Reports are then dropped, since the next one has the whole curve; results,
failures and releases wait in the spool. A lease that expires meanwhile costs its proposal an attempt. A late release
does not, and has no effect if another worker has the proposal. A server that rejects every write counts as
unreachable; a notice that is rejected while others are accepted is quarantined after `MOST_REJECTIONS`.
"""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from archive.errors import ArchiveError, QueryError, StoreError, UsageError
from archive.queue import workers
from archive.queue.capabilities import Capabilities, ClaimFilter
from archive.queue.updates import Answer, Completion, Failure, Notice, Report
from archive.store.records import Claim
from archive.trainer.daemon import events, store_link
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.result_spool import ResultSpool, TerminalNotice

if TYPE_CHECKING:
    from archive.api import Archive

Key = tuple[str, str]
"""Id and token of a claim."""
log = logging.getLogger("archive.trainer")

BATCH = 128
"""Proposals of a tabular study that are claimed at a time. On the embedded server, with eight workers, 64 instead of 32
were a quarter faster, and 128 an eighth more."""
FIRST_PAUSE = 0.01
"""Pause after the queue was first found empty; each further look doubles it, up to `TrainerOptions.poll_seconds`."""
ADOPT_SECONDS = 5.0
"""Age at which spooled results without an owner are adopted; those of a living daemon never are."""
REST_SECONDS = 0.25
"""Pause after a trial failed through no fault of its own; each further failure doubles it, up to `LONGEST_REST`."""
LONGEST_REST = 60.0
MOST_REJECTIONS = 5
"""Rejections after which a notice is quarantined, while the server accepts other writes."""


class StoreClient:
    """Claims proposals and delivers notices; an outage of the store never raises.

    Args:
        archive: The store.
        worker: Id of this daemon's worker record.
        options: How the daemon works.
        spool: Where results, failures and releases wait until they are delivered.
        emit: Receives deliveries and outages.
    """

    def __init__(
        self, archive: Archive, worker: str, options: TrainerOptions, spool: ResultSpool, emit: events.Observer
    ) -> None:
        self._archive, self._worker, self._options = archive, worker, options
        self._spool, self._emit = spool, emit
        self._link = store_link.StoreLink(emit)
        self._pending: dict[Key, Notice] = {}
        self._rejections: dict[Key, int] = {}
        self._paused_until: dict[Key, float] = {}
        self._claim_at = self._heartbeat_at = 0.0
        self._empty_since: float | None = None
        self._pause = FIRST_PAUSE
        self._fit = ClaimFilter()

    @property
    def contact(self) -> float:
        """Time of the store's last answer, in seconds since 1970."""
        return self._link.contact

    @property
    def empty_since(self) -> float | None:
        """When the queue was found empty, or the outage began, by `time.monotonic`; None after a claim."""
        return self._empty_since if self._link.outage_since is None else self._link.outage_since

    @property
    def unreachable(self) -> bool:
        """Whether a call to the store failed a moment ago, so that none is made now."""
        return self._link.unreachable

    @property
    def idle_until(self) -> float:
        """Time of the next claim or the next call to an unreachable store, by `time.monotonic`."""
        return max(self._claim_at, self._link.retry_at)

    def arrive(self, able: Capabilities, **properties: str | int | list[str] | None) -> None:
        """Register this worker; from now on it claims what it can run.

        Raises:
            StoreError: The store cannot be written.
        """
        self._fit = ClaimFilter(able)
        lists = {name: list(getattr(able, name) or ()) for name in ("tasks", "spaces", "recipes")}
        own = {"host": platform.node(), "pid": os.getpid(), "study": self._options.study}
        about: dict[str, Any] = {**own, **lists, "memory_bytes": able.memory_bytes, **properties}
        workers.arrive(self._archive.connection, self._worker, **about)

    def depart(self) -> None:
        """Record that this worker has stopped; without that, a silent worker counts as stale."""
        # An unreachable store infers it from the silence.
        if not self.unreachable:
            with suppress(StoreError):
                workers.leave(self._archive.connection, self._worker)

    def claim(
        self, most: int, study: str | None = None, *, memory_bytes: int | None = None, alone_bytes: int | None = None
    ) -> list[Claim]:
        """Claim proposals that this worker can run; none if there are none or it is too early for another look.

        Args:
            most: Largest number of claims.
            study: Claim from this study, whose results come at once; None follows the daemon's options.
            memory_bytes: Memory of the largest device with a free slot; None sets no limit.
            alone_bytes: Memory of the largest device without any trial; -1 without one, None sets no limit.
        """
        if most < 1 or self.unreachable or time.monotonic() < self._claim_at:
            return []
        seconds = self._options.lease_seconds
        served = study or self._options.study
        self._fit.memory_bytes, self._fit.alone_bytes = memory_bytes, alone_bytes
        try:
            claims = self._link.call(
                lambda: self._archive.proposals.claim_many(
                    *(self._worker, most),
                    study=served,
                    lease_seconds=seconds,
                    whole=study is not None,
                    fit=self._fit,
                )
            )
        except ArchiveError as error:
            # A network of a space that is not installed here: the lease expires, for a worker that has the space.
            log.error("cannot read claimed proposals reason=%r", str(error))
            self._link.pause()
            return []
        if claims:
            self._pause, self._claim_at, self._empty_since = FIRST_PAUSE, 0.0, None
        elif claims is not None:
            if study is None:
                self._empty_since = self._empty_since or time.monotonic()
            # A free slot beside a busy one would otherwise look for work after each of the other's epochs.
            self._pause = min(2 * self._pause, self._options.poll_seconds)
            self._claim_at = time.monotonic() + self._pause
        return claims or []

    def back_off(self, failures: int, reason: str) -> None:
        """Claim nothing for a while after consecutive failures that another worker might not have.

        Args:
            failures: Number of failures in a row.
            reason: Reason of the last one, which the worker's record shows meanwhile.
        """
        seconds = min(REST_SECONDS * 2.0 ** min(failures - 1, 30), LONGEST_REST)
        self._claim_at = time.monotonic() + seconds
        log.warning("resting seconds=%g failures=%d", seconds, failures)
        if not self.unreachable:
            self._link.call(lambda: workers.rest(self._archive.connection, self._worker, seconds, reason))

    def enqueue(self, notice: Notice, *, keep: bool = True) -> None:
        """Add a notice to the next flush; it replaces a pending one of the same claim.

        Args:
            notice: The notice.
            keep: Whether a trial's end is written to the spool at once; else only if the store is unreachable.
        """
        if keep and isinstance(notice, Completion | Failure):
            self._spool.put(notice)
        if isinstance(notice, TerminalNotice):
            self._paused_until.pop(_key(notice), None)  # that of a report
        self._pending[_key(notice)] = notice

    def flush(self) -> list[Key]:
        """Deliver all pending notices, and return the claims that have lost their lease."""
        now = time.monotonic()
        self._pending |= {_key(notice): notice for notice in self._spool.waiting}
        self._paused_until = {key: until for key, until in self._paused_until.items() if until > now}
        notices = [notice for key, notice in self._pending.items() if key not in self._paused_until]
        if not notices or self.unreachable:
            return self._spool_pending()
        try:
            answers = self._link.call(lambda: self._archive.proposals.settle(notices), raise_rejections=True)
        except (QueryError, UsageError):
            return self._flush_singly(notices)
        return self._spool_pending() if answers is None else self._process(notices, answers)

    def heartbeat(self) -> None:
        """Record every now and then that this worker lives, and adopt the spooled results of dead daemons."""
        now = time.monotonic()
        if now - self._heartbeat_at > self._options.lease_seconds / 2 and not self.unreachable:
            self._heartbeat_at = now
            self._write_heartbeat()
            self._spool.adopt(ADOPT_SECONDS)

    def _write_heartbeat(self) -> bool:
        """Record that this worker lives, and return whether the server accepted the write."""

        def write() -> bool:
            self._archive.proposals.worker_heartbeat(self._worker)
            return True

        return self._link.call(write) is not None

    def _process(self, notices: Iterable[Notice], answers: Iterable[Answer]) -> list[Key]:
        """Handle the store's answers to notices, and return the claims that have lost their lease."""
        lost = []
        for notice, answer in zip(notices, answers, strict=True):
            del self._pending[_key(notice)]
            self._rejections.pop(_key(notice), None)
            if isinstance(notice, Report):
                if isinstance(answer, ArchiveError):
                    log.warning("lease lost proposal=%s reason=%r", notice.id, str(answer))
                    lost.append(_key(notice))
            elif isinstance(answer, ArchiveError):
                self._refused(notice, answer)
            else:
                self._delivered(notice, answer)
        return lost

    def _delivered(self, notice: Notice, first: bool) -> None:
        if isinstance(notice, Completion):
            log.info("complete proposal=%s value=%.6g first=%s", notice.id, notice.result.value, first)
        if isinstance(notice, TerminalNotice):
            self._spool.discard(notice)
        if isinstance(notice, Completion | Failure):
            self._emit(events.ResultDelivered(notice.id, first))

    def _refused(self, notice: Notice, error: ArchiveError) -> None:
        if isinstance(notice, Completion):
            log.error("result refused proposal=%s reason=%r", notice.id, str(error))
            self._spool.put(notice)
            self._spool.quarantine(notice)
            self._emit(events.ResultRefused(notice.id, str(error)))
        else:
            log.info("lease already lost proposal=%s reason=%r", notice.id, str(error))
            if isinstance(notice, TerminalNotice):
                self._spool.discard(notice)

    def _flush_singly(self, notices: list[Notice]) -> list[Key]:
        """Deliver each notice in a transaction of its own, to isolate those that the server cannot store."""
        lost: list[Key] = []
        writable = False
        for notice in notices:
            try:
                answers = self._link.call(partial(self._archive.proposals.settle, [notice]), raise_rejections=True)
            except UsageError as error:
                self._rejected(notice, error)
                continue
            except QueryError as error:
                # The notice need not be the cause: a server can be read-only, or a replica of another one.
                writable = writable or self._write_heartbeat()
                if not writable:
                    break
                self._rejected(notice, error)
                continue
            if answers is None:
                break
            writable = True
            lost += self._process([notice], answers)
        self._spool_pending()
        return lost

    def _rejected(self, notice: Notice, error: QueryError | UsageError) -> None:
        """Pause a notice that is rejected by a server that accepts other writes; at last, give a terminal one up."""
        key = _key(notice)
        if isinstance(notice, Report):
            # A fault of the curve says nothing about the lease, and the next report may pass.
            log.warning("report rejected proposal=%s reason=%r", notice.id, str(error))
        else:
            self._rejections[key] = self._rejections.get(key, 0) + 1
            if isinstance(error, UsageError) or self._rejections[key] >= MOST_REJECTIONS:
                self._process([notice], [error])
                return
        self._paused_until[key] = time.monotonic() + store_link.BACKOFF_SECONDS

    def _spool_pending(self) -> list[Key]:
        """Put undelivered results, failures and releases into the spool; reports are dropped."""
        for notice in self._pending.values():
            if isinstance(notice, TerminalNotice):
                self._spool.put(notice)
        self._pending.clear()
        return []


def _key(notice: Notice) -> Key:
    return notice.id, notice.token
