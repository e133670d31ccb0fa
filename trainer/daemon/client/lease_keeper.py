"""The lease keeper: renews the leases of a daemon in a separate thread.

    main loop   claim ── parses data, looks for an ancestor, writes to disk ── report … ── result
    keeper             └── renew ─ look ─ renew ─ look ─ renew ──────────────────────────┘

Leases stay valid while the main loop waits for something. A lease is renewed a third of its
duration after its last renewal or report; one transaction renews all due leases. The keeper also
records that the worker lives. Intervals vary at random, so that the trainers of a fleet that began
together do not renew together.

Between two renewals the keeper *looks* whether leases are still held, because a cancelled trial
must end within seconds. A look is a read, which costs the server half of a renewal. The keeper only
looks at leases that nothing else has confirmed in the meantime. A lease that seems lost is renewed
at once, and the answer to the renewal decides.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from archive.backoff import vary
from archive.errors import ArchiveError, StoreError
from archive.queue.updates import Report

if TYPE_CHECKING:
    from archive.api import Archive

Key = tuple[str, str]
"""Id and token of a claim."""
log = logging.getLogger("archive.trainer")

ALIVE_SECONDS = 90.0
"""Time between two records of a living worker, well within
`archive.queue.workers.STALE_SECONDS`."""
LOOK_SECONDS = 5.0
"""Time without a renewal, report or look after which the keeper looks at a lease."""
LOOK_SHARE = 0.02
"""Largest share of the time that looks may take: a slow store is looked at rarely."""
RETRY_SECONDS = 2.0
"""Pause after a call that failed."""
JITTER = 0.1


class LeaseKeeper:
    """Renews leases until it is closed. Its methods may be called from any thread.

    Args:
        archive: The store.
        worker: Id of the worker.
        lease_seconds: Duration of the leases.
        on_answer: Called after each answer of the store.
        look_seconds: Time after which an unconfirmed lease is looked at; infinite for never.
    """

    def __init__(
        self,
        archive: Archive,
        worker: str,
        lease_seconds: float,
        on_answer: Callable[[], None],
        look_seconds: float = math.inf,
    ) -> None:
        self._archive = archive
        self._worker = worker
        self._lease_seconds = lease_seconds
        self._on_answer = on_answer
        self._look_seconds = look_seconds
        self._guard = threading.Lock()
        self._due: dict[Key, float] = {}
        self._look_at: dict[Key, float] = {}
        self._lost: set[Key] = set()
        self._alive_at = time.monotonic() + vary(ALIVE_SECONDS, JITTER)
        self._changed = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, keys: Iterable[Key]) -> None:
        """Keep these leases, which have just begun or have just been renewed."""
        with self._guard:
            for key in keys:
                self._confirm(key)

        self._changed.set()

    def note_renewed(self, keys: Iterable[Key]) -> None:
        """Postpone the next renewal of leases after a report; dropped leases are ignored."""
        with self._guard:
            for key in keys:
                if key in self._due:
                    self._confirm(key)

    def hurry(self) -> None:
        """Renew all leases now: one of them may have been lost."""
        with self._guard:
            self._due = dict.fromkeys(self._due, 0.0)

        self._changed.set()

    def drop(self, key: Key) -> None:
        """Stop renewing a lease."""
        with self._guard:
            self._forget(key)
            self._lost.discard(key)

    @property
    def lost(self) -> set[Key]:
        """Leases that were lost; each stays here until it is dropped."""
        with self._guard:
            return set(self._lost)

    @property
    def next_at(self) -> float:
        """Time of the next call, by `time.monotonic`."""
        with self._guard:
            return min([self._alive_at, *self._due.values(), *self._look_at.values()])

    def start(self) -> None:
        """Begin; a second call has no effect."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)
            self._thread.start()

    def close(self, seconds: float = 5.0) -> None:
        """End the thread; wait at most so many seconds for a call in progress."""
        self._ended.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def step(self) -> None:
        """Look at leases, renew the due and the doubtful ones, and record a living worker if due.

        Raises:
            StoreError: The store gives no answer; the leases stay due.
        """
        now = time.monotonic()
        self._look(now)
        with self._guard:
            due = [key for key, moment in self._due.items() if moment <= now]

        if due:
            notices = [Report(*key, None, self._lease_seconds) for key in due]
            answers = self._archive.proposals.settle(notices)
            self._on_answer()
            self._process(zip(due, answers, strict=True))

        if now >= self._alive_at:
            self._archive.proposals.worker_heartbeat(self._worker)
            self._on_answer()
            self._alive_at = time.monotonic() + vary(ALIVE_SECONDS, JITTER)

    def _look(self, now: float) -> None:
        """Look at the leases without a recent confirmation; one that seems lost becomes due."""
        with self._guard:
            if not any(self._is_doubtful(key, now, now) for key in self._due):
                return

            # One look serves the trials of all slots: it includes leases that are soon due for one.
            soon = now + self._look_seconds / 2
            doubtful: list[Key] = []
            for key in self._due:
                if self._is_doubtful(key, now, soon):
                    doubtful.append(key)

        confirmed = self._archive.proposals.held(doubtful)
        self._on_answer()
        pause = max(self._look_seconds, (time.monotonic() - now) / LOOK_SHARE)
        with self._guard:
            for key in doubtful:
                if key in self._due:
                    self._look_at[key] = time.monotonic() + vary(pause, JITTER)
                    self._due[key] = self._due[key] if key in confirmed else 0.0

    def _is_doubtful(self, key: Key, now: float, until: float) -> bool:
        """Whether a lease is due for a look by the time `until`, and not for renewal `now`."""
        return self._look_at[key] <= until and now < self._due[key]

    def _process(self, answers: Iterable[tuple[Key, bool | ArchiveError]]) -> None:
        with self._guard:
            for key, answer in answers:
                if key not in self._due:
                    continue  # It has ended meanwhile.

                if isinstance(answer, ArchiveError):
                    log.warning("lease lost proposal=%s reason=%r", key[0], str(answer))
                    self._forget(key)
                    self._lost.add(key)
                else:
                    self._confirm(key)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._changed.wait(max(0.0, self.next_at - time.monotonic()))
            self._changed.clear()
            if self._ended.is_set():
                return

            try:
                self.step()
            except StoreError as error:
                log.debug("leases not renewed reason=%r", str(error))
                self._ended.wait(vary(RETRY_SECONDS))
            except Exception:
                log.exception("leases not renewed")
                self._ended.wait(vary(RETRY_SECONDS))

    def _confirm(self, key: Key) -> None:
        now = time.monotonic()
        self._due[key] = now + vary(self._lease_seconds / 3, JITTER)
        self._look_at[key] = now + vary(self._look_seconds, JITTER)

    def _forget(self, key: Key) -> None:
        self._due.pop(key, None)
        self._look_at.pop(key, None)
