"""The trainer daemon: claims proposals, runs each in a process of its own, and brings back what was found.

    claim ──> Trial ── epochs ──> report          the lease is renewed by every report, else by a heartbeat
                └─ result ──> outbox ──> complete      on the disk first, delivered as soon as the archive takes it
                └─ failure ──> outbox ──> fail         for good with its reason, or back into the queue
    claims ──> table ── results ──> complete           tasks that a table answers need no process: many at a time

One loop without threads does it all, and never waits for one trial. What goes wrong, and what then happens:

    the archive is away          trials go on; reports are left out, results stay in the outbox
    another worker has the lease the trial is ended, its proposal forgotten
    a trial cannot be begun      its proposal fails with the reason; another worker may do better
    a trial's process dies       its proposal goes back into the queue, until its attempts are used up
    SIGTERM, SIGINT, no parent   trials save their state and are handed back; with `drain`, they are finished first
    the daemon is killed         its trials end at once; their leases run out; state and outbox wait for the next daemon

Whoever claims what was handed back, or lost, goes on from its last state.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from archive.errors import ArchiveError, StoreUnavailableError, TrainingError
from archive.queue.updates import Release
from archive.store.records import Claim, Result
from archive.trainer.daemon import events, retry
from archive.trainer.daemon.in_flight import (
    REPORT_SECONDS,
    Running,
    TimedAnswer,
    completion,
    failure,
    is_paused,
    look_up,
    wait,
)
from archive.trainer.daemon.options import Options, Tally
from archive.trainer.daemon.paths import Workplace
from archive.trainer.daemon.shutdown import Lifetime
from archive.trainer.daemon.store_client import BATCH, Queue
from archive.trainer.morphism import inherited_weights
from archive.trainer.storage import weights_store
from archive.trainer.tasks.tabular import TabularTask
from archive.trainer.trial import failures
from archive.trainer.trial.job import Epoch, Failed, Finished, Interrupted
from archive.trainer.trial.process import Trial

if TYPE_CHECKING:
    from archive.api import Archive

log = logging.getLogger("archive.trainer")


class Trainer:
    """Trains what agents propose, until told to stop.

    Args:
        archive: Where proposals come from and results go.
        options: How to work.
        home: Folder of what it keeps (`archive.trainer.daemon.paths`); the archive's, if None.
        observers: Are told of everything that happens (`archive.trainer.daemon.events`).
    """

    def __init__(
        self,
        archive: Archive,
        options: Options | None = None,
        home: Path | None = None,
        observers: Sequence[events.Observer] = (),
    ) -> None:
        self.archive = archive
        self.options = options or Options()
        settings = archive.connection.settings
        elsewhere = settings.place_of_weights if settings.weights else None
        self.workplace = Workplace(home or settings.home, self.options, elsewhere)
        self.outbox = self.workplace.outbox(" ".join((settings.uri or "embedded", settings.database or "")))
        self.worker = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(3)}"
        self.observers = list(observers)
        self._emit = partial(events.tell, self.observers)
        self.queue = Queue(archive, self.worker, self.options, self.outbox, self._emit)
        self.tally = Tally()
        self.lifetime = Lifetime(self.options.parent)
        self.running: tuple[Running, ...] = ()
        self._busy_at = 0.0
        self._failures = 0

    @property
    def contact(self) -> float:
        """When the archive last answered, in seconds since 1970."""
        return self.queue.contact

    @property
    def device(self) -> str:
        """Where it trains, as torch names it."""
        return self.workplace.device

    def run(self) -> Tally:
        """Work until there is a reason to leave, and say what was done.

        Raises:
            SettingsError: The device cannot be used, or the place of the weights.
            StoreError: The archive cannot be used when the daemon starts, or is away for longer than the options allow;
                later, the daemon waits for it.
        """
        with self.lifetime.signals():
            for place in (self.workplace.weights, *self.options.weights_from):
                weights_store.check_place(place)
            retry.until_it_answers(self._arrive, self.options.wait_seconds, log.warning, self.lifetime.stopping)
            try:
                log.info("started worker=%s device=%s study=%s", self.worker, self.device, self.options.study)
                self._emit(events.Started(self.worker, self.device))
                self.outbox.adopt()
                self.workplace.tidy(self.outbox)
                self._busy_at = time.monotonic()
                while not self._should_leave():
                    self._turn()
            finally:
                self._hand_back()
                self.queue.depart()
        log.info("left worker=%s %s", self.worker, self.tally)
        self._emit(events.Left(self.worker, self.tally))
        return self.tally

    def stop(self) -> None:
        """Ask the loop to end, from a signal or another thread; a second time, without waiting for trials."""
        self.lifetime.request_stop()

    def _arrive(self) -> None:
        hardware = self.workplace.find_device(self.archive)
        self.queue.arrive(f"{self.device} ({hardware})")

    def _turn(self) -> None:
        """Claim, wait a moment, and tell the archive what trials have said."""
        self._claim()
        self._wait()
        self._follow_all()
        self.queue.beat()

    def _should_leave(self) -> bool:
        options, asked = self.options, self.lifetime.requests
        if asked > 1 or (asked and not (options.drain and self.running)):
            return True
        if self.lifetime.parent_gone():
            log.info("parent is gone pid=%s", options.parent)
            return True
        if self.running:
            return False
        # What a slow delivery took is no idleness: that begins when nothing is found to wait.
        empty = self.queue.empty_since
        idle = 0.0 if empty is None else time.monotonic() - max(self._busy_at, empty)
        if options.once and (self.tally.all or idle > options.poll_seconds):
            return True
        return options.idle_seconds is not None and idle > options.idle_seconds

    def _claim(self) -> None:
        """Fill the free slots; while a table answers faster than it is asked, go on for a moment, many at a time."""
        until, study = time.monotonic() + REPORT_SECONDS, None
        while not self.lifetime.requests and time.monotonic() < until:
            free = self.options.slots - len(self.running)
            if self.options.once:
                free = 0 if self.tally.all else min(free, 1)
            claims = self.queue.claim(BATCH if free and study else free, study)
            if not claims:
                return
            answered = [self._begin(claim) for claim in claims]
            study = claims[-1].study.name if all(answered) else None
            self._deliver()

    def _begin(self, claim: Claim) -> bool:
        """Start on a claim, and return whether it is dealt with already."""
        self._busy_at = time.monotonic()
        # Out of touch for longer than a lease, it may be given anew what it holds. The former claim is worth nothing
        # any more, and two trials must not write to one state.
        self._lose(one for one in self.running if one.claim.id == claim.id)
        try:
            task = self.workplace.task(claim.study)
            if isinstance(task, TabularTask):
                return self._answer(claim, task)
            trial = Trial(
                inherited_weights.inherited(self.archive, self.workplace.job(claim, task), self.workplace.readable)
            )
        except StoreUnavailableError as error:
            self._release(claim, str(error))
            return False
        except Exception as error:
            # Another worker may know the task, or have a process to spare. Nor may a task of another package that
            # raises whatever it likes take one trainer down after the other.
            if not isinstance(error, ArchiveError):
                log.exception("cannot begin proposal=%s", claim.id)
            self._fail(claim, replace(failures.failed(error), retry=True))
            return False
        log.info("claimed proposal=%s attempt=%d pid=%s", claim.id, claim.proposal.attempts + 1, trial.pid)
        self._emit(events.Claimed(claim, trial.pid))
        self.running += (Running(claim, trial),)
        return False

    def _answer(self, claim: Claim, task: TabularTask) -> bool:
        """Look a result up, and return whether it is told at once, which is not so in scaled time.

        Raises:
            ArchiveError: The table cannot be read here.
        """
        self._emit(events.Claimed(claim))
        try:
            result = look_up(claim, task)
        except TrainingError as error:
            self._fail(claim, Failed(error.reason))
            return True
        if seconds := self.options.scale * (result.seconds or 0.0):
            self.running += (Running(claim, TimedAnswer(result, seconds)),)
            return False
        # It is on the table's disk already, so the outbox takes it only if the archive is away.
        self._complete(claim, result, keep=False)
        return True

    def _wait(self) -> None:
        """Wait until a trial has something to say, there may be work, or a moment is over."""
        until = time.monotonic() + self.options.poll_seconds
        wait(self.running, until if self.running else min(until, self.queue.idle_until))

    def _follow_all(self) -> None:
        for running in self.running:
            self._follow(running)
        self._deliver()

    def _follow(self, running: Running) -> None:
        """Take in what a trial has said, and pass it on when it is time to."""
        for message in running.trial.messages():
            if not isinstance(message, Epoch):
                self._end(running, message)
                return
            running.add(message.metrics)
            if not message.resumed:
                self._emit(events.Progressed(running.claim, message.metrics))
        if time.monotonic() - running.trial.heard > self.options.stall_seconds:
            self._end(running, running.trial.give_up(f"no progress for {self.options.stall_seconds:g} s"))
        elif running.is_due(self.options.lease_seconds) and not self.queue.away:
            self.queue.say(running.report(self.options.lease_seconds))

    def _end(self, running: Running, last: Finished | Failed | Interrupted) -> None:
        self._forget(running)
        match last:
            case Finished(result):
                self._complete(running.claim, result)
                # A rung's state waits for whoever goes on to the next one.
                if not is_paused(result):
                    self.workplace.forget(running.claim)
            case Failed():
                self._fail(running.claim, last)
            case Interrupted(saved, epoch):
                self._release(running.claim, f"interrupted after {epoch} epochs" + (", saved" if saved else ""))

    def _deliver(self) -> None:
        """Tell the archive what there is to tell, and do what follows from its answers."""
        lost = self.queue.flush()
        self._lose(one for one in self.running if one.key in lost)
        self.workplace.tidy(self.outbox)

    def _lose(self, taken: Iterable[Running]) -> None:
        """End trials whose proposals are other workers', or done."""
        for running in taken:
            self._forget(running)
            self.tally.returned += 1
            self._emit(events.Released(running.claim, "the lease was lost", lost=True))

    def _complete(self, claim: Claim, result: Result, *, keep: bool = True) -> None:
        self.queue.say(completion(claim, result), keep=keep)
        self.tally.complete += 1
        self._failures = 0
        self._emit(events.Completed(claim, result))

    def _fail(self, claim: Claim, failed: Failed) -> None:
        log.warning("failed proposal=%s retry=%s reason=%r", claim.id, failed.retry, failed.reason)
        self.queue.say(failure(claim, failed))
        self.tally.failed += 1
        self._failures = self._failures + 1 if failed.retry else 0
        if not failed.retry:
            self.workplace.forget(claim)
        elif self.options.parent is None:
            # What is wrong may be wrong here alone: a whole queue must not fail before somebody looks. Whoever searches
            # with trainers of their own does look, and gives up on seeing the reason.
            self.queue.rest(self._failures)
        self._emit(events.Failed(claim, failed.reason, failed.retry))

    def _release(self, claim: Claim, reason: str) -> None:
        log.info("handed back proposal=%s reason=%r", claim.id, reason)
        self.queue.say(Release(claim.id, claim.token))
        self.tally.returned += 1
        self._emit(events.Released(claim, reason))

    def _forget(self, running: Running) -> None:
        running.trial.end()
        self.running = tuple(other for other in self.running if other is not running)
        self._busy_at = time.monotonic()

    def _hand_back(self) -> None:
        """Let what still runs save its state, and put it back into the queue, for others to take at once."""
        until, asked = time.monotonic() + self.options.parting_seconds, self.lifetime.requests
        at_once = asked > 1 + self.options.drain
        for running in self.running:
            running.trial.checkpoint()
        while self.running and not at_once and time.monotonic() < until and self.lifetime.requests == asked:
            self._wait()
            self._follow_all()
        for running in self.running:
            self._forget(running)
            self._release(running.claim, "ended at once")
        self._deliver()
