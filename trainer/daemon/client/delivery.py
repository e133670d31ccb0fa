"""Delivery of notices: each flush sends all waiting reports and results in one transaction.

    enqueue(…) ──> flush() ──> settled    a report, or a result, replaces a claim's pending report
         └──> result spool                a trial's end is on disk before it is sent

A report sends the entries of the curve that no stored report of the claim had.

An outage of the store may last minutes. Results, failures and releases then wait in the spool. A
server that rejects every write counts as unreachable; a notice that is rejected while others are
accepted is quarantined after `MOST_REJECTIONS`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from archive.errors import ArchiveError, QueryError, UsageError
from archive.queue.causes import Cause
from archive.queue.updates import Answer, Completion, Failure, Notice, Report
from archive.trainer.daemon import events
from archive.trainer.daemon.client import store_link
from archive.trainer.daemon.client.lease_keeper import Key, LeaseKeeper
from archive.trainer.daemon.client.store_link import StoreLink
from archive.trainer.daemon.result_spool import ResultSpool, TerminalNotice

if TYPE_CHECKING:
    from archive.api import Archive

log = logging.getLogger("archive.trainer")

BUSY_SHARE = 0.02
"""Largest share of a trial's time that its reports take: while the store is slow, reports are
rare."""
MOST_REJECTIONS = 5
"""Rejections after which a notice is quarantined, while the server accepts other writes."""


class Delivery:
    """Delivers notices. During an outage of the store, they wait, and no method raises an error.

    Args:
        archive: The store.
        worker: Id of this daemon's worker record.
        spool: Where results, failures and releases wait until they are delivered.
        link: Calls the store.
        keeper: Renews the leases, until the end of a trial.
        emit: Receives deliveries.
    """

    def __init__(
        self,
        archive: Archive,
        worker: str,
        spool: ResultSpool,
        link: StoreLink,
        keeper: LeaseKeeper,
        emit: events.Observer,
    ) -> None:
        self._archive = archive
        self._worker = worker
        self._spool = spool
        self._link = link
        self._keeper = keeper
        self._emit = emit
        self._pending: dict[Key, Notice] = {}
        self._rejections: dict[Key, int] = {}
        self._paused_until: dict[Key, float] = {}
        self._seconds = 0.0
        self._stored: dict[Key, tuple[int, frozenset[str]]] = {}

    def enqueue(self, notice: Notice, *, keep: bool = True) -> None:
        """Add a notice to the next flush; it replaces a pending one of the same claim.

        Args:
            notice: The notice.
            keep: Whether a trial's end is written to the spool at once; else only if the store is
                unreachable.
        """
        if keep and isinstance(notice, Completion | Failure):
            self._spool.put(notice)

        if isinstance(notice, TerminalNotice):
            self._paused_until.pop(_key(notice), None)  # the pause of a report
            self.drop(_key(notice))

        self._pending[_key(notice)] = notice

    def drop(self, key: Key) -> None:
        """Stop renewing the lease of a claim: it is lost, or its trial has ended."""
        self._keeper.drop(key)
        self._stored.pop(key, None)

    @property
    def report_seconds(self) -> float:
        """Least time between two reports of a trial, by the store's last answer time."""
        return self._seconds / BUSY_SHARE

    def flush(self) -> list[Key]:
        """Deliver all pending notices, and return the claims that have lost their lease."""
        return list(dict.fromkeys([*self._flush(), *self._keeper.lost]))

    def _flush(self) -> list[Key]:
        now = time.monotonic()
        self._pending |= {_key(notice): notice for notice in self._spool.waiting}
        self._paused_until = {
            key: until for key, until in self._paused_until.items() if until > now
        }
        notices: list[Notice] = []
        for key, notice in self._pending.items():
            if key not in self._paused_until:
                notices.append(self._shorten(notice))

        if not notices or self._link.unreachable:
            return self._spool_pending()

        began = time.monotonic()
        try:
            answers = self._link.call(
                lambda: self._archive.proposals.settle(notices), raise_rejections=True
            )
        except (QueryError, UsageError):
            return self._flush_singly(notices)

        self._seconds = time.monotonic() - began
        return self._spool_pending() if answers is None else self._process(notices, answers)

    def _shorten(self, notice: Notice) -> Notice:
        """Return a report without the entries of its curve that the store has."""
        if not isinstance(notice, Report) or not notice.curve:
            return notice

        count, names = self._stored.get(_key(notice), (0, frozenset()))
        return replace(notice, begin=count if names == frozenset(notice.curve) else 0)

    def _write_heartbeat(self) -> bool:
        """Record that this worker lives, and return whether the server accepted the write."""

        def write() -> bool:
            self._archive.proposals.worker_heartbeat(self._worker)
            return True

        return self._link.call(write) is not None

    def _process(self, notices: Iterable[Notice], answers: Iterable[Answer]) -> list[Key]:
        """Handle the store's answers to notices, and return the claims without a lease."""
        lost = []
        for notice, answer in zip(notices, answers, strict=True):
            del self._pending[_key(notice)]
            self._rejections.pop(_key(notice), None)
            if isinstance(notice, Report):
                if isinstance(answer, ArchiveError):
                    log.warning("lease lost proposal=%s reason=%r", notice.id, str(answer))
                    lost.append(_key(notice))
                else:
                    self._keeper.note_renewed([_key(notice)])
                    self._note_stored(notice)
            elif isinstance(answer, ArchiveError):
                self._note_refused(notice, answer)
            else:
                self._note_delivered(notice, answer)

        return lost

    def _note_stored(self, report: Report) -> None:
        if report.curve:
            entries = max(map(len, report.curve.values()))
            self._stored[_key(report)] = (entries, frozenset(report.curve))

    def _note_delivered(self, notice: Notice, first: bool) -> None:
        if isinstance(notice, Completion):
            log.info(
                "complete proposal=%s value=%.6g first=%s", notice.id, notice.result.value, first
            )

        if isinstance(notice, TerminalNotice):
            self._spool.discard(notice)

        if isinstance(notice, Completion | Failure):
            self._emit(events.ResultDelivered(notice.id, first))

    def _note_refused(self, notice: Notice, error: ArchiveError) -> None:
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
        """Deliver each notice in a separate transaction, to isolate the rejected ones.

        A proposal fails if its result can never be stored, for example because it is too large.
        """
        lost: list[Key] = []
        writable = False
        for notice in notices:
            try:
                answers = self._link.call(
                    partial(self._archive.proposals.settle, [notice]), raise_rejections=True
                )
            except UsageError as error:
                self._note_rejected(notice, error)
                if isinstance(notice, Completion):
                    # The proposal would otherwise run until its lease ends, and then be trained
                    # again.
                    failure = Failure(
                        notice.id,
                        notice.token,
                        f"its result cannot be stored: {error}",
                        cause=Cause.TRAINING,
                    )
                    self.enqueue(failure)
                    notices.append(failure)

                continue
            except QueryError as error:
                # The notice need not be the cause: a server can be read-only, or a replica of
                # another one.
                writable = writable or self._write_heartbeat()
                if not writable:
                    break

                self._note_rejected(notice, error)
                continue

            if answers is None:
                break

            writable = True
            lost += self._process([notice], answers)

        self._spool_pending()
        return lost

    def _note_rejected(self, notice: Notice, error: QueryError | UsageError) -> None:
        """Pause a rejected notice; quarantine it after `MOST_REJECTIONS`."""
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
