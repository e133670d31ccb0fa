"""The daemon's client of the store: claims proposals and delivers notices, many in one transaction.

    claim(n)                    one transaction for any n
    enqueue(…) ──> flush()      all pending notices in one transaction (`client.delivery`)

A separate thread renews the leases (`archive.trainer.daemon.client.lease_keeper`), from the claim
on.

An outage of the store may last minutes. Reports are then dropped, since the next one repeats their
entries. A lease that expires meanwhile costs its proposal an attempt. A late release does not, and
has no effect if another worker has the proposal. A claim without an answer is repeated under its
token, so that proposals that were claimed already do not wait for the end of their leases.

An idle trainer looks at the queue rarely, and still notices proposals soon:

    look ─ 20 ms ─ look ─ 40 ms ─ look ─ …  30 s ─ look ─ 30 s ─ look      while the queue is empty
                                  └ woken: look at once (`archive.store.wake_up`)

The pause doubles each time: a trainer that has waited for t seconds notices a proposal within t
further seconds. Pauses vary at random, so that the trainers of a fleet do not look together.
"""

from __future__ import annotations

import logging
import math
import os
import platform
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from archive.backoff import Backoff
from archive.errors import ArchiveError, StoreUnavailableError
from archive.queue import workers
from archive.queue.capabilities import Capabilities, ClaimFilter
from archive.queue.updates import Notice
from archive.store.records import Claim
from archive.store.wake_up import CANCELLED, WakeUpReceiver
from archive.trainer.daemon import events
from archive.trainer.daemon.client.delivery import Delivery
from archive.trainer.daemon.client.lease_keeper import LOOK_SECONDS, Key, LeaseKeeper
from archive.trainer.daemon.client.store_link import StoreLink
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.result_spool import ResultSpool

if TYPE_CHECKING:
    from archive.api import Archive

FIRST_PAUSE = 0.02
"""Shortest pause after the queue was first found empty, in seconds."""
WAKE_UP_SECONDS = 0.05
"""Time between two looks at the modification time of the wake-up file."""

T = TypeVar("T")
log = logging.getLogger("archive.trainer")
BATCH = 128
"""Proposals of a tabular study that are claimed at a time.

On the embedded server, with eight workers, 64 instead of 32 were a quarter faster, and 128 an
eighth more."""
ADOPT_SECONDS = 5.0
"""Age at which spooled results without an owner are adopted."""
ADOPTION_PAUSE = 7.5
"""Time between two looks for results without an owner."""
REST_SECONDS = 0.25
"""Pause after a trial that failed for a cause outside it; each further failure doubles it, up to
`LONGEST_REST`."""
LONGEST_REST = 60.0


class QueuePace:
    """Decides when to look at the queue.

    Args:
        longest_pause: Longest pause between two looks, in seconds.
        wake_up: Receiver of the wake-up that the queue has grown.

    Attributes:
        next_at: Time of the next look, by `time.monotonic`.
    """

    def __init__(self, longest_pause: float, wake_up: WakeUpReceiver) -> None:
        self.next_at = 0.0
        self._wake_up = wake_up
        self._backoff = Backoff(1.1 * FIRST_PAUSE, 1.1 * longest_pause, share=1 / 11)
        self._rests_until = 0.0

    @property
    def due(self) -> bool:
        """Whether it is time for a look."""
        return time.monotonic() >= self.next_at or self._receive_wake_up()

    def found(self) -> None:
        """Begin with short pauses again, after a claim."""
        self._backoff.reset()
        self.next_at = 0.0

    def found_nothing(self) -> None:
        """Pause, for twice as long as before."""
        self.next_at = time.monotonic() + self._backoff.next_pause()

    def rest(self, seconds: float) -> None:
        """Do not look at the queue for some seconds, even if it grows."""
        self._rests_until = self.next_at = time.monotonic() + seconds

    def sleep(self, deadline: float, until: float) -> None:
        """Sleep until a look is due, or one of two moments by `time.monotonic` has come."""
        while not self._receive_wake_up() and (left := min(deadline, until) - time.monotonic()) > 0:
            time.sleep(min(left, WAKE_UP_SECONDS))

    def _receive_wake_up(self) -> bool:
        if self._wake_up.received() and time.monotonic() >= self._rests_until:
            self.found()
            return True

        return False


class StoreClient:
    """Claims proposals and delivers notices.

    During an outage of the store, notices wait and nothing is claimed.

    Args:
        archive: The store.
        worker: Id of this daemon's worker record.
        options: How the daemon works.
        spool: Where results, failures and releases wait until they are delivered.
        emit: Receives deliveries and outages.
        stopping: Returns the seconds that a call may take although the daemon was asked to stop;
            None where it was not.

    Attributes:
        keeper: Renews the leases; `arrive` starts its thread.
    """

    def __init__(
        self,
        archive: Archive,
        worker: str,
        options: TrainerOptions,
        spool: ResultSpool,
        emit: events.Observer,
        stopping: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._archive = archive
        self._worker = worker
        self._options = options
        self._spool = spool
        self._adopt_at = 0.0
        self._link = StoreLink(emit, stopping)
        self._pace = QueuePace(options.longest_pause, WakeUpReceiver(archive.connection.settings))
        self._cancellation = WakeUpReceiver(archive.connection.settings, CANCELLED)
        # All clients of an embedded archive share its home: each receives the wake-up of a
        # cancellation.
        pause = math.inf if archive.connection.settings.embedded else LOOK_SECONDS
        self.keeper = LeaseKeeper(archive, worker, options.lease, self._link.note_answer, pause)
        self._delivery = Delivery(archive, worker, spool, self._link, self.keeper, emit)
        self._empty_since: float | None = None
        self._unanswered: str | None = None
        self._claim_filter = ClaimFilter()
        self._passed_over: set[str] = set()

    @property
    def contact(self) -> float:
        """Time of the store's last answer, in seconds since 1970."""
        return self._link.contact

    def idle_seconds(self, busy_at: float) -> float:
        """Return the seconds with an empty queue or an unreachable store; 0 after a claim.

        Args:
            busy_at: End of the last work, by `time.monotonic`. The time of a slow delivery is no
                idle time.
        """
        empty = self._empty_since if self._link.outage_since is None else self._link.outage_since
        return 0.0 if empty is None else time.monotonic() - max(busy_at, empty)

    @property
    def unreachable(self) -> bool:
        """Whether a call to the store failed a moment ago, so that none is made now."""
        return self._link.unreachable

    @property
    def retry_at(self) -> float:
        """Time of the next call to an unreachable store, by `time.monotonic`."""
        return self._link.retry_at

    @property
    def undelivered(self) -> int:
        """Number of results, failures and releases that the store does not have yet."""
        return len(self._spool)

    @property
    def idle_until(self) -> float:
        """Time of the next claim or the next call to an unreachable store, by `time.monotonic`."""
        return max(self._pace.next_at, self._link.retry_at)

    def arrive(
        self, capabilities: Capabilities, **properties: str | int | list[str] | None
    ) -> None:
        """Register this worker; from now on it claims suitable proposals.

        Raises:
            StoreError: The store cannot be written.
        """
        self._claim_filter = ClaimFilter(capabilities)
        record: dict[str, Any] = {
            "host": platform.node(),
            "pid": os.getpid(),
            "study": self._options.study,
            "fleet": os.environ.get(workers.FLEET),
            "tasks": list(capabilities.tasks or ()),
            "spaces": list(capabilities.spaces or ()),
            "recipes": list(capabilities.recipes or ()),
            "memory_bytes": capabilities.memory_bytes,
        }
        workers.arrive(self._archive.connection, self._worker, **record, **properties)
        self.keeper.start()

    def ask(self, request: Callable[[], T]) -> T:
        """Return the answer to a request of the daemon's loop.

        Raises:
            StoreUnavailableError: There is no answer.
            ArchiveError: Any error that is no fault of the server.
        """
        answer = self._link.call(lambda: (request(),))
        if answer is None:
            raise StoreUnavailableError("the store does not answer")

        return answer[0]

    def depart(self) -> None:
        """Record that this worker has stopped; without that, a silent worker counts as stale."""
        self.keeper.close()
        # An unreachable store infers it from the silence.
        if not self.unreachable:
            self._link.call(lambda: workers.leave(self._archive.connection, self._worker))

    def claim(
        self,
        most: int,
        study: str | None = None,
        *,
        memory_bytes: int | None = None,
        alone_bytes: int | None = None,
    ) -> list[Claim]:
        """Claim proposals that this worker can run; none while the queue rests.

        Args:
            most: Largest number of claims.
            study: Claim from this study, because its results come at once; None follows the
                daemon's options.
            memory_bytes: Memory of the largest device with a free slot; None sets no limit.
            alone_bytes: Memory of the largest device without any trial; -1 without one, None sets
                no limit.
        """
        if most < 1 or self.unreachable or not self._pace.due:
            return []

        self._claim_filter.memory_bytes = memory_bytes
        self._claim_filter.alone_bytes = alone_bytes
        claims = self._try_to_claim(most, study)
        self._log_passed_over()
        if claims:
            self._pace.found()
            self._empty_since = None
            # Leases are renewed from now on, because trials may begin late: data are parsed,
            # relatives are looked up.
            self.keeper.hold((claim.id, claim.token) for claim in claims)
        elif claims is not None:
            if study is None:
                self._empty_since = self._empty_since or time.monotonic()

            # Without a pause, a free slot would look for work after each epoch of a trial in
            # another slot.
            self._pace.found_nothing()

        return claims or []

    def _try_to_claim(self, most: int, study: str | None) -> list[Claim] | None:
        """Return new claims, or the last call's if its answer was lost; None on an error."""
        again = self._unanswered is not None
        token = self._unanswered or uuid.uuid4().hex
        self._unanswered = token
        try:
            claims = self._link.call(
                lambda: self._archive.proposals.claim_many(
                    self._worker,
                    most,
                    study=study or self._options.study,
                    lease_seconds=self._options.lease,
                    whole=study is not None,
                    claim_filter=self._claim_filter,
                    token=token,
                    again=again,
                )
            )
        except ArchiveError as error:
            self._unanswered = None
            # A claimed network may be of a space that is not installed here. Its lease expires, and
            # a worker with the space can claim it.
            log.error("cannot read claimed proposals reason=%r", str(error))
            self._link.pause()
            return None

        if claims is not None:
            self._unanswered = None

        return claims

    def _log_passed_over(self) -> None:
        """Log each study with waiting proposals that this worker cannot run, once."""
        for study in sorted(self._claim_filter.lacking.keys() - self._passed_over):
            self._passed_over.add(study)
            log.warning("passes over study=%s reason=%r", study, self._claim_filter.lacking[study])

    def back_off(self, failures: int, reason: str, *, doublings: int = 0) -> None:
        """Claim nothing for a while after consecutive failures: the machine may be their cause.

        Args:
            failures: Number of failures in a row.
            reason: Reason of the last one; the worker's record shows it meanwhile.
            doublings: How often the pause is doubled in addition.
        """
        seconds = min(REST_SECONDS * 2.0 ** min(failures - 1 + doublings, 30), LONGEST_REST)
        self._pace.rest(seconds)
        log.warning("resting seconds=%g failures=%d", seconds, failures)
        if not self.unreachable:
            self._link.call(
                lambda: workers.rest(self._archive.connection, self._worker, seconds, reason)
            )

    def enqueue(self, notice: Notice, *, keep: bool = True) -> None:
        """Add a notice to the next flush; it replaces a pending one of the same claim.

        Args:
            notice: The notice.
            keep: Whether a trial's end is written to the spool at once; else only if the store is
                unreachable.
        """
        self._delivery.enqueue(notice, keep=keep)

    @property
    def report_seconds(self) -> float:
        """Least time between two reports of a trial, by the store's last answer time."""
        return self._delivery.report_seconds

    def flush(self) -> list[Key]:
        """Deliver all pending notices, and return the claims that have lost their lease."""
        if self._cancellation.received():
            self.keeper.hurry()

        return self._delivery.flush()

    def drop(self, key: Key) -> None:
        """Renew the lease of a claim no longer, because it is lost."""
        self._delivery.drop(key)

    def sleep(self, deadline: float) -> None:
        """Sleep until the next claim or call to the store, or a deadline by `time.monotonic`."""
        self._pace.sleep(deadline, self.idle_until)

    def adopt(self) -> None:
        """Adopt the spooled results of dead daemons, every few seconds."""
        now = time.monotonic()
        if now >= self._adopt_at and not self.unreachable:
            self._adopt_at = now + ADOPTION_PAUSE
            self._spool.adopt(ADOPT_SECONDS)
